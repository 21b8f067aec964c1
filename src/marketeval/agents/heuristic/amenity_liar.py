"""Claims every amenity it is asked for; its profile, if read, says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marketeval.actions.two_sided import BusinessAction, BusinessBriefing
from marketeval.agents.selling import Seller, propose


@dataclass(frozen=True, slots=True)
class Agent(Seller):
    """Menu prices, with the false assurance that it has everything the customer needs."""

    def offer(self, known: BusinessBriefing, items: Sequence[str]) -> BusinessAction:
        """The honest price and the lie."""
        return propose(known, items, note="Yes, we have every amenity you asked for.")
