"""How wealth and sales are spread over all seats of a supply chain, on a named base, and how the
seats' metrics go together (Market-Bench, Figure 3 and section 4.3)."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from marketeval.core.errors import UsageError
from marketeval.metrics.base import metric, parse_metric
from marketeval.metrics.books import Books, Kept, ratio
from marketeval.metrics.concentration import concentration_ratio, hhi
from marketeval.metrics.inequality import gini
from marketeval.metrics.ranking import spearman_rho
from marketeval.metrics.series import Part
from marketeval.metrics.tables import Floats

if TYPE_CHECKING:
    from marketeval.core.log import LogReader

Index = Literal["gini", "theil_t", "theil_l", "cv", "hhi", "cr4"]
Base = Literal["funds", "step_revenue", "cumulative_revenue"]
BASES = {
    "funds": "funds at the end of the step",
    "step_revenue": "revenue of the step",
    "cumulative_revenue": "revenue so far",
}


def theil_t(values: ArrayLike) -> Floats:
    """Theil's T: mean of (y / mu) ln(y / mu), 0 ln 0 = 0; from 0 to ln n; 0 if all are 0.

    >>> round(float(theil_t([1, 2, 3, 4])), 6)
    0.10644
    """
    y = np.asarray(values, np.float64)
    relative = ratio(y, np.broadcast_to(y.mean(axis=-1, keepdims=True), y.shape), 0.0)
    logs = np.log(np.where(relative > 0, relative, 1.0))
    return np.asarray((relative * logs).mean(axis=-1))


def theil_l(values: ArrayLike) -> Floats:
    """Theil's L: mean of ln(mu / y), from 0; NaN if any amount is 0."""
    y = np.asarray(values, np.float64)
    positive = np.asarray((y > 0).all(axis=-1))
    safe = np.where(positive[..., None], y, 1.0)
    logs = (np.log(safe.mean(axis=-1, keepdims=True)) - np.log(safe)).mean(axis=-1)
    return np.where(positive, logs, np.nan)


def variation(values: ArrayLike) -> Floats:
    """Coefficient of variation: population standard deviation over mean; 0 if all are 0.

    >>> round(float(variation([1, 2, 3, 4])), 6)
    0.447214
    """
    y = np.asarray(values, np.float64)
    return ratio(y.std(axis=-1), y.mean(axis=-1), 0.0)


@metric
class MarketIndex(Kept):
    """An index of inequality or concentration over all seats at the start, on a named base.

    gini (0 to 1 - 1/n), theil_t, theil_l, cv: 0 where the base sums to 0. hhi and cr4, on shares
    from 0 to 1: null there. Negative amounts count as 0, and the note says so. The base is funds
    at the end of the step, or revenue of the step or so far; `by=run` is the last step.
    """

    index: Index = field(default="gini", kw_only=False)
    base: Base = "funds"

    def measure(self, books: Books, log: LogReader) -> Part:
        """The market's index."""
        amounts = {
            "funds": books["funds"],
            "step_revenue": books["revenue"],
            "cumulative_revenue": np.cumsum(books["revenue"], axis=1),
        }[self.base]
        if self.by == "run":
            amounts = amounts[:, -1:]
        y = np.maximum(amounts, 0.0)
        nothing = np.asarray(y.sum(axis=-1) == 0)
        shares = ratio(y, np.broadcast_to(y.sum(axis=-1, keepdims=True), y.shape))
        if self.index == "gini":
            values = np.where(nothing, 0.0, gini(y))
        elif self.index == "hhi":
            values = hhi(shares)
        elif self.index == "cr4":
            values = concentration_ratio(shares, 4)
        else:
            formula = {"theil_t": theil_t, "theil_l": theil_l, "cv": variation}[self.index]
            values = np.where(nothing, 0.0, formula(y))
        base = BASES[self.base]
        return Part(
            np.asarray(values),
            [
                (nothing & np.isnan(values), f"no {base}"),
                (np.isnan(values), f"a seat has no {base}"),
                (np.asarray((amounts < 0).any(axis=-1)), f"{base}, negative ones as 0"),
            ],
            note=base,
        )


@metric
class ActiveRatio(Kept):
    """Share of the seats at the start that sold a unit in the step (or won, bid validly, lived).

    `by=run` is the mean over steps.
    """

    active: Literal["sold", "won", "valid_bid", "solvent"] = "sold"

    def measure(self, books: Books, log: LogReader) -> Part:
        """The market's ratio."""
        name = "valid" if self.active == "valid_bid" else self.active
        values = (books[name] > 0).mean(axis=-1)
        if self.by == "run":
            values = values.mean(axis=1, keepdims=True)
        return Part(values, note=f"active = {self.active}")


@metric
class RankMobility(Kept):
    """How much the order by funds changes from step to step, from 0 (not) to 1 (turned round).

        (1 - Spearman's rho of funds at t - 1 and t) / 2

    Undefined at the first step, where all start alike, and where all are tied; `by=run` is the
    mean over the other steps.
    """

    def measure(self, books: Books, log: LogReader) -> Part:
        """The market's mobility."""
        funds = books["funds"]
        moved = (1.0 - spearman_rho(funds[:, :-1], funds[:, 1:])) / 2.0
        if self.by == "step":
            values = np.concatenate([np.full((funds.shape[0], 1), np.nan), moved], axis=1)
        else:
            known = ~np.isnan(moved)
            total = np.where(known, moved, 0.0).sum(axis=1, keepdims=True)
            values = ratio(total, known.sum(axis=1, keepdims=True).astype(np.float64))
        return Part(values, [(np.isnan(values), "no two steps with an order by funds")])


@metric
class ProfitCorrelation(Kept):
    """Spearman's rho over the seats of a run between profit and another metric of this family.

    The table of section 4.3: `ProfitCorrelation(FillRate)`, StockoutRate, BidEfficiency, MMS.
    Seats without a value are left out; null with fewer than two, or all tied. `of` is another
    metric in place of profit.
    """

    other: str = field(default="FillRate", kw_only=False)
    of: str = "Profit"

    def __post_init__(self) -> None:
        if self.by != "run":
            raise UsageError(f"{self}: is over a whole run, by=step is not there")
        for name in (self.of, self.other):
            found = parse_metric(name)
            fits = isinstance(found, Kept) and not isinstance(found, ProfitCorrelation)
            if not fits or getattr(found, "by", "") != "run":
                raise UsageError(f"{self}: {name} has no value per seat and run")

    def measure(self, books: Books, log: LogReader) -> Part:
        """The market's correlation."""
        sides = []
        for name in (self.of, self.other):
            found = parse_metric(name)
            assert isinstance(found, Kept)  # checked above
            values = found.measure(books, log).values
            if values.ndim != 3:
                raise UsageError(f"{self}: {name} has no value per seat")
            sides.append(values)
        rho = spearman_rho(*sides)
        return Part(rho, [(np.isnan(rho), "fewer than two seats, or all tied")])
