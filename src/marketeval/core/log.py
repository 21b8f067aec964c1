"""The event log: everything that happened in an episode, as tables with declared columns.

Markets write it, metrics and reports read it, and neither side knows the other. A kind of event is
one table; each of its columns is declared with a type, a range and a line of prose. Every table
also carries `seed` and `turn`, the place of the row's `append` among all appends of the episode,
so that the order between kinds is kept. Nothing here depends on the clock or on the machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import kernel
from marketeval.core.errors import EventError, UnknownNameError, near_miss

if TYPE_CHECKING:
    import polars as pl

Values = NDArray[Any]  # any: a column may hold numbers, truth values or text
Type = Literal["int64", "int32", "int16", "int8", "float64", "bool", "text", "enum"]

_ACCEPTED = {"float64": "fiu", "bool": "b"}  # numpy's letters; all other numbers take "iu"
NO_SEED = -1  # the seed of what holds for every seed; null when the log is read


@dataclass(frozen=True, slots=True)
class Column:
    """One declared column. `low` and `high` bound numbers; `nullable` floats may be NaN (null).

    An `enum` is written as the code of one of `values` and read as its text.
    """

    name: str
    type: Type
    doc: str
    low: float | None = None
    high: float | None = None
    nullable: bool = False
    values: tuple[str, ...] = ()

    @property
    def is_integer(self) -> bool:
        """Whether values are whole numbers; an enum is one, by its code."""
        return self.type not in ("float64", "bool", "text")

    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest allowed value."""
        if self.type == "enum":
            return 0, len(self.values) - 1
        if self.type in ("float64", "bool", "text"):
            least, most = -np.inf, np.inf
        else:
            info = np.iinfo(self.type)
            least, most = info.min, info.max
        return (
            least if self.low is None else self.low,
            most if self.high is None else self.high,
        )


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of event: the declared columns of one table."""

    name: str
    doc: str
    columns: tuple[Column, ...]


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


@kernel
def _copy_integers(values: Values, target: Values, at: int, low: float, high: float) -> bool:
    fine = True
    for place in range(values.size):
        fine &= low <= values[place] <= high
        target[at + place] = values[place]
    return fine


@kernel
def _copy_floats(
    values: Values, target: Values, at: int, low: float, high: float, nan_allowed: bool
) -> bool:
    fine = True
    for place in range(values.size):
        value = values[place]
        fine &= low <= value <= high or (nan_allowed and value != value)
        target[at + place] = value
    return fine


class _Buffer:
    """The open part of one kind: a preallocated array per column."""

    def __init__(self, kind: EventKind, rows: int) -> None:
        self.kind = kind
        self.columns = [
            *kind.columns,
            Column("seed", "int64", "the episode's seed"),
            Column("turn", "int64", "place among the appends of the episode"),
        ]
        self.names = frozenset(column.name for column in kind.columns)
        self.arrays = [np.empty(rows, _storage(column.type)) for column in self.columns]
        self.bounds = [column.bounds() for column in self.columns]
        self.count = 0
        self.hashed = 0
        self.hashes: list[Any] = []  # any: hashlib publishes no type for its objects

    def room_for(self, more: int) -> None:
        size = self.arrays[0].size
        if self.count + more > size:
            size = max(2 * size, self.count + more)
            self.arrays = [
                np.concatenate([a, np.empty(size - a.size, a.dtype)]) for a in self.arrays
            ]

    def hash_new_rows(self) -> None:
        if self.hashed == self.count:
            return
        if not self.hashes:
            self.hashes = [hashlib.blake2b(digest_size=16) for _ in self.kind.columns]
        for column, values, running in zip(self.columns, self.arrays, self.hashes, strict=False):
            running.update(_bytes(column, values[self.hashed : self.count]))
        self.hashed = self.count

    def close_episode(self) -> str:
        """The digest of this kind's rows in the episode that ends here; '' if it has none."""
        self.hash_new_rows()
        parts = [
            f"{column.name}:{column.type}:{running.hexdigest()}"
            for column, running in zip(self.kind.columns, self.hashes, strict=False)
        ]
        self.hashes = []
        return f"{self.kind.name}({';'.join(parts)})" if parts else ""

    def frame(self) -> pl.DataFrame:
        return _frame(self.columns, [values[: self.count] for values in self.arrays])


