"""What metrics read from a supply-chain log: the books of every seed, step and seat as arrays.

All arrays are (seeds, steps, seats). `Kept` is the base of metrics over them: pooled over the run
(`by=run`) or one value per step (`by=step`). The formulas are re-derived from the paper's prose
and tables, not its code: values do not compare with the published table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from marketeval.core.errors import UsageError
from marketeval.metrics.series import Part, divide, tidy_rows
from marketeval.metrics.tables import Floats, Integers, Mask, remembered, seeds
from marketeval.metrics.text import text_form
from marketeval.metrics.windows import Windows

if TYPE_CHECKING:
    import polars as pl

    from marketeval.core.log import LogReader

By = Literal["run", "step"]
ACCOUNT = (
    "opening", "spend", "revenue", "holding", "interest", "funds", "cogs", "inventory_cost",
    "inventory_units",
)  # fmt: skip
SHELF = ("sold", "empty_listed", "empty_unlisted", "partial", "outcompeted")
INVALID = "invalid_format"
OVERSPENT = "overspent"


@dataclass(frozen=True, slots=True)
class Books:
    """The books; `columns` by name, see `events.supply_chain` and `read` for their meaning."""

    seeds: Sequence[int]
    seats: Sequence[str]
    horizon: int
    funds: int
    columns: Mapping[str, Floats]
    solvent: Mask

    def __getitem__(self, name: str) -> Floats:
        return self.columns[name]

    def sums(self, name: str, by: By) -> Floats:
        """Sums over the run, shape (seeds, 1, seats), or the steps themselves."""
        values = self.columns[name]
        return values if by == "step" else np.asarray(values.sum(axis=1, keepdims=True))

    @property
    def profit(self) -> Floats:
        """Cash profit of each step: revenue less spending, holding cost and interest."""
        out = self["spend"] + self["holding"] + self["interest"]
        return self["revenue"] - out


def books(log: LogReader) -> Books:
    """The books of a log; UsageError if it is no log of a supply-chain economy."""
    return remembered(log, "books", lambda: read(log))


def read(log: LogReader) -> Books:
    """Columns: those of `account` and `shelf`; `asked` and `counted` (units asked in the final
    round, in all and in bids that count); `won`, `paid`, `worth` (units won, what was paid for
    them, and their base value); `bids`, `overspent`, `invalid`, `lines`, `void_lines` (of the bids
    of all rounds); `answers`, `silent`, `listed`, `void_prices` (retail answers, those that were
    none, prices that count and that do not)."""
    import polars as pl

    try:
        economy = log.scan("economy").collect()
    except Exception as error:
        raise UsageError(f"the log is not one of a supply-chain economy: {error}") from None
    if not economy.height:
        raise UsageError("the log has no row 'economy': expected a supply-chain economy")
    horizon, last = int(economy["horizon"][0]), int(economy["rounds"][0]) - 1
    table = log.scan("retailer").unique("agent", keep="first").sort("agent").collect()
    every = seeds(log)
    shape = (len(every), horizon, table.height)
    columns: dict[str, Floats] = {}

    def add(rows: pl.LazyFrame, names: Mapping[str, pl.Expr]) -> None:
        sums = [one.cast(pl.Float64).sum().alias(name) for name, one in names.items()]
        found = rows.group_by("seed", "step", "agent").agg(sums).collect()
        place = _places(found, every)
        for name in names:
            values = np.zeros(shape)
            values[place] = found[name].to_numpy()
            columns[name] = values

    base = log.scan("item").unique("item", keep="first").select("item", "base_price")
    add(log.scan("account"), {name: pl.col(name) for name in (*ACCOUNT, "solvent")})
    add(log.scan("shelf"), {name: pl.col(name) for name in SHELF})
    state = pl.col("state").cast(pl.String)
    final = pl.col("round") == last
    add(
        log.scan("bid"),
        {
            "asked": pl.col("asked") * final,
            "valid": (state == "valid") & final,
            "bids": pl.col("round") >= 0,
            "overspent": state == OVERSPENT,
            "invalid": state == INVALID,
            "lines": pl.col("lines"),
            "void_lines": pl.col("void_lines"),
        },
    )
    add(
        log.scan("award").join(base, on="item", how="left"),
        {
            "won": pl.col("won"),
            "paid": pl.col("won") * pl.col("price"),
            "worth": pl.col("won") * pl.col("base_price"),
        },
    )
    add(
        log.scan("retail"),
        {
            "answers": pl.col("step") >= 0,
            "silent": ~pl.col("valid"),
            "listed": pl.col("listed"),
            "void_prices": pl.col("void_lines"),
        },
    )
    return Books(
        every,
        table["seat"].to_list(),
        horizon,
        int(economy["funds"][0]),
        columns,
        columns["solvent"] > 0,
    )


def _places(found: pl.DataFrame, every: Sequence[int]) -> tuple[Integers, Integers, Integers]:
    seed = np.searchsorted(np.array(every, np.int64), found["seed"].to_numpy())
    step, agent = (found[name].to_numpy().astype(np.int64) for name in ("step", "agent"))
    return np.asarray(seed, np.int64), step, agent


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A metric over the books: of the whole run, or of each step."""

    by: By = "run"

    def __post_init__(self) -> None:
        if self.by not in ("run", "step"):
            raise UsageError(f"{self}: by takes run or step, got '{self.by}'")

    def __str__(self) -> str:
        return text_form(self)

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """The metric's rows, ordered by seed, then step, then seat."""
        kept = books(log)
        return tidy(self, kept, self.measure(kept, log), self.by)

    def measure(self, books: Books, log: LogReader) -> Part:
        """Values of shape (seeds, steps or 1), or with a last axis for the seats."""
        raise NotImplementedError


def tidy(metric: object, books: Books, part: Part, by: By) -> pl.DataFrame:
    """The tidy table of a part; NaN gets the first of its reasons whose mask holds."""
    wide = part.values if part.values.ndim == 3 else part.values[..., None]
    texts: list[str | None] = [None, part.note]
    codes = np.where(np.isnan(wide), 0, 1)
    for mask, reason in reversed(list(part.reasons)):
        texts.append(reason)
        shaped = mask if mask.ndim == 3 else mask[..., None]
        codes[np.broadcast_to(shaped, wide.shape)] = len(texts) - 1
    steps = np.arange(books.horizon)
    windows = (
        Windows(steps, steps + 1, "step")
        if by == "step"
        else Windows(np.array([0]), np.array([books.horizon]), "all", series=False)
    )
    subjects: list[str | None] = [None] if part.values.ndim == 2 else [*books.seats]
    shown = np.ones(wide.shape, np.bool_)
    return tidy_rows(metric, windows, books.seeds, subjects, wide, shown, codes, texts)


def ratio(above: Floats, below: Floats, at_zero: float = np.nan) -> Floats:
    """Element by element; `at_zero` where `below` is 0.

    >>> ratio(np.array([1.0, 2.0]), np.array([4.0, 0.0]), 0.0)
    array([0.25, 0.  ])
    """
    return np.where(below == 0, at_zero, divide(above, np.asarray(below, np.float64)))
