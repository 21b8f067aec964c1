"""A journal in memory: for tests, demonstrations, and markets that need not outlive the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from marketeval.core.errors import StoreError
from marketeval.stores.base import CHUNK, Batch, Line, Note


class MemoryJournal:
    """Keeps lines in a list. `failing` makes the next appends fail, as a full disk would."""

    def __init__(self) -> None:
        self.about: Mapping[str, str] = {}
        self.lines: list[Line] = []
        self.aside: list[Line] = []
        self.kept_notes: list[Note] = []
        self.failing = False

    async def open(self, about: Mapping[str, str]) -> Mapping[str, str]:
        """As the port."""
        self.about = self.about or dict(about)
        return self.about

    async def read(self) -> AsyncIterator[Sequence[Line]]:
        """As the port."""
        for start in range(0, len(self.lines), CHUNK):
            yield self.lines[start : start + CHUNK]

    async def set_aside(self, number: int) -> int:
        """As the port."""
        lost = [line for line in self.lines if line[0] >= number]
        self.lines = [line for line in self.lines if line[0] < number]
        self.aside += lost
        return len(lost)

    async def append(self, batch: Batch) -> None:
        """As the port."""
        if self.failing:
            raise StoreError("the memory journal was told to fail")
        self.lines += batch.lines
        self.kept_notes += batch.notes

    async def recover(self) -> int:
        """As the port."""
        if self.failing:
            raise StoreError("the memory journal was told to fail")
        return self.lines[-1][0] if self.lines else 0

    async def notes(
        self, *, after: int | None, before: int | None, offset: int, limit: int | None
    ) -> Sequence[str]:
        """As the port."""
        found = [
            text
            for _, at, text in self.kept_notes
            if (after is None or at > after) and (before is None or at < before)
        ]
        return found[offset : None if limit is None else offset + limit]

    async def count_notes(self) -> int:
        """As the port."""
        return len(self.kept_notes)

    async def close(self) -> None:
        """As the port."""