class EventLog:
    """Writes episodes, one after the other, and can be read back.

    `append` copies before it returns. Parts close at `rows_per_part` rows and go to the sink, if
    there is one; without a sink everything stays in memory.
    """

    def __init__(
        self, kinds: Iterable[EventKind], *, sink: Sink | None = None, rows_per_part: int = 1 << 20
    ) -> None:
        self.kinds = {kind.name: kind for kind in kinds}
        self._buffers: dict[str, _Buffer] = {}
        self._sink = sink
        self._rows_per_part = rows_per_part
        self._parts: dict[str, list[pl.DataFrame]] = {}
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
        parts = sorted(filter(None, (buffer.close_episode() for buffer in self._buffers.values())))
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

    def pass_turns(self, count: int) -> None:
        """Let the next append be `count` turns later."""
        self._turn += count

    def _add(self, kind: str, columns: Mapping[str, Any], turns: Values | int) -> int:
        """Copy rows into the open part of a kind; how many there were."""
        buffer = self._buffers.get(kind) or self._open(kind)
        if columns.keys() != buffer.names:
            _refuse_names(buffer.kind, columns.keys())
        count = -1
        for name, value in columns.items():
            if isinstance(value, (np.ndarray, list, tuple)):
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
        for column, target, (low, high) in zip(
            buffer.kind.columns, buffer.arrays, buffer.bounds, strict=False
        ):
            value = columns[column.name]
            if (
                type(value) is np.ndarray and value.ndim == 1
            ):  # the quick way for arrays that fit; others below
                letter = value.dtype.kind
                if letter == "f" and column.type == "float64":
                    fine = _copy_floats(value, target, rows.start, low, high, column.nullable)
                elif letter == "i" and column.is_integer:
                    fine = _copy_integers(value, target, rows.start, low, high)
                else:
                    fine = False
                if fine:
                    continue
            _store(kind, column, (low, high), value, target, rows)
        buffer.arrays[-2][rows] = self._seed
        buffer.arrays[-1][rows] = turns
        buffer.count += count
        return count

    def shared(self, kind: str, /, **columns: Any) -> None:  # any: as in append
        """Add, once for all episodes of this log, what holds for every seed.

        The same facts may be offered again by each episode; other facts under the same kind are
        refused, since they would then not hold for every seed.
        """
        buffer = self._buffers.get(kind) or self._open(kind)
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
        return combine_digests(self.shared_digest, self.digests)

    def close(self) -> None:
        """Hand what is still open to the sink."""
        for buffer in self._buffers.values():
            self._flush(buffer)

    def scan(self, kind: str) -> pl.LazyFrame:
        """All rows of a kind kept in memory so far, in seed and row order, as a lazy table."""
        import polars as pl

        if kind not in self.kinds:
            raise UnknownNameError("event", kind, self.kinds)
        buffer = self._buffers.get(kind)
        parts = list(self._parts.get(kind, []))
        if buffer is not None and buffer.count:
            parts.append(buffer.frame())
        rows = pl.concat(parts).lazy() if parts else empty_frame(self.kinds[kind]).lazy()
        in_order = list(self.digests) == self.seeds()
        return rows if in_order else rows.sort("seed", maintain_order=True)

    def seeds(self) -> list[int]:
        """The seeds of the closed episodes, ascending."""
        return sorted(self.digests)

    def _open(self, kind: str) -> _Buffer:
        if kind not in self.kinds:
            near = near_miss(kind, self.kinds)
            raise EventError(
                f"unknown event '{kind}'" + (f"; did you mean '{near}'?" if near else "")
            )
        buffer = self._buffers[kind] = _Buffer(self.kinds[kind], min(self._rows_per_part, 1024))
        return buffer

    def _flush(self, buffer: _Buffer) -> None:
        if not buffer.count:
            return
        buffer.hash_new_rows()
        part = buffer.frame()
        if self._sink is None:
            self._parts.setdefault(buffer.kind.name, []).append(part)
        else:
            self._sink.write(buffer.kind.name, part)
        buffer.count = buffer.hashed = 0


