"""The event tables of the two-sided market. Agents are named by their ids.

`row` numbers all actions of an episode from 1, over all kinds (the protocol's message index).
Prices are as the sender wrote them, in currency units; amounts are whole cents.
"""

from __future__ import annotations

from marketeval.core.log import Column, EventKind
from marketeval.events.common import STRUCTURED

ROW = Column("row", "int64", "the action's number in the episode, from 1", low=1)
ROUND = Column("round", "int32", "the logical clock: rounds played before this one", low=0)
AGENT = Column("agent", "text", "id of the agent that acted")
CUSTOMER = Column("customer", "text", "the customer's id")
BUSINESS = Column("business", "text", "the business's id")
ITEM = Column("item", "text", "name of an item, as on the menu or in the wish")
PRICE = Column("price", "float64", "price in currency units", low=0)
REFUSED = Column("refused", "text", "why it was refused, one of REASONS; empty if it was not")

REASONS = (
    "unknown_caller",
    "too_many_actions",
    "spoofed_sender",
    "unknown_recipient",
    "malformed",
    "too_long",
    "not_a_business",
    "not_a_customer",
    "reused_id",
    "not_whole_cents",
    "total_does_not_add_up",
    "not_on_menu",
    "surcharge",
    "below_floor",
    "already_expired",
    "unknown_proposal",
    "not_the_addressee",
    "paid_before",
    "expired",
    "balance_too_low",
    "out_of_stock",
    "not_allowed_to_search",
)
MESSAGES = ("text", "order_proposal", "payment")
DECISIONS = (
    "search_businesses",
    "send_messages",
    "check_messages",
    "end_transaction",
    "text",
    "order_proposal",
    "invalid",
)
ENDINGS = ("ended", "out_of_steps", "out_of_rounds")

MARKETPLACE = EventKind(
    "marketplace",
    "the market as a whole",
    (
        Column("rules", "text", "the rule switches, as JSON"),
        Column("search", "text", "the search rule"),
        Column("limit", "int32", "results per page; 0 for all"),
        Column("steps", "int32", "decisions a customer may take", low=1),
        Column("customers", "int32", "number of customers", low=0),
        Column("businesses", "int32", "number of businesses", low=0),
        Column("population", "text", "where the population comes from"),
        Column("unlimited", "bool", "whether customers buy on credit"),
        Column("opening", "int64", "opening balance of a customer, in cents", low=0),
        Column("days", "int32", "how often the market is repeated", low=1),
        Column(
            "rounds", "int32", "rounds of a day at most; day d starts at round d times this", low=1
        ),
    ),
)
CUSTOMERS = EventKind(
    "customer",
    "a customer, in order of registration",
    (
        CUSTOMER,
        Column("name", "text", "the customer's name"),
        Column("request", "text", "the wish in words"),
    ),
)
WANTS = EventKind(
    "want", "an item a customer wants, and the price it expects", (CUSTOMER, ITEM, PRICE)
)
NEEDS = EventKind(
    "need", "an amenity a customer needs", (CUSTOMER, Column("amenity", "text", "the amenity"))
)
BUSINESSES = EventKind(
    "business",
    "a business, in order of registration",
    (
        BUSINESS,
        Column("name", "text", "the business's name"),
        Column("description", "text", "what strangers read"),
        Column("rating", "float64", "rating, 0 to 1 by convention"),
        Column("floor", "float64", "its floor as a share of menu prices", nullable=True),
        Column("progenitor", "text", "the customer it was made for; empty if none"),
    ),
)
MENU = EventKind("menu", "an item on a business's menu, in menu order", (BUSINESS, ITEM, PRICE))
AMENITIES = EventKind(
    "amenity",
    "an amenity a business states, and whether it has it",
    (
        BUSINESS,
        Column("amenity", "text", "the amenity"),
        Column("has", "bool", "whether it is there"),
    ),
)
SEATS = EventKind(
    "seat",
    "who fills a seat",
    (
        AGENT,
        Column("filled_by", "text", "the short text of its agent"),
        Column("privileged", "bool", "whether it knows what its seat should not"),
    ),
)

ATTACKS = EventKind(
    "attack",
    "a business that manipulates",
    (
        BUSINESS,
        Column("kind", "text", "the kind of attack"),
        Column("place", "text", "where: its description, its messages, its proposals"),
    ),
)

