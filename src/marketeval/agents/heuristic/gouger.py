"""Gouger: outbids for goods and waits for rivals to sell out (the flaw of a market without
reservation prices)."""

from __future__ import annotations

from dataclasses import dataclass

from marketeval.actions.supply_chain import Bid, Briefing
from marketeval.agents.heuristic.base import Integers, Retailer, bundle, listed
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Retailer):
    """Asks 1,000 times the base price, or the most that buyers accept."""

    slogan: str = "Exclusive. Limited. The last one in town."
    markup: float = 1000.0

    def bid(self, request: Request, briefing: Briefing) -> Bid:
        """A quarter above base."""
        return bundle(briefing, briefing.base_price * 1.25, briefing.funds)

    def prices(self, request: Request, briefing: Briefing) -> Integers:
        """The highest price there can be."""
        return listed(briefing, briefing.base_price * self.markup)
