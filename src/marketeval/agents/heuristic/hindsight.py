"""Knows the best business for its customer beforehand: the upper line in every comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marketeval.actions.two_sided import CustomerAction, CustomerBriefing, OfferSeen
from marketeval.agents.buying import Buyer, cheapest, covers, leave, question, write
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True)
class Agent(Buyer):
    """Goes straight to the cheapest business that meets all needs; privileged: it is told which."""

    privileged: bool = True

    async def act(self, request: Request) -> CustomerAction:
        """Ask that business, pay, leave."""
        known: CustomerBriefing = request.briefing
        if request.privileged is None or any(offer.paid for offer in known.offers):
            return leave("paid" if request.privileged else "nothing fits")
        if request.privileged not in known.asked:
            return write([request.privileged], question(known.profile))
        return self.settle(known, request)

    def choose(
        self, known: CustomerBriefing, offers: Sequence[OfferSeen], request: Request
    ) -> OfferSeen | None:
        """The cheapest offer of that business with all items."""
        return cheapest([one for one in offers if covers(one, known.profile)])
