"""Declared columns: what a table of the event log may hold, and the tables made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

Values = NDArray[Any]  # any: a column may hold numbers, truth values or text
Given = Values | float | Callable[[], Values]  # one value stands for all; a function for later
Type = Literal["int64", "int32", "int16", "int8", "float64", "bool", "text", "enum"]

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


SEED = Column("seed", "int64", "the episode's seed")
TURN = Column("turn", "int64", "place among the appends of the episode")


def storage(type_: Type) -> Any:  # any: numpy's dtype arguments
    """The numpy type in which a column is kept."""
    return {"text": object, "enum": np.int8}.get(type_, type_)


def frame(columns: Sequence[Column], given: Mapping[str, Given], rows: int) -> pl.DataFrame:
    """A table of `rows` rows; seed and turn come first. Arrays of numbers are not copied."""
    import polars as pl

    ordered = sorted(columns, key=lambda one: one.name not in ("seed", "turn"))
    return pl.DataFrame([series(column, given[column.name], rows) for column in ordered])


def series(column: Column, values: Given, rows: int) -> pl.Series:
    """One column as polars keeps it; an array of numbers is not copied."""
    import polars as pl

    if callable(values):
        values = values()
    if not isinstance(values, np.ndarray):
        return _constant(column, None if values != values else values, rows)
    if column.type == "text":
        return pl.Series(column.name, values.tolist(), pl.String)
    if column.type == "enum":
        names = pl.Series(column.values, dtype=pl.Enum(column.values))
        return names.gather(values.astype(np.uint32)).alias(column.name)
    one = pl.Series(column.name, values)
    if column.type == "float64" and column.nullable and np.isnan(values).any():
        one = one.fill_nan(None)
    return one.replace(NO_SEED, None) if column.name == "seed" else one


@lru_cache(maxsize=8)  # the parts of a long episode share what never changes
def _constant(column: Column, value: float | None, rows: int) -> pl.Series:
    """A column of one value throughout; None = NaN, which is null."""
    given = np.array([np.nan if value is None else value], storage(column.type))
    return series(column, given, 1).new_from_index(0, rows)


def empty_frame(kind: EventKind) -> pl.DataFrame:
    """A table of a kind with its columns and no rows."""
    columns = [*kind.columns, SEED, TURN]
    return frame(columns, {one.name: np.empty(0, storage(one.type)) for one in columns}, 0)
