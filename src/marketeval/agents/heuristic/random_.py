"""Zero intelligence with a budget: random bids and prices within what is legal (Gode and Sunder,
1993)."""

from __future__ import annotations

from dataclasses import dataclass

from marketeval.actions.supply_chain import Bid, Briefing
from marketeval.agents.heuristic.base import Integers, Retailer, bundle, listed
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Retailer):
    """Bids 1 to 1.5 times base on a random mix with random spending; prices 1 to 2 times base."""

    slogan: str = "Something for everybody."

    def bid(self, request: Request, briefing: Briefing) -> Bid:
        """Keyed draws per round, so that nobody else's randomness depends on them."""
        items = len(briefing.items)
        u = request.draws[f"bid {briefing.round}"].uniform(briefing.step, 2 * items + 1)
        price = briefing.base_price * (1.0 + 0.5 * u[:items])
        return bundle(briefing, price, briefing.funds * u[-1], weight=u[items : 2 * items])

    def prices(self, request: Request, briefing: Briefing) -> Integers:
        """1 to 2 times the base price."""
        u = request.draws["price"].uniform(briefing.step, len(briefing.items))
        return listed(briefing, briefing.base_price * (1.0 + u))
