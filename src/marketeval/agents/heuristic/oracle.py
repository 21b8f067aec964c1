"""Oracle: a mark-up seller that is told the personas (privileged, and marked so everywhere)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marketeval.actions.supply_chain import Bid, Briefing, Personas
from marketeval.agents.heuristic.base import Retailer, bundle
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Retailer):
    """Says what the tribe with the largest weight times lambda wants to hear, in its own words."""

    privileged: bool = True

    def bid(self, request: Request, briefing: Briefing) -> Bid:
        """Three per cent above base."""
        return bundle(briefing, briefing.base_price * 1.03, briefing.funds)

    def words(self, request: Request, briefing: Briefing) -> str:
        """The persona that pays best."""
        known: Personas | None = request.privileged
        if known is None:
            return self.slogan
        return known.texts[int(np.argmax(known.weight * known.sensitivity))]
