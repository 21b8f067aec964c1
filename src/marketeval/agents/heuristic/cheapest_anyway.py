"""Pays the cheapest proposal with all items, whatever the amenities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marketeval.actions.two_sided import CustomerBriefing, OfferSeen
from marketeval.agents.buying import Buyer, cheapest, covers
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True)
class Agent(Buyer):
    """The cheapest proposal with all wanted items; the `pick_cheapest` baseline in action."""

    def choose(
        self, known: CustomerBriefing, offers: Sequence[OfferSeen], request: Request
    ) -> OfferSeen | None:
        """None where no proposal has all items."""
        return cheapest([one for one in offers if covers(one, known.profile)])
