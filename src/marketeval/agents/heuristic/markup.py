"""Mark-up seller: cost-plus pricing at 1.5, as in an example of the paper (B.2)."""

from __future__ import annotations

from dataclasses import dataclass

from marketeval.actions.supply_chain import Bid, Briefing
from marketeval.agents.heuristic.base import Retailer, bundle
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Retailer):
    """Bids one above the base price and sells at 1.5 times the base price."""

    slogan: str = "Premium quality at prices that make sense."

    def bid(self, request: Request, briefing: Briefing) -> Bid:
        """One above the base price, as the paper's example bid."""
        return bundle(briefing, briefing.base_price + 1, briefing.funds)
