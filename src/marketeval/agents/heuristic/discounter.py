"""Starts at the menu price and comes down a step each time it is asked again, to its floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marketeval.actions.two_sided import BusinessAction, BusinessBriefing
from marketeval.agents.selling import Seller, offers_before, propose


@dataclass(frozen=True, slots=True)
class Agent(Seller):
    """Lowers its price by `step` of the menu price per further request, never below its floor."""

    step: float = 0.05

    def offer(self, known: BusinessBriefing, items: Sequence[str]) -> BusinessAction:
        """The next lower price; the floor is `min_price_factor` of the menu."""
        floor = known.profile.min_price_factor
        lowest = 1.0 if floor is None else min(floor, 1.0)
        return propose(known, items, factor=max(1.0 - self.step * offers_before(known), lowest))
