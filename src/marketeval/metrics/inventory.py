"""How well goods were procured and served: turnover, fill, stockouts, bids, order stability.

Market-Bench, appendices C.2 and D. A seat that hardly takes part looks stable and efficient:
read IEI and OSI beside UnitsSold and ActiveRatio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from marketeval.metrics.base import metric
from marketeval.metrics.books import Books, Kept, ratio
from marketeval.metrics.series import Part
from marketeval.metrics.tables import Floats

if TYPE_CHECKING:
    from marketeval.core.log import LogReader

NO_REQUEST = "nothing was requested of the seat"
Scope = Literal["visible", "listed"]


def order_stability(orders: ArrayLike, sales: ArrayLike) -> Floats:
    """min(1, Var(sales) / Var(orders)), the last axis is time: 1 / max(1, bullwhip ratio).

    1 with fewer than two steps and where orders do not vary; 0 where only orders vary.

    >>> float(order_stability([220, 260, 180, 240], [200, 210, 190, 205]))
    0.0625
    """
    ordered, sold = np.asarray(orders, np.float64), np.asarray(sales, np.float64)
    if ordered.shape[-1] < 2:
        return np.ones(ordered.shape[:-1])
    return np.minimum(1.0, ratio(sold.var(axis=-1), ordered.var(axis=-1), 1.0))


@metric
class IEI(Kept):
    """Inventory efficiency index, from 0 to 1: turnover ITR in the bounded form ITR / (1 + ITR).

        COGS / (COGS + mean end-of-step inventory at cost)

    Where both are 0 it is 0, with the note inactive.
    """

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' indices."""
        cost = books.sums("cogs", self.by)
        stock = books["inventory_cost"]
        if self.by == "run":
            stock = np.asarray(stock.mean(axis=1, keepdims=True))
        values = ratio(cost, cost + stock, 0.0)
        return Part(values, [(cost + stock == 0, "inactive: neither sales nor stock")])


@metric
class FillRate(Kept):
    """Units sold over units requested, from 0 to 1; null where nothing was requested.

    `scope=listed` leaves out requests of empty shelves whose item the seat did not list.
    """

    scope: Scope = "visible"

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' rates."""
        requested = _requested(books, self)
        values = ratio(books.sums("sold", self.by), requested)
        return Part(values, [(requested == 0, NO_REQUEST)], note=_base(self.scope))


@metric
class StockoutRate(Kept):
    """Units requested of an empty shelf over units requested, from 0 to 1.

    FillRate + StockoutRate + PartialRate = 1.
    """

    scope: Scope = "visible"

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' rates."""
        requested = _requested(books, self)
        empty = books.sums("empty_listed", self.by)
        if self.scope == "visible":
            empty = empty + books.sums("empty_unlisted", self.by)
        return Part(ratio(empty, requested), [(requested == 0, NO_REQUEST)], note=_base(self.scope))


@metric
class PartialRate(Kept):
    """Units requested beyond the last ones on a shelf over units requested, from 0 to 1."""

    scope: Scope = "visible"

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' rates."""
        requested = _requested(books, self)
        values = ratio(books.sums("partial", self.by), requested)
        return Part(values, [(requested == 0, NO_REQUEST)], note=_base(self.scope))


@metric
class UnitsSold(Kept):
    """Units sold; stands beside IEI and OSI, which say little of who sells nothing."""

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' units."""
        return Part(books.sums("sold", self.by))


@metric
class WinShare(Kept):
    """Units won over units asked for in final bids, from 0 to 1; void bids count as asked."""

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' shares."""
        asked = books.sums("asked", self.by)
        return Part(_win_share(books, self), [(asked == 0, "nothing was asked for")])


@metric
class PriceDiscipline(Kept):
    """Base value of what was won over what was paid for it, from 0 to 1; null if nothing won."""

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' ratios."""
        paid = books.sums("paid", self.by)
        return Part(ratio(books.sums("worth", self.by), paid), [(paid == 0, "nothing was won")])


@metric
class BidEfficiency(Kept):
    """WinShare times PriceDiscipline, from 0 to 1: asked for, obtained, at what cost.

        sum a / sum q  *  sum a B / sum paid

    0 where nothing was asked for or won. `win_share=true` is the first factor alone.
    """

    win_share: bool = False

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' efficiencies."""
        share = _win_share(books, self)
        if self.win_share:
            return Part(share, note="share of units asked for that were won")
        worth, paid = books.sums("worth", self.by), books.sums("paid", self.by)
        return Part(share * ratio(worth, paid, 0.0), note="win share times price discipline")


@metric
class OSI(Kept):
    """Order stability index, from 0 to 1: min(1, Var(units sold) / Var(units ordered)).

    Over the steps so far; 1 at the first. `orders` are those asked for in final bids, or won.
    """

    orders: Literal["asked", "won"] = "asked"

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' indices."""
        ordered, sold = (np.moveaxis(books[name], 1, 2) for name in (self.orders, "sold"))
        ends = range(1, books.horizon + 1) if self.by == "step" else (books.horizon,)
        values = [order_stability(ordered[..., :end], sold[..., :end]) for end in ends]
        return Part(np.stack(values, axis=1), note=f"units {self.orders} and sold")


@metric
class OverbidRate(Kept):
    """Bids that cost more than the seat's funds over all its bids, every round counted."""

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' rates."""
        bids = books.sums("bids", self.by)
        return Part(ratio(books.sums("overspent", self.by), bids), [(bids == 0, "was not asked")])


@metric
class InvalidRate(Kept):
    """Answers at either stage that could not be read (or never came) over all it was asked for."""

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' rates."""
        asked = books.sums("bids", self.by) + books.sums("answers", self.by)
        bad = books.sums("invalid", self.by) + books.sums("silent", self.by)
        return Part(ratio(bad, asked), [(asked == 0, "was not asked")])


@metric
class VoidLineRate(Kept):
    """Lines that do not count (an unknown item, a bid below the base price, a fraction, ...) over
    all lines of its bids of every round and of its offers."""

    def measure(self, books: Books, log: LogReader) -> Part:
        """The seats' rates."""
        void = books.sums("void_lines", self.by) + books.sums("void_prices", self.by)
        lines = books.sums("lines", self.by) + books.sums("listed", self.by)
        lines = lines + books.sums("void_prices", self.by)
        return Part(ratio(void, lines), [(lines == 0, "no line was written")])


def _requested(books: Books, metric: FillRate | StockoutRate | PartialRate) -> Floats:
    names = ["sold", "partial", "empty_listed"]
    if metric.scope == "visible":
        names.append("empty_unlisted")
    return np.asarray(sum(books.sums(name, metric.by) for name in names))


def _win_share(books: Books, metric: WinShare | BidEfficiency) -> Floats:
    asked = books.sums("asked", metric.by)
    empty = 0.0 if isinstance(metric, BidEfficiency) else np.nan
    return ratio(books.sums("won", metric.by), asked, empty)


def _base(scope: Scope) -> str:
    return "units requested of a shelf that the buyer saw" + (
        "" if scope == "visible" else ", listed items only"
    )
