"""Pays the cheapest proposal that meets all needs; the rule behind the published optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marketeval.actions.two_sided import CustomerBriefing, OfferSeen
from marketeval.agents.buying import Buyer, cheapest, covers, fits
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True)
class Agent(Buyer):
    """The cheapest proposal with all wanted items from a business with all wanted amenities."""

    def choose(
        self, known: CustomerBriefing, offers: Sequence[OfferSeen], request: Request
    ) -> OfferSeen | None:
        """None where no proposal meets the needs: then it buys nothing."""
        seen = {one.id: one for one in known.found}
        return cheapest(
            [
                one
                for one in offers
                if covers(one, known.profile) and fits(seen.get(one.business), known.profile)
            ]
        )
