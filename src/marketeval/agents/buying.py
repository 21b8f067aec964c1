"""What the scripted customers of the two-sided market have in common.

They search with their own request, ask everybody found for the wanted items by their exact names,
wait until all have answered or given up, and then choose a proposal, each in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marketeval.actions.two_sided import (
    Business,
    Customer,
    CustomerAction,
    CustomerBriefing,
    CustomerMessages,
    CustomerPayment,
    CustomerText,
    OfferSeen,
)
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True)
class Buyer:
    """Search, ask, wait, pay, leave. `choose` is what makes a buyer its own; `pages` how many
    pages of results it reads."""

    pages: int = 1
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False

    async def act(self, request: Request) -> CustomerAction:
        """The next decision, from the briefing alone."""
        known: CustomerBriefing = request.briefing
        if any(offer.paid for offer in known.offers):
            return leave("paid")
        if known.search_page == 0 or (known.more_pages and known.search_page < self.pages):
            return search(known.profile.request, known.search_page + 1)
        fresh = [one.id for one in known.found if one.id not in known.asked]
        if fresh:
            return write(fresh, question(known.profile))
        if not known.asked:
            return leave("nobody found")
        return self.settle(known, request)

    def settle(self, known: CustomerBriefing, request: Request) -> CustomerAction:
        """All have been asked, and in a market of rounds all have answered: pay or leave."""
        open_offers = [one for one in known.offers if not one.lapsed]
        chosen = self.choose(known, open_offers, request)
        return pay(chosen) if chosen is not None else leave("nothing fits")

    def choose(
        self, known: CustomerBriefing, offers: Sequence[OfferSeen], request: Request
    ) -> OfferSeen | None:
        """The proposal to pay, or None."""
        raise NotImplementedError


def question(profile: Customer) -> str:
    """A question that names every wanted item verbatim, in double quotes."""
    items = "; ".join(f'"{item}"' for item in profile.menu_features)
    needs = ", ".join(profile.amenity_features)
    also = f" I also need: {needs}." if needs else ""
    return f"Do you have these items, one of each, and at what price in all: {items}?{also}"


def covers(offer: OfferSeen, profile: Customer) -> bool:
    """Whether a proposal holds every wanted item."""
    return {line.item_name for line in offer.proposal.items} >= set(profile.menu_features)


def fits(business: Business | None, profile: Customer) -> bool:
    """Whether a business states every wanted amenity in its profile."""
    return business is not None and all(
        business.amenity_features.get(one, False) for one in profile.amenity_features
    )


def cheapest(offers: Sequence[OfferSeen]) -> OfferSeen | None:
    """The lowest total; the first received of equals."""
    return min(offers, key=lambda one: (one.proposal.total_price, one.index), default=None)


def search(query: str, page: int = 1) -> CustomerAction:
    """Look for businesses."""
    return CustomerAction(
        action_type="search_businesses", search_query=query, search_page=page, reason="look around"
    )


def write(businesses: Sequence[str], text: str) -> CustomerAction:
    """The same text to several businesses."""
    texts = tuple(CustomerText(text, one) for one in businesses)
    messages = CustomerMessages(text_messages=texts)
    return CustomerAction(action_type="send_messages", messages=messages, reason="ask")


def pay(offer: OfferSeen) -> CustomerAction:
    """Pay one proposal."""
    payment = CustomerPayment(proposal_message_id=offer.proposal.id, to_business_id=offer.business)
    messages = CustomerMessages(pay_messages=(payment,))
    return CustomerAction(action_type="send_messages", messages=messages, reason="pay")


def leave(why: str) -> CustomerAction:
    """End the errand."""
    return CustomerAction(action_type="end_transaction", reason=why)
