"""The event log: everything that happened in an episode, as tables with declared columns.

Markets write it, metrics and reports read it, and neither side knows the other. A kind of event is
one table; each of its columns is declared with a type, a range and a line of prose. Every table
also carries `seed` and `turn`, the place of the row's `append` among all appends of the episode,
so that the order between kinds is kept. Nothing here depends on the clock or on the machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from marketeval.core.columns import NO_SEED as NO_SEED  # others find these here
from marketeval.core.columns import Column as Column
from marketeval.core.columns import EventKind as EventKind
from marketeval.core.columns import Given, Values
from marketeval.core.columns import empty_frame as empty_frame
from marketeval.core.errors import EventError, UnknownNameError, near_miss
from marketeval.core.parts import Behind, Buffer, Part, check, store

if TYPE_CHECKING:
    import polars as pl

SMALL = 1 << 15  # rows that are quicker copied than handed over
MANY = (np.ndarray, list, tuple)  # what has a value per row


class Sink(Protocol):
    """Where full parts of the log go: memory, or a run directory."""

    def write(self, kind: str, part: pl.DataFrame) -> None: ...


class LogReader(Protocol):
    """What metrics, reports and exports read: lazy tables by kind of event."""

    def scan(self, kind: str) -> pl.LazyFrame:
        """All rows of a kind in seed and row order; empty, with its columns, if there are none."""
        ...

    def seeds(self) -> list[int]:
        """The seeds of the episodes in this log, ascending."""
        ...


class EventLog:
    """Writes episodes, one after the other, and can be read back.

    `append` copies before it returns. Parts close at `rows_per_part` rows and go to the sink, if
    there is one; without a sink everything stays in memory. A log that is not `hashed` has no
    digests; it is for what is read once and thrown away.
    """

    def __init__(
        self,
        kinds: Iterable[EventKind],
        *,
        sink: Sink | None = None,
        rows_per_part: int = 1 << 20,
        hashed: bool = True,
    ) -> None:
        self.kinds = {kind.name: kind for kind in kinds}
        self.hashed = hashed
        self._buffers: dict[str, Buffer] = {}
        self._behind = None if sink is None else Behind(sink.write)
        self._rows_per_part = rows_per_part
        self._parts: dict[str, list[Part]] = {}
        self._seed = NO_SEED
        self._turn = 0
        self._shared: dict[str, str] = {}
        self.digests: dict[int, str] = {}

    def begin(self, seed: int) -> None:
        """Start the episode of a seed; what is appended from here on belongs to it."""
        if self._seed != NO_SEED:
            raise EventError(
                f"the episode of seed {self._seed} has not ended; its rows are here still"
            )
        if seed in self.digests:
            raise EventError(f"seed {seed} is in this log already; an episode needs its own seed")
        self._seed, self._turn = seed, 0

    def end(self) -> str:
        """Close the episode and return its digest, over its columns in row order."""
        digest = ""
        if self.hashed:
            parts = sorted(filter(None, (one.close_episode() for one in self._buffers.values())))
            digest = hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
        self.digests[self._seed] = digest
        self._seed = NO_SEED
        return digest

    def append(self, kind: str, /, **columns: Any) -> None:  # any: arrays and scalars alike
        """Add events: arrays of one length and scalars, which are repeated to that length."""
        if self._add(kind, columns, self._turn):
            self._turn += 1

    def extend(self, kind: str, turns: Values, /, **columns: Any) -> None:  # any: as in append
        """Add the events of many turns at once, each row with its own turn.

        For episodes that are played without asking anybody: the log is then the one that an
        append per turn gives. Say with `pass_turns` how many turns there were.
        """
        self._add(kind, columns, turns)

    def hand_over(
        self,
        kind: str,
        rows: int,
        /,
        *,
        turn: Given,
        seeds: Given | None = None,
        **columns: Any,  # any: as in append
    ) -> None:
        """Add many rows as `extend` does, without copying: the arrays are the log's from here on.

        A column may also be a function, called when its values are needed. A log that is not
        hashed takes the rows of many episodes at once: then `seeds` has a seed per row, and
        `close_many` names the episodes.
        """
        if rows < SMALL and seeds is None:
            given = {name: one() if callable(one) else one for name, one in columns.items()}
            self._add(kind, given, turn() if callable(turn) else turn)
            return
        buffer = self._opened(kind, columns)
        self._flush(buffer)
        for column, bounds in zip(buffer.kind.columns, buffer.bounds, strict=False):
            columns[column.name] = check(buffer.kind.name, column, bounds, columns[column.name])
        if self.hashed:
            columns = {name: one() if callable(one) else one for name, one in columns.items()}
            buffer.sums.update(columns, rows)
        columns |= {"seed": self._seed if seeds is None else seeds, "turn": turn}
        if self._behind is None:  # nothing is gained by cutting what stays in memory
            self._keep(kind, Part(buffer.columns, columns, rows))
            return
        whole = Part(
            buffer.columns,
            {name: one() if callable(one) else one for name, one in columns.items()},
            rows,
        )
        for start in range(0, rows, self._rows_per_part):
            self._keep(kind, whole.slice(start, start + self._rows_per_part))

    def close_many(self, seeds: Iterable[int]) -> None:
        """Name the episodes whose rows were handed over together, in a log without digests."""
        if self.hashed:
            raise EventError("a log with digests takes one episode after the other")
        self.digests.update(dict.fromkeys(seeds, ""))

    def pass_turns(self, count: int) -> None:
        """Let the next append be `count` turns later."""
        self._turn += count

    def _add(self, kind: str, columns: Mapping[str, Any], turns: Given) -> int:
        """Copy rows into the open part of a kind; how many there were."""
        buffer = self._opened(kind, columns)
        count = -1
        for name, value in columns.items():
            if isinstance(value, MANY):
                if count == -1:
                    count = len(value)
                elif len(value) != count:
                    raise EventError(
                        f"event '{kind}': expected columns of one length; "
                        f"'{name}' has {len(value)} values, an earlier one {count}"
                    )
        count = 1 if count == -1 else count
        if buffer.count + count > self._rows_per_part and buffer.count:
            self._flush(buffer)
        buffer.room_for(count)
        rows = slice(buffer.count, buffer.count + count)
        for column, target, bounds in zip(
            buffer.kind.columns, buffer.arrays, buffer.bounds, strict=False
        ):
            store(kind, column, bounds, columns[column.name], target, rows)
        buffer.arrays[-2][rows] = self._seed
        buffer.arrays[-1][rows] = turns
        buffer.count += count
        return count

    def shared(self, kind: str, /, **columns: Any) -> None:  # any: as in append
        """Add, once for all episodes of this log, what holds for every seed.

        The same facts may be offered again by each episode; other facts under the same kind are
        refused, since they would then not hold for every seed.
        """
        buffer = self._opened(kind, columns)
        probe = EventLog([buffer.kind])
        probe.append(kind, **columns)
        digest = probe._buffers[kind].close_episode()
        if kind in self._shared:
            if self._shared[kind] != digest:
                raise EventError(f"event '{kind}': shared facts differ between episodes")
            return
        if buffer.count:
            raise EventError(f"event '{kind}': shared facts must come before any row of an episode")
        seed, turn, self._seed, self._turn = self._seed, self._turn, NO_SEED, len(self._shared)
        self.append(kind, **columns)
        self._seed, self._turn = seed, turn
        buffer.close_episode()
        self._shared[kind] = digest

    def has_shared(self, kind: str) -> bool:
        """Whether the shared facts of a kind are in the log already."""
        return kind in self._shared

    @property
    def shared_digest(self) -> str:
        """The digest of what holds for every seed."""
        return hashlib.blake2b(
            "\n".join(sorted(self._shared.values())).encode(), digest_size=16
        ).hexdigest()

    def digest(self) -> str:
        """One digest for the whole log; two logs are equal when their digests are."""
        if not self.hashed:
            raise EventError("this log was made without digests")
        return combine_digests(self.shared_digest, self.digests)

    def close(self) -> None:
        """Hand what is still open to the sink, and wait until it is written."""
        for buffer in self._buffers.values():
            self._flush(buffer)
        if self._behind is not None:
            self._behind.wait()

    def scan(self, kind: str) -> pl.LazyFrame:
        """All rows of a kind kept in memory so far, in seed and row order, as a lazy table."""
        import polars as pl

        parts = [part.frame() for part in self._in_memory(kind)]
        rows = pl.concat(parts).lazy() if parts else empty_frame(self.kinds[kind]).lazy()
        return rows if self._in_order() else rows.sort("seed", maintain_order=True)

    def batches(self, kind: str, names: Sequence[str]) -> Iterator[dict[str, Values | float]]:
        """Some columns of a kind as numpy arrays (an enum by its code), part by part; a column
        that is one value throughout a part may be given as that value."""
        if not self._in_order():
            part = Part(self._opened_columns(kind), self.scan(kind).collect(), -1)
            yield part.arrays(names)
            return
        for part in self._in_memory(kind):
            yield part.arrays(names)

    def seeds(self) -> list[int]:
        """The seeds of the closed episodes, ascending."""
        return sorted(self.digests)

    def _in_order(self) -> bool:
        return list(self.digests) == self.seeds()

    def _in_memory(self, kind: str) -> list[Part]:
        if kind not in self.kinds:
            raise UnknownNameError("event", kind, self.kinds)
        buffer = self._buffers.get(kind)
        open_part = [] if buffer is None or not buffer.count else [buffer.part()]
        return [*self._parts.get(kind, []), *open_part]

    def _opened_columns(self, kind: str) -> Sequence[Column]:
        return (self._buffers.get(kind) or Buffer(self.kinds[kind], 1)).columns

    def _opened(self, kind: str, columns: Mapping[str, object]) -> Buffer:
        """The open part of a kind, which must have just these columns."""
        buffer = self._buffers.get(kind)
        if buffer is None:
            if kind not in self.kinds:
                near = near_miss(kind, self.kinds)
                raise EventError(
                    f"unknown event '{kind}'" + (f"; did you mean '{near}'?" if near else "")
                )
            buffer = Buffer(self.kinds[kind], min(self._rows_per_part, 1024))
            self._buffers[kind] = buffer
        if columns.keys() != buffer.names:
            _refuse_names(buffer.kind, columns.keys())
        return buffer

    def _flush(self, buffer: Buffer) -> None:
        if not buffer.count:
            return
        if self.hashed:
            buffer.hash_new_rows()
        self._keep(buffer.kind.name, buffer.part())
        buffer.count = buffer.hashed = 0

    def _keep(self, kind: str, part: Part) -> None:
        if self._behind is None:
            self._parts.setdefault(kind, []).append(part)
        else:
            self._behind.write(kind, part)


def combine_digests(shared: str, digests: Mapping[int, str]) -> str:
    """The digest of a log from that of its shared facts and those of its episodes."""
    lines = [shared, *(f"{seed}={digests[seed]}" for seed in sorted(digests))]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


def _refuse_names(kind: EventKind, given: Iterable[str]) -> None:
    known = {column.name for column in kind.columns}
    missing, unknown = sorted(known - set(given)), sorted(set(given) - known)
    raise EventError(f"event '{kind.name}': missing columns {missing}, unknown columns {unknown}")


__all__ = ["NO_SEED", "Column", "EventKind", "EventLog", "LogReader", "Sink", "empty_frame"]
