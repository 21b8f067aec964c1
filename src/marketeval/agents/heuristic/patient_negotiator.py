"""Asks those who made a fitting proposal for a better price, some times, and then pays the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marketeval.actions.two_sided import CustomerAction, CustomerBriefing, OfferSeen
from marketeval.agents.buying import (
    Buyer,
    cheapest,
    covers,
    fits,
    leave,
    pay,
    question,
    write,
)
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True)
class Agent(Buyer):
    """A careful buyer that first asks `times` times whether the price can be lower."""

    times: int = 2

    def settle(self, known: CustomerBriefing, request: Request) -> CustomerAction:
        """Ask all who made a fitting offer again, `times` times; then pay the best."""
        fitting = _fitting(known)
        best = cheapest(fitting)
        if best is None:
            return leave("nothing fits")
        if _rounds(known) < self.times:
            sellers = list(dict.fromkeys(one.business for one in fitting))
            price = best.proposal.total_price
            return write(
                sellers,
                f"{question(known.profile)} I have an offer of {price:.2f}; "
                "can I have a better price?",
            )
        return pay(best)


def _rounds(known: CustomerBriefing) -> int:
    """How often it has asked for a better price: the most it has asked one business."""
    asked: dict[str, int] = {}
    for note in known.history:
        if isinstance(note, str) and "better price" in note:
            to = note.split(":", 1)[0]
            asked[to] = asked.get(to, 0) + 1
    return max(asked.values(), default=0)


def _fitting(known: CustomerBriefing) -> Sequence[OfferSeen]:
    seen = {one.id: one for one in known.found}
    return [
        one
        for one in known.offers
        if not one.lapsed
        and covers(one, known.profile)
        and fits(seen.get(one.business), known.profile)
    ]
