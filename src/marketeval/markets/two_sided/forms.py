"""The JSON schemas of answers that name only what a seat knows (`forms: known`).

The field names are those of the open form, the type of the action itself, which leaves it to the
model to invent items, businesses and proposals. Here a decision is one of a few alternatives, each
with its own fields filled and the others null; names and ids are those in the briefing. What an
item costs and what the total is stays with the model. Servers that enforce JSON schemas in full,
as llama.cpp does, hold a model to it; a small one is often lost otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marketeval.actions.two_sided import BusinessBriefing, CustomerBriefing

Form = dict[str, Any]  # any: a JSON schema
NULL: Form = {"type": "null"}
NONE: Form = {"type": "array", "items": NULL, "maxItems": 0}
MOST_TEXTS, MOST_PAYMENTS, MOST_LINES = 10, 3, 10


def customer_form(known: CustomerBriefing) -> Form:
    """Search; write to businesses found; pay a proposal that is open; wait for answers, once
    somebody was asked; leave."""
    businesses = sorted({one.id for one in known.found} | known.asked)
    due = [one for one in known.offers if not one.paid and not one.lapsed]
    alternatives = [
        _decision(
            "search_businesses",
            search_query=_words(160),
            search_page={"type": "integer", "minimum": 1},
        )
    ]
    if businesses:
        text = _object(content=_words(300), to_business_id={"enum": businesses}, type=_only("text"))
        texts = {"type": "array", "items": text, "minItems": 1, "maxItems": MOST_TEXTS}
        messages = _object(text_messages=texts, pay_messages=NONE)
        alternatives.append(_decision("send_messages", messages=messages))
    if due:
        payment = _object(
            proposal_message_id={"enum": sorted({one.proposal.id for one in due})},
            to_business_id={"enum": sorted({one.business for one in due})},
            payment_method=_perhaps(),
            delivery_address=_perhaps(),
            payment_message=_perhaps(),
            type=_only("payment"),
        )
        payments = {"type": "array", "items": payment, "minItems": 1, "maxItems": MOST_PAYMENTS}
        messages = _object(text_messages=NONE, pay_messages=payments)
        alternatives.append(_decision("send_messages", messages=messages))
    if known.asked:
        alternatives.append(_decision("check_messages"))
    return {"anyOf": [*alternatives, _decision("end_transaction")]}


def business_form(known: BusinessBriefing) -> Form:
    """A text to this customer, or a proposal of items on the menu."""
    to = _only(known.customer)
    line = _object(
        id=_words(8),
        item_name={"enum": list(known.profile.menu_features)},
        quantity={"type": "integer", "minimum": 1},
        unit_price={"type": "number", "minimum": 0},
    )
    proposal = _object(
        items={"type": "array", "items": line, "minItems": 1, "maxItems": MOST_LINES},
        total_price={"type": "number", "minimum": 0},
        id=_only(""),
        to_customer_id=to,
        special_instructions=_perhaps(),
        estimated_delivery=_perhaps(),
        expiry_time=NULL,
        type=_only("order_proposal"),
    )
    text = _object(content=_words(300), to_customer_id=to, type=_only("text"))
    in_words = _object(action_type=_only("text"), text_message=text, order_proposal_message=NULL)
    offer = _object(
        action_type=_only("order_proposal"), text_message=NULL, order_proposal_message=proposal
    )
    return {"anyOf": [in_words, offer] if known.profile.menu_features else [in_words]}


def _decision(kind: str, **filled: Form) -> Form:
    """One alternative of a customer; what is not filled is null, or the first page."""
    return _object(
        action_type=_only(kind),
        reason=_words(160),
        search_query=filled.get("search_query", NULL),
        search_page=filled.get("search_page", _only(1)),
        messages=filled.get("messages", NULL),
    )


def _object(**properties: Mapping[str, Any]) -> Form:  # any: JSON schemas
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _only(value: str | int) -> Form:
    return {"const": value}


def _words(most: int) -> Form:
    return {"type": "string", "maxLength": most}


def _perhaps() -> Form:
    alternatives: Sequence[Form] = (NULL, _words(160))
    return {"anyOf": list(alternatives)}
