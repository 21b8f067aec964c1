"""Pays the first proposal that arrives: the bias reported of many models, as a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marketeval.actions.two_sided import CustomerBriefing, OfferSeen
from marketeval.agents.buying import Buyer
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True)
class Agent(Buyer):
    """The first proposal received, whatever it holds."""

    def choose(
        self, known: CustomerBriefing, offers: Sequence[OfferSeen], request: Request
    ) -> OfferSeen | None:
        """The oldest that is open."""
        return min(offers, key=lambda one: one.index, default=None)
