"""Pays any proposal, by a keyed draw: the control that knows nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marketeval.actions.two_sided import CustomerBriefing, OfferSeen
from marketeval.agents.buying import Buyer
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True)
class Agent(Buyer):
    """A proposal at random among all received."""

    def choose(
        self, known: CustomerBriefing, offers: Sequence[OfferSeen], request: Request
    ) -> OfferSeen | None:
        """One keyed draw per decision."""
        if not offers:
            return None
        return offers[int(request.draws["choice"].below(len(offers), request.step, 1)[0])]
