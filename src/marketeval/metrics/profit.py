"""What retailers earned: profit, margin, risk, capital (Market-Bench, appendix C.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from marketeval.core.errors import UsageError
from marketeval.metrics.base import metric
from marketeval.metrics.books import Books, Kept, ratio
from marketeval.metrics.series import Part
from marketeval.metrics.tables import Floats

if TYPE_CHECKING:
    from marketeval.core.log import LogReader

NO_SALES = "no_sales: nothing was sold, so the margin is 0"
Basis = Literal["cash", "accrual"]


def sharpe(profit: ArrayLike) -> Floats:
    """Mean over standard deviation (n - 1) of profits per step, the last axis; no unit.

    NaN with fewer than two steps, and where the deviation is 0 and the mean is not; 0 where both
    are 0.

    >>> round(float(sharpe([1000, 1500, 500, 2000])), 6)
    1.936492
    """
    values = np.asarray(profit, np.float64)
    if values.shape[-1] < 2:
        return np.full(values.shape[:-1], np.nan)
    constant = (values == values[..., :1]).all(axis=-1)
    mean = values.mean(axis=-1)
    deviation = np.where(constant, 0.0, values.std(axis=-1, ddof=1))
    return np.where(mean == 0, 0.0, ratio(mean, deviation))


def drawdown(wealth: ArrayLike) -> Floats:
    """The largest fall from an earlier peak, as a part of that peak; the last axis is time.

    >>> float(drawdown([100.0, 120.0, 90.0, 130.0]))
    0.25
    """
    values = np.asarray(wealth, np.float64)
    peak = np.maximum.accumulate(values, axis=-1)
    return np.asarray(ratio(peak - values, peak, 0.0).max(axis=-1))


@metric
class Profit(Kept):
    """Profit in money: of the run (the paper's Pi), or of each step.

        pi_t = revenue - spend - holding - interest,  Pi = sum of pi_t = F_T - F_0

    `basis=accrual` takes the cost of the goods sold in place of what was spent.
    """

    basis: Basis = "cash"

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' profits."""
        return Part(_profit(books, self), note=f"{self.basis} basis")


@metric
class NPM(Kept):
    """Net profit margin: Pi / revenue, at most 1; 0 with the note no_sales where nothing sold."""

    basis: Basis = "cash"

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' margins."""
        revenue = books.sums("revenue", self.by)
        values = ratio(_profit(books, self), revenue, 0.0)
        return Part(values, [(revenue == 0, NO_SALES)], note=f"{self.basis} profit over revenue")


@metric
class RAR(Kept):
    """Risk-adjusted return: mean over standard deviation (n - 1) of the profits per step.

    A Sharpe ratio with no risk-free rate; `by=step` is over the steps so far. Undefined before
    two steps, and where profit is constant but not 0.

    `across_runs=true` is over the profits of the runs (seeds) instead: one value per seat, which
    stands with the first seed; there is no interval to it.
    """

    basis: Basis = "cash"
    across_runs: bool = False

    def __post_init__(self) -> None:
        Kept.__post_init__(self)
        if self.across_runs and self.by != "run":
            raise UsageError(f"{self}: across_runs=true is over whole runs, by=step is not there")

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' ratios."""
        if self.across_runs:
            runs = _steps(books, self.basis).sum(axis=1)
            values = np.full((len(books.seeds), 1, len(books.seats)), np.nan)
            values[0, 0] = sharpe(runs.T)
            later = np.arange(len(books.seeds))[:, None, None] > 0
            return Part(
                values,
                [
                    (later & np.isnan(values), "one value over all runs, given with the first"),
                    (np.isnan(values), "fewer than 2 runs, or the same profit in every run"),
                ],
                note=f"{self.basis} profit per run, over {len(books.seeds)} runs",
            )
        step = np.moveaxis(_steps(books, self.basis), 1, 2)
        ends = range(1, books.horizon + 1) if self.by == "step" else (books.horizon,)
        values = np.stack([sharpe(step[..., :end]) for end in ends], axis=1)
        few = np.array([end < 2 for end in ends])[None, :, None] & np.ones(values.shape, bool)
        return Part(
            values,
            [
                (few & np.isnan(values), "fewer than 2 steps"),
                (np.isnan(values), "profit is the same in every step"),
            ],
            note=f"{self.basis} profit per step",
        )


@metric
class Funds(Kept):
    """Money at the end of the step, or of the run."""

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' funds."""
        return Part(books["funds"] if self.by == "step" else books["funds"][:, -1:])


@metric
class Revenue(Kept):
    """Money taken in retail."""

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' revenues."""
        return Part(books.sums("revenue", self.by))


@metric
class CapitalEfficiency(Kept):
    """Profit over all money paid out: Pi / (spend + holding + interest); null if nothing was."""

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' efficiencies."""
        out = np.add.reduce([books.sums(n, self.by) for n in ("spend", "holding", "interest")])
        profit = books.sums("revenue", self.by) - out
        return Part(ratio(profit, out), [(out == 0, "nothing was paid out")])


@metric
class Drawdown(Kept):
    """Largest fall of end-of-step funds from an earlier peak, as a part of it; from 0 up.

    The start counts as a peak. Above 1 only where funds fell below 0. `by=step`: so far.
    """

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' drawdowns."""
        start = books["opening"][:, :1]
        path = np.moveaxis(np.concatenate([start, books["funds"]], axis=1), 1, 2)
        ends = range(1, books.horizon + 1) if self.by == "step" else (books.horizon,)
        return Part(np.stack([drawdown(path[..., : end + 1]) for end in ends], axis=1))


def _steps(books: Books, basis: Basis) -> Floats:
    if basis == "cash":
        return books.profit
    return books["revenue"] - books["cogs"] - books["holding"] - books["interest"]


def _profit(books: Books, metric: Profit | NPM) -> Floats:
    steps = _steps(books, metric.basis)
    return steps if metric.by == "step" else np.asarray(steps.sum(axis=1, keepdims=True))
