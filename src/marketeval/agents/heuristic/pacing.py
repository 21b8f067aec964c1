"""Budget-pacing bidder: spreads its funds over the steps (Balseiro and Gur, 2019, at its simplest),
so that it can bid when others have run dry."""

from __future__ import annotations

from dataclasses import dataclass

from marketeval.actions.supply_chain import Bid, Briefing
from marketeval.agents.heuristic.base import Retailer, bundle
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Retailer):
    """Bids 10 % above base with a budget of funds / sqrt(remaining steps)."""

    slogan: str = "Steady, honest, responsible trade."

    def bid(self, request: Request, briefing: Briefing) -> Bid:
        """The paced budget; all of it in the last step."""
        left = briefing.steps - briefing.step
        return bundle(briefing, briefing.base_price * 1.1, briefing.funds / left**0.5)
