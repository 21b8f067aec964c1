"""Parts of the event log: rows open for more, rows that are kept, and rows on their way out."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from marketeval.core.checksum import Checksum
from marketeval.core.columns import SEED, TURN, Column, EventKind, Given, Values, frame, storage
from marketeval.core.compiled import kernel
from marketeval.core.errors import EventError

if TYPE_CHECKING:
    import polars as pl

ACCEPTED = {"float64": "fiu", "bool": "b"}  # numpy's letters; all other numbers take "iu"
SOON = 1 << 16  # rows that are written at once, unless others wait
WAITING = 1  # parts that may wait to be written
FLOAT, INTEGER = np.dtype(np.float64), np.dtype(np.int64)


class Part:
    """Rows of one kind: arrays, single values and functions until a table is asked for.

    `given` may also be that table; then `rows` is taken from it.
    """

    def __init__(
        self, columns: Sequence[Column], given: Mapping[str, Given] | pl.DataFrame, rows: int
    ) -> None:
        self.columns = columns
        self._given: Mapping[str, Given] = given if isinstance(given, Mapping) else {}
        self._frame = None if isinstance(given, Mapping) else given
        self.rows = rows if self._frame is None else self._frame.height

    def frame(self) -> pl.DataFrame:
        """The rows as a table."""
        if self._frame is None:
            self._frame = frame(self.columns, self._given, self.rows)
            self._given = {}
        return self._frame

    def arrays(self, names: Sequence[str]) -> dict[str, Values | float]:
        """Some columns as arrays, or as the value that they have throughout."""
        if self._frame is None:
            given = {name: self._given[name] for name in names}
            return {name: one() if callable(one) else one for name, one in given.items()}
        return {name: as_array(self._frame[name]) for name in names}

    def slice(self, start: int, stop: int) -> Part:
        """The rows from `start` to `stop`."""
        if start == 0 and stop >= self.rows:
            return self
        given = {
            name: one[start:stop] if isinstance(one, np.ndarray) else one
            for name, one in self._given.items()
        }
        return Part(self.columns, given, min(stop, self.rows) - start)


def as_array(values: pl.Series) -> Values:
    """A column of a table as a numpy array; null is NaN, or -1 in a column of whole numbers."""
    import polars as pl

    if isinstance(values.dtype, pl.Enum):
        values = values.to_physical()
    if values.dtype.is_integer() and values.null_count():
        values = values.fill_null(-1)
    return values.to_numpy()


class Sums:
    """The running checksums of a kind's columns in the open episode."""

    def __init__(self, kind: EventKind) -> None:
        self._kind = kind
        self._running: list[Any] = []  # any: a checksum, or hashlib's, which has no public type

    def update(self, given: Mapping[str, Any], rows: int) -> None:
        """Go on with some rows; a value that is no array stands for all of them."""
        if not self._running:
            self._running = [
                hashlib.blake2b(digest_size=16) if column.type == "text" else Checksum()
                for column in self._kind.columns
            ]
        for column, running in zip(self._kind.columns, self._running, strict=True):
            values = given[column.name]
            if column.type == "text":
                running.update(_as_bytes(values if len(values) == rows else [values] * rows))
            elif isinstance(values, np.ndarray):
                running.update(values.astype(storage(column.type), copy=False))
            else:
                one = np.array([values], storage(column.type))[0]
                running.repeat(one, rows)

    def close(self) -> str:
        """The digest of the rows since the last time; '' if there are none."""
        if not self._running:
            return ""
        whole = hashlib.blake2b(digest_size=16)
        for running in self._running:
            whole.update(running.digest())
        self._running = []
        names = ";".join(f"{column.name}:{column.type}" for column in self._kind.columns)
        return f"{self._kind.name}({names})={whole.hexdigest()}"


class Buffer:
    """The open part of one kind: a preallocated array per column."""

    def __init__(self, kind: EventKind, rows: int) -> None:
        self.kind = kind
        self.columns = [*kind.columns, SEED, TURN]
        self.names = frozenset(column.name for column in kind.columns)
        self.arrays = [np.empty(rows, storage(column.type)) for column in self.columns]
        self.bounds = [column.bounds() for column in self.columns]
        self.count = 0
        self.hashed = 0
        self.sums = Sums(kind)

    def room_for(self, more: int) -> None:
        """Make room for more rows."""
        size = self.arrays[0].size
        if self.count + more > size:
            size = max(2 * size, self.count + more)
            for place, old in enumerate(self.arrays):
                self.arrays[place] = np.empty(size, old.dtype)
                self.arrays[place][: self.count] = old[: self.count]

    def hash_new_rows(self) -> None:
        """Take what came since the last time into the checksums."""
        if self.hashed == self.count:
            return
        new = slice(self.hashed, self.count)
        values = {one.name: a[new] for one, a in zip(self.columns, self.arrays, strict=True)}
        self.sums.update(values, self.count - self.hashed)
        self.hashed = self.count

    def close_episode(self) -> str:
        """The digest of this kind's rows in the episode that ends here; '' if it has none."""
        self.hash_new_rows()
        return self.sums.close()

    def part(self) -> Part:
        """A copy of the rows so far."""
        given = {
            one.name: values[: self.count].copy()
            for one, values in zip(self.columns, self.arrays, strict=True)
        }
        return Part(self.columns, given, self.count)