def combine_digests(shared: str, digests: Mapping[int, str]) -> str:
    """The digest of a log from that of its shared facts and those of its episodes."""
    lines = [shared, *(f"{seed}={digests[seed]}" for seed in sorted(digests))]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


def empty_frame(kind: EventKind) -> pl.DataFrame:
    """A table of a kind with its columns and no rows."""
    buffer = _Buffer(kind, 1)
    return buffer.frame()


def _store(
    kind: str,
    column: Column,
    bounds: tuple[float, float],
    value: Any,  # any: what a caller handed in; this function is what checks it
    target: Values,
    rows: slice,
) -> None:
    if column.type == "text":
        is_many = isinstance(value, (list, tuple, np.ndarray))
        texts = value if is_many else [value] * (rows.stop - rows.start)
        if not all(isinstance(one, str) or (one is None and column.nullable) for one in texts):
            raise EventError(f"event '{kind}': expected text in '{column.name}', got {texts!r:.80}")
        target[rows] = texts
        return
    if isinstance(value, (list, tuple)):
        value = np.asarray(value) if len(value) else target[:0]
    is_array = isinstance(value, np.ndarray)
    if is_array and value.ndim != 1:
        raise EventError(
            f"event '{kind}': column '{column.name}' takes one dimension, got shape {value.shape}"
        )
    letter = value.dtype.kind if is_array else _scalar_kind(value)
    if letter not in _ACCEPTED.get(column.type, "iu"):
        raise EventError(
            f"event '{kind}': column '{column.name}' takes {column.type}, got {value!r:.80}"
        )
    low, high = bounds
    if column.type == "bool":
        target[rows] = value
        return
    if not is_array:
        fine = low <= value <= high or (column.nullable and value != value)
        if fine:
            target[rows] = value
    elif column.type == "float64":
        fine = _copy_floats(value, target, rows.start, low, high, column.nullable)
    else:
        fine = _copy_integers(value, target, rows.start, low, high)
    if not fine:
        raise EventError(
            f"event '{kind}': column '{column.name}' takes {low} to {high}"
            f"{' or null' if column.nullable else ''}, got {value!r:.120}"
        )


def _scalar_kind(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "b"
    if isinstance(value, (int, np.integer)):
        return "i"
    return "f" if isinstance(value, (float, np.floating)) else "O"


def _refuse_names(kind: EventKind, given: Iterable[str]) -> None:
    known = {column.name for column in kind.columns}
    missing, unknown = sorted(known - set(given)), sorted(set(given) - known)
    raise EventError(f"event '{kind.name}': missing columns {missing}, unknown columns {unknown}")


def _storage(type_: Type) -> Any:  # any: numpy's dtype arguments
    return {"text": object, "enum": np.int8}.get(type_, type_)


def _bytes(column: Column, values: Values) -> bytes:
    if column.type == "text":
        texts = ("null;" if one is None else f"{len(one)}:{one}" for one in values)
        return "".join(texts).encode(errors="surrogatepass")
    if column.type == "float64":
        values = values + 0.0  # -0.0 and 0.0 are one value, and so are all NaN
        values[np.isnan(values)] = np.nan
    return values.tobytes()


def _frame(columns: Sequence[Column], arrays: Sequence[Values]) -> pl.DataFrame:
    import polars as pl

    series: list[pl.Series] = []
    for column, values in zip(columns, arrays, strict=True):
        if column.type == "text":
            one = pl.Series(column.name, values.tolist(), pl.String)
        elif column.type == "enum":
            names = pl.Series(column.values, dtype=pl.Enum(column.values))
            one = names.gather(values.astype(np.uint32)).alias(column.name)
        else:
            one = pl.Series(column.name, values.copy())
            if column.type == "float64" and column.nullable:
                one = one.fill_nan(None)
            if column.name == "seed":
                one = one.replace(NO_SEED, None)
        series.append(one)
    return pl.DataFrame([*series[-2:], *series[:-2]])
