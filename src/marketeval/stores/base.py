"""What a journal store is: the port that SQLite, PostgreSQL and memory implement.

A journal is a sequence of lines, numbered from 1 without gaps, written by one writer. Beside it
stand a few facts about the market (`about`), and notes that nobody's state depends on. A store
knows nothing of markets: a line is a text.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

FORMAT = "1"  # of the tables; written beside every journal
CHUNK = 10_000  # lines handed over at once when a journal is read

Line = tuple[int, str]  # number, text
Note = tuple[int, int, str]  # number, microseconds, text
Statement = tuple[str, tuple[Any, ...]]  # any: what a database driver takes


@dataclass(frozen=True, slots=True)
class Batch:
    """What is committed together, wholly or not at all.

    `also` are statements for a second layout in the same transaction; only SQLite has one.
    """

    lines: Sequence[Line]
    notes: Sequence[Note] = ()
    also: Sequence[Statement] = ()


class Journal(Protocol):
    """One market's journal, opened by its only writer.

    Errors: `open` raises UsageError for what cannot be opened, in one line; afterwards StoreError
    says that the database does not take or give anything now.
    """

    async def open(self, about: Mapping[str, str]) -> Mapping[str, str]:
        """Take the writer's lock; what is written about the market, `about` itself if it is new."""
        ...

    def read(self) -> AsyncIterator[Sequence[Line]]:
        """All lines in order, in chunks, as far as they can be read."""
        ...

    async def set_aside(self, number: int) -> int:
        """Move all lines from a number on out of the journal; how many there were."""
        ...

    async def append(self, batch: Batch) -> None:
        """Commit a batch; durable once this returns. After a StoreError, call `recover` first."""
        ...

    async def recover(self) -> int:
        """After a failed `append`: the number of the last line that is durable, 0 if there is none.

        Raises StoreError while the database is still away.
        """
        ...

    async def notes(
        self, *, after: int | None, before: int | None, offset: int, limit: int | None
    ) -> Sequence[str]:
        """Notes in order, strictly between two moments in microseconds."""
        ...

    async def count_notes(self) -> int:
        """How many notes there are; they are numbered from 1 without gaps."""
        ...

    async def close(self) -> None:
        """Give the lock back."""
        ...


def other_format(where: str, found: str) -> str:
    """One line about tables that this version does not read."""
    return (
        f"{where} holds a market of format {found or 'unknown'}, expected {FORMAT}: serve it with "
        "the version of marketeval that made it, or choose another --database"
    )


def foreign(where: str) -> str:
    """One line about tables that are somebody else's."""
    return (
        f"{where} holds tables of another program (no market of marketeval): choose another "
        "--database"
    )


def taken(where: str) -> str:
    """One line about a market that has its writer."""
    return f"{where} is served by another process already: one writer per market"
