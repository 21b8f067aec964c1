"""What the scripted businesses of the two-sided market have in common.

They read which items a customer names, and propose them if all are on the menu.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from marketeval.actions.two_sided import (
    BusinessAction,
    BusinessBriefing,
    BusinessProposal,
    BusinessText,
    OrderItem,
    OrderProposal,
    TextMessage,
    cents,
)
from marketeval.core.market import Request

_QUOTED = re.compile(r'"([^"]+)"')


@dataclass(frozen=True, slots=True)
class Seller:
    """Proposes what is asked for when all of it is on the menu; else says what is missing."""

    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False

    async def act(self, request: Request) -> BusinessAction:
        """The answer to one customer's latest texts."""
        known: BusinessBriefing = request.briefing
        asked = wanted(known)
        missing = [one for one in asked if one not in known.profile.menu_features]
        if not asked:
            return text(known, "What would you like? Please name the items.")
        if missing:
            return text(known, f"I am sorry, we do not have {', '.join(missing)}.")
        return self.offer(known, asked)

    def offer(self, known: BusinessBriefing, items: Sequence[str]) -> BusinessAction:
        """The proposal for items that are all on the menu, at menu prices."""
        return propose(known, items)


def wanted(known: BusinessBriefing) -> list[str]:
    """The items that the customer's last text with items in it names.

    In double quotes, else those of the menu that stand in the text in any case, longer names first
    and none inside another.
    """
    for heard in reversed(known.conversation):
        if heard.sender != known.customer or not isinstance(heard.message, TextMessage):
            continue
        quoted = _QUOTED.findall(heard.message.content)
        if quoted:
            return list(dict.fromkeys(quoted))
        rest, found = heard.message.content.lower(), []
        for item in sorted(known.profile.menu_features, key=len, reverse=True):
            if item.lower() in rest:
                rest = rest.replace(item.lower(), "|")
                found.append(item)
        if found:
            return found
    return []


def propose(
    known: BusinessBriefing,
    items: Sequence[str],
    *,
    factor: float = 1.0,
    note: str | None = None,
) -> BusinessAction:
    """One of each item at menu price times a factor, in whole cents."""
    prices = [round(cents(known.profile.menu_features[item]) * factor) for item in items]
    proposal = BusinessProposal(
        items=tuple(
            OrderItem(f"Item-{place}", item, 1, price / 100)
            for place, (item, price) in enumerate(zip(items, prices, strict=True), 1)
        ),
        total_price=sum(prices) / 100,
        to_customer_id=known.customer,
        special_instructions=note,
    )
    return BusinessAction(action_type="order_proposal", order_proposal_message=proposal)


def text(known: BusinessBriefing, words: str) -> BusinessAction:
    """Plain words to the customer."""
    return BusinessAction(action_type="text", text_message=BusinessText(words, known.customer))


def offers_before(known: BusinessBriefing) -> int:
    """How many proposals this customer has had from this business."""
    return sum(
        isinstance(heard.message, OrderProposal) and heard.sender == known.profile.id
        for heard in known.conversation
    )