SEARCHED = EventKind(
    "search",
    "a search",
    (
        ROW,
        ROUND,
        AGENT,
        Column("query", "text", "the words searched for"),
        Column("rule", "text", "the search rule"),
        Column("page", "int32", "page asked for, from 1"),
        Column("limit", "int32", "results per page; 0 or less for all"),
        Column("found", "int32", "results in all", low=0),
        Column("pages", "int32", "pages in all", low=0),
        REFUSED,
    ),
)
SHOWN = EventKind(
    "shown",
    "a business shown in a search result",
    (ROW, ROUND, Column("place", "int32", "place in the list shown, from 0", low=0), BUSINESS),
)
FETCHED = EventKind(
    "fetch",
    "mail handed to its reader, by reference: rows after `after`, up to `upto`",
    (
        ROW,
        ROUND,
        AGENT,
        Column("after", "int64", "the last row known before", low=0),
        Column("upto", "int64", "the last row handed over", low=0),
        Column("messages", "int32", "messages handed over", low=0),
    ),
)
MESSAGE = EventKind(
    "message",
    "a message sent, delivered unless refused",
    (
        ROW,
        ROUND,
        AGENT,
        Column("sender", "text", "the sender the message states"),
        Column("recipient", "text", "the agent it is for"),
        Column("kind", "enum", "the type of message", values=MESSAGES),
        Column(
            "content",
            "text",
            "text, special instructions or payment message; may be null",
            nullable=True,
        ),
        Column(
            "proposal", "text", "id of the proposal made or paid; null for texts", nullable=True
        ),
        REFUSED,
    ),
)
PROPOSAL = EventKind(
    "proposal",
    "an order proposal, also a refused one",
    (
        ROW,
        ROUND,
        Column("id", "text", "its id"),
        Column("sender", "text", "the sender the message states"),
        Column("recipient", "text", "the agent it is for"),
        Column("total", "float64", "total price as written", nullable=True),
        Column("expires", "int64", "the round after which it lapses; -1 for never", low=-1),
        Column("delivery", "text", "estimated delivery as written; may be null", nullable=True),
        REFUSED,
    ),
)
LINE = EventKind(
    "proposal_item",
    "a line of an order proposal",
    (
        ROW,
        Column("line", "int32", "place in the proposal, from 0", low=0),
        Column("item_id", "text", "the item id as written"),
        ITEM,
        Column("quantity", "int32", "units", low=1),
        Column("unit_price", "float64", "price of one unit as written", low=0),
    ),
)
PAID = EventKind(
    "payment",
    "a payment, also a refused one",
    (
        ROW,
        ROUND,
        Column("payer", "text", "the sender the message states"),
        BUSINESS,
        Column("proposal", "text", "the proposal's id"),
        Column("amount", "int64", "cents moved in the books; 0 without books"),
        Column("method", "text", "payment method as written; may be null", nullable=True),
        Column("address", "text", "delivery address as written; may be null", nullable=True),
        REFUSED,
    ),
)
DECISION = EventKind(
    "decision",
    "one decision of a seat",
    (
        ROUND,
        AGENT,
        Column("toward", "text", "the customer a business answers; empty for customers"),
        Column("number", "int32", "the customer's own count of decisions, or the attempt", low=1),
        Column("kind", "enum", "what was decided", values=DECISIONS),
        Column("reason", "text", "the seat's own words"),
        Column("problem", "text", "what was wrong with it; empty if nothing"),
    ),
)
SILENT = EventKind(
    "no_answer",
    "a business that gave no valid answer; the customer is told",
    (
        ROUND,
        BUSINESS,
        CUSTOMER,
        Column("attempts", "int32", "how often it was asked", low=1),
        Column("problem", "text", "what was wrong with the last attempt"),
    ),
)
LEFT = EventKind(
    "left",
    "a customer who is done",
    (
        ROUND,
        CUSTOMER,
        Column("steps", "int32", "decisions taken", low=0),
        Column("how", "enum", "how it ended", values=ENDINGS),
    ),
)
IN_PROMPT = EventKind(
    "in_last_briefing",
    "a proposal that a customer had before it at its last decision",
    (CUSTOMER, ROW),
)
RATED = EventKind(
    "rating",
    "a business's rating at the start of a day, where days repeat",
    (ROUND, BUSINESS, Column("rating", "float64", "the new rating")),
)
EMBEDDED = EventKind(
    "embedded",
    "texts that were turned into vectors for searches by meaning",
    (
        ROUND,
        Column("texts", "int32", "how many", low=1),
        Column("embedder", "text", "the embedder's id; empty if it gave nothing"),
        Column("sha256", "text", "hash of its weights or of its code and data"),
        Column("problem", "text", "what was wrong with its answer; then 3-grams stand in"),
    ),
)

SHARED = (MARKETPLACE, CUSTOMERS, WANTS, NEEDS, BUSINESSES, MENU, AMENITIES, SEATS, ATTACKS)
EPISODE = (
    SEARCHED, SHOWN, FETCHED, MESSAGE, PROPOSAL, LINE, PAID, DECISION, SILENT, LEFT, IN_PROMPT,
    RATED, EMBEDDED,
)  # fmt: skip
KINDS = (*SHARED, *EPISODE, STRUCTURED)
