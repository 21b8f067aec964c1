"""What the scripted retailers share: two decisions over arrays, and a few sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.supply_chain import Bid, Briefing, Offer
from marketeval.core.market import Request

Integers = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]  # any: of whatever width


@dataclass(frozen=True, slots=True, kw_only=True)
class Retailer:
    """A retailer that bids its share of everything at the base price and sells at a mark-up.

    Subclasses change what they do differently. `markup` is on the base price, cut to what buyers
    accept.
    """

    slogan: str = "Good value for your money."
    markup: float = 1.5
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False

    async def act(self, request: Request) -> Bid | Offer:
        """A bid at the procurement stage, an offer at the retail stage."""
        briefing: Briefing = request.briefing
        if request.decision == "bid":
            return self.bid(request, briefing)
        return Offer(price=self.prices(request, briefing), slogan=self.words(request, briefing))

    def bid(self, request: Request, briefing: Briefing) -> Bid:
        """Units and price per item."""
        return bundle(briefing, briefing.base_price, briefing.funds)

    def prices(self, request: Request, briefing: Briefing) -> Integers:
        """A price for what is on the shelf, 0 for the rest."""
        return listed(briefing, briefing.base_price * self.markup)

    def words(self, request: Request, briefing: Briefing) -> str:
        """The slogan."""
        return self.slogan


def bundle(
    briefing: Briefing, price: Integers | Floats, budget: float, weight: Floats | None = None
) -> Bid:
    """As much of every item as a budget buys, in proportion to what is offered (times a weight).

    Prices are rounded to whole money at or above the base price; the cost never exceeds the
    budget, nor the funds.
    """
    unit = np.maximum(np.rint(price).astype(np.int64), briefing.base_price)
    share = briefing.quantity * (1.0 if weight is None else weight)
    value = float((share * unit).sum())
    budget = min(max(budget, 0.0), max(briefing.funds, 0))
    part = min(budget / value, 1.0) if value > 0 else 0.0
    quantity = np.floor(share * part + 1e-9).astype(np.int64)
    # what is left over buys one more of the items that were cut most, while it lasts
    more = np.flatnonzero(quantity + 1 <= share)
    more = more[np.argsort(quantity[more] - share[more] * part, kind="stable")]
    left = budget - float((quantity * unit).sum())
    quantity[more[np.cumsum(unit[more]) <= left]] += 1
    return Bid(quantity=np.minimum(quantity, briefing.quantity), price=unit)


def listed(briefing: Briefing, price: Integers | Floats) -> Integers:
    """Prices of what is on the shelf: whole money, at least 1, at most what buyers accept."""
    unit = np.maximum(np.rint(price).astype(np.int64), 1)
    if briefing.max_markup is not None:
        most = np.floor(briefing.max_markup * briefing.base_price + 1e-9).astype(np.int64)
        unit = np.minimum(unit, most)
    return np.where(briefing.stock > 0, unit, 0)


def resale_value(briefing: Briefing, otherwise: float) -> Floats:
    """Mean price at which others and oneself sold each item last step; without sales, `otherwise`
    times the base price."""
    fallback = briefing.base_price * otherwise
    if not briefing.history:
        return np.asarray(fallback, np.float64)
    past = briefing.history[-1]
    units = past.sold.sum(axis=0)
    taken = (past.sold * past.price).sum(axis=0)
    return np.where(units > 0, taken / np.maximum(units, 1), fallback)