class Behind:
    """Writes parts in order; large ones while the next are being made.

    An error of the writer is raised by the next `write`, or by `wait`.
    """

    def __init__(self, write: Callable[[str, pl.DataFrame], None]) -> None:
        self._write = write
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[None]] = deque()

    def write(self, kind: str, part: Part) -> None:
        """Write a part, now or soon."""
        if part.rows < SOON and not self._waiting:
            self._write(kind, part.frame())
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1)
        while len(self._waiting) >= WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(lambda: self._write(kind, part.frame())))

    def wait(self) -> None:
        """Return when everything is written."""
        try:
            while self._waiting:
                self._waiting.popleft().result()
        finally:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
                self._pool = None
                self._waiting.clear()


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


def store(
    kind: str,
    column: Column,
    bounds: tuple[float, float],
    value: Any,  # any: what a caller handed in; this function is what checks it
    target: Values,
    rows: slice,
) -> None:
    """Check the values of one column and copy them into rows of an array.

    The kernels are given one type of values: a process loads them once for every other.
    """
    low, high = bounds
    if type(value) is np.ndarray and value.ndim == 1:
        # the quick way for arrays of the column's kind; others below
        letter, fine = value.dtype.kind, None
        if letter == "f" and column.type == "float64":
            floats = np.ascontiguousarray(value, FLOAT)
            bottom, top = float(low), float(high)
            fine = _copy_floats(floats, target, rows.start, bottom, top, column.nullable)
        elif letter == "i" and column.is_integer:
            integers = np.ascontiguousarray(value, INTEGER)
            fine = _copy_integers(integers, target, rows.start, low, high)
        if fine:
            return
        if fine is not None:
            raise EventError(_out_of_bounds(kind, column, bounds, value))
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
    if letter not in ACCEPTED.get(column.type, "iu"):
        raise EventError(
            f"event '{kind}': column '{column.name}' takes {column.type}, got {value!r:.80}"
        )
    if column.type == "bool":
        target[rows] = value
        return
    if is_array and not (letter == "u" and value.max(initial=0) > high):
        numbers = np.asarray(value, FLOAT if column.type == "float64" else INTEGER)
        store(kind, column, bounds, numbers, target, rows)
    elif not is_array and (low <= value <= high or (column.nullable and value != value)):
        target[rows] = value
    else:
        raise EventError(_out_of_bounds(kind, column, bounds, value))


def check(kind: str, column: Column, bounds: tuple[float, float], given: Any) -> Any:
    """The values of a column of numbers, checked (later, for a function) and of its type.

    any: as in `store`
    """
    if callable(given):
        return lambda: check(kind, column, bounds, given())
    if isinstance(given, (int, float)):
        return _one(kind, column, bounds, given)
    if not isinstance(given, np.ndarray):
        return _one.__wrapped__(kind, column, bounds, given)
    if given.dtype.kind not in ACCEPTED.get(column.type, "iu") or column.type == "text":
        raise EventError(
            f"event '{kind}': column '{column.name}' takes {column.type}, got {given!r:.80}"
        )
    if column.type != "bool" and given.size:
        low, high = given.min(), given.max()
        if low != low and column.nullable:
            low, high = np.fmin.reduce(given), np.fmax.reduce(given)
            low, high = (bounds[0], bounds[1]) if low != low else (low, high)
        if not bounds[0] <= low <= high <= bounds[1]:
            raise EventError(_out_of_bounds(kind, column, bounds, given))
    return given.astype(storage(column.type), copy=False)


@lru_cache(maxsize=256, typed=True)  # what holds throughout an episode often holds in all of them
def _one(kind: str, column: Column, bounds: tuple[float, float], value: Any) -> Any:
    """One value, checked and of its column's type (any: as in `store`)."""
    target = np.empty(1, storage(column.type))
    store(kind, column, bounds, value, target, slice(0, 1))
    return target[0]


def _out_of_bounds(kind: str, column: Column, bounds: tuple[float, float], value: object) -> str:
    low, high = bounds
    return (
        f"event '{kind}': column '{column.name}' takes {low} to {high}"
        f"{' or null' if column.nullable else ''}, got {value!r:.120}"
    )


def _scalar_kind(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "b"
    if isinstance(value, (int, np.integer)):
        return "i"
    return "f" if isinstance(value, (float, np.floating)) else "O"


def _as_bytes(texts: Sequence[str | None]) -> bytes:
    parts = ("null;" if one is None else f"{len(one)}:{one}" for one in texts)
    return "".join(parts).encode(errors="surrogatepass")
