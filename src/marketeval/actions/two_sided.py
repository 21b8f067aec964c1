"""The two-sided market's vocabulary: profiles, messages, the protocol's actions, what seats are
told and what they may decide.

Field names and constraints are those of the Magentic Marketplace protocol, so that its JSON reads
as these types and these types write its JSON (`read`, `plain`). Prices are what the sender wrote,
in currency units; money itself moves in whole cents (`cents`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AwareDatetime, Field, TypeAdapter

T = TypeVar("T")
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# Hints for models, unchecked: a small model fills whatever room its answer's form leaves it.
Name = Annotated[str, Field(json_schema_extra={"maxLength": 80})]
Short = Annotated[str, Field(json_schema_extra={"maxLength": 160})]
Words = Annotated[str, Field(json_schema_extra={"maxLength": 300})]
_TEXTS = Field(json_schema_extra={"maxItems": 10})
_PAYMENTS = Field(json_schema_extra={"maxItems": 3})
_LINES = Field(min_length=1, json_schema_extra={"maxItems": 10})
Metadata = dict[str, Any]  # any: the protocol leaves its content open
LARGEST = 1e12  # currency units that can be booked
SearchRule = Literal["simple", "rnr", "filtered", "lexical", "optimal", "bm25", "hybrid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Customer:
    """A customer's private profile: wanted items with the price expected, needed amenities."""

    id: str
    name: str
    request: str
    menu_features: Mapping[str, float]
    amenity_features: Sequence[str] = ()
    type: Literal["customer"] = "customer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Business:
    """A business's profile. `min_price_factor` is its floor as a share of the menu price; None in
    the copy that strangers see."""

    id: str
    name: str
    description: str
    rating: float
    menu_features: Mapping[str, float]
    amenity_features: Mapping[str, bool]
    min_price_factor: float | None = None
    progenitor_customer: str = ""
    type: Literal["business"] = "business"


Profile = Customer | Business


# ---- messages


@dataclass(frozen=True, slots=True)
class TextMessage:
    """Free text."""

    content: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One line of an order proposal."""

    id: Name
    item_name: Name
    quantity: Annotated[int, Field(ge=1)]
    unit_price: Price


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderProposal:
    """An offer that its addressee accepts by paying it."""

    id: Annotated[str, Field(min_length=1)]
    items: Annotated[tuple[OrderItem, ...], Field(min_length=1)]
    total_price: float
    special_instructions: str | None = None
    estimated_delivery: str | None = None
    expiry_time: str | None = None
    type: Literal["order_proposal"] = "order_proposal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """Acceptance of a proposal; it names the proposal and carries no amount."""

    proposal_message_id: str
    payment_method: str | None = None
    delivery_address: str | None = None
    payment_message: str | None = None
    type: Literal["payment"] = "payment"


Message = TextMessage | OrderProposal | Payment


# ---- the protocol's actions


@dataclass(frozen=True, slots=True, kw_only=True)
class SendMessage:
    """Send one message to one agent."""

    from_agent_id: str
    to_agent_id: str
    message: Annotated[Message, Field(discriminator="type")]
    created_at: AwareDatetime | None = None
    metadata: Metadata | None = None
    type: Literal["send_message"] = "send_message"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchMessages:
    """Read one's own inbox, oldest first; reading takes nothing away."""

    from_agent_id: str | None = None
    limit: int | None = None
    offset: int | None = None
    after: AwareDatetime | None = None
    after_index: int | None = None
    metadata: Metadata | None = None
    type: Literal["fetch_messages"] = "fetch_messages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What the filtered search may be asked to heed."""

    rating_threshold: float | None = None
    amenity_features: tuple[str, ...] | None = None
    menu_items: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Look for businesses; the first page is 1, a limit of 0 or less means all."""

    query: str
    search_algorithm: SearchRule
    constraints: Constraints | None = None
    limit: int = 10
    page: int = 1
    metadata: Metadata | None = None
    type: Literal["search"] = "search"


@dataclass(frozen=True, slots=True)
class Register:
    """Enter the market, or replace one's profile."""

    profile: Profile


ProtocolAction = SendMessage | FetchMessages | Search


# ---- what a customer's and a business's seat may decide


@dataclass(frozen=True, slots=True)
class CustomerText:
    """A text to one business."""

    content: Words
    to_business_id: Name
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerPayment:
    """The payment of one proposal."""

    proposal_message_id: Name
    to_business_id: Name = ""
    payment_method: Short | None = None
    delivery_address: Short | None = None
    payment_message: Short | None = None
    type: Literal["payment"] = "payment"


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerMessages:
    """What a customer sends in one decision: texts first, then payments."""

    text_messages: Annotated[tuple[CustomerText, ...], _TEXTS] = ()
    pay_messages: Annotated[tuple[CustomerPayment, ...], _PAYMENTS] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerAction:
    """One decision of a customer."""

    action_type: Literal["search_businesses", "send_messages", "check_messages", "end_transaction"]
    reason: Short = ""
    search_query: Short | None = None
    search_page: int = 1
    messages: CustomerMessages | None = None


@dataclass(frozen=True, slots=True)
class BusinessText:
    """A text to one customer."""

    content: Words
    to_customer_id: Name = ""
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class BusinessProposal:
    """An order proposal to one customer; the market gives it its id."""

    items: Annotated[tuple[OrderItem, ...], _LINES]
    total_price: float
    id: Name = ""
    to_customer_id: Name = ""
    special_instructions: Short | None = None
    estimated_delivery: Short | None = None
    expiry_time: Short | None = None
    type: Literal["order_proposal"] = "order_proposal"


@dataclass(frozen=True, slots=True, kw_only=True)
class BusinessAction:
    """A business's answer to one customer: a text or an order proposal."""

    action_type: Literal["text", "order_proposal"]
    text_message: BusinessText | None = None
    order_proposal_message: BusinessProposal | None = None


# ---- what seats are told


@dataclass(frozen=True, slots=True)
class Heard:
    """A message as its reader sees it: who, what, and its row among all actions."""

    index: int
    sender: str
    message: Message
    at: int


@dataclass(frozen=True, slots=True)
class OfferSeen:
    """A proposal a customer has received; `lapsed` once its time is over."""

    index: int
    business: str
    proposal: OrderProposal
    paid: bool = False
    lapsed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerBriefing:
    """All that a customer's seat knows, bounded in length; `str` of it is the text of a prompt.

    `found` are the businesses its searches have shown, those of the latest first; `asked` those it
    has written to; `offers` the proposals received, oldest first; `more_pages` whether the last
    search has further pages.
    """

    profile: Customer
    step: int
    steps: int
    search_page: int
    more_pages: bool
    found: Sequence[Business]
    asked: frozenset[str]
    offers: Sequence[OfferSeen]
    history: Sequence[str | Heard] = field(repr=False)
    write: Callable[[CustomerBriefing], str] = field(repr=False)

    def __str__(self) -> str:
        return self.write(self)

    def payload(self) -> dict[str, Any]:  # any: JSON
        """Everything as JSON, for seats in other processes, with the text a model reads."""
        return {**_fields(self), "asked": sorted(self.asked), "text": str(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class BusinessBriefing:
    """All that a business's seat knows when it answers one customer, bounded in length.

    `conversation` are the messages exchanged with this customer before the new ones; `problem`
    what was wrong with its last attempt at this answer.
    """

    profile: Business
    customer: str
    conversation: Sequence[Heard]
    problem: str
    write: Callable[[BusinessBriefing], str] = field(repr=False)

    def __str__(self) -> str:
        return self.write(self)

    def payload(self) -> dict[str, Any]:  # any: JSON
        """As the customer's."""
        return {**_fields(self), "text": str(self)}


@dataclass(frozen=True, slots=True)
class News:
    """What is new for a seat: what it is about, notices of the market, businesses that its search
    has found since, and the messages."""

    messages: Sequence[Heard]
    notices: Sequence[str] = ()
    found: Sequence[Business] = ()
    about: str = ""

    def payload(self) -> dict[str, Any]:  # any: JSON
        """Everything as JSON."""
        return {**_fields(self), "text": str(self)}

    def __str__(self) -> str:
        lines = [
            *self.notices,
            *(
                f"found: {one.name} ({one.id}), rated {one.rating:.2f}: {one.description}"
                for one in self.found
            ),
            *(f"{one.sender}: {told(one.message)}" for one in self.messages),
        ]
        return "\n".join(([self.about] if self.about else []) + (lines or ["Nothing new."]))


def _fields(value: CustomerBriefing | BusinessBriefing | News) -> dict[str, Any]:  # any: JSON
    """The fields that are data, as JSON."""
    known = {one.name: getattr(value, one.name) for one in fields(value)}
    return {
        name: _adapter(Any).dump_python(one, mode="json")
        for name, one in known.items()
        if name not in ("write", "asked")
    }


def told(message: Message) -> str:
    """A message in one line of plain words."""
    if isinstance(message, TextMessage):
        return message.content
    if isinstance(message, Payment):
        note = f" ({message.payment_message})" if message.payment_message else ""
        return f"pays proposal {message.proposal_message_id}{note}"
    lines = ", ".join(
        f"{one.quantity} x {one.item_name} at {one.unit_price:.2f}" for one in message.items
    )
    notes = "".join(
        f"; {note}" for note in (message.special_instructions, message.estimated_delivery) if note
    )
    return f"proposal {message.id}: {lines}; total {message.total_price:.2f}{notes}"


def cents(price: float) -> int:
    """The nearest whole number of cents.

    >>> cents(8.6), cents(0.285)
    (860, 28)
    """
    return round(price * 100)


def is_whole_cents(price: float) -> bool:
    """Whether a price is a whole number of cents, up to the noise of binary fractions.

    Nothing above LARGEST is.

    >>> is_whole_cents(0.1 + 0.2), is_whole_cents(0.125), is_whole_cents(float("nan"))
    (True, False, False)
    """
    if not abs(price) <= LARGEST:
        return False
    return abs(price * 100 - round(price * 100)) < 1e-6 * max(1.0, abs(price))


# ---- JSON


_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}  # any: a type, or a union of types


def _adapter(kind: Any) -> TypeAdapter[Any]:  # any: as above
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def read(kind: type[T], tree: Any) -> T:  # any: parsed JSON
    """A value of the given type from parsed JSON; raises pydantic's ValidationError."""
    made: T = _adapter(kind).validate_python(tree)
    return made


def plain(value: Any) -> Any:  # any: one of the types above, as the JSON that stands for it
    """The protocol's JSON of a message, action or decision."""
    tree = _adapter(type(value)).dump_python(value, mode="json")
    if isinstance(tree, dict) and tree.get("metadata", 0) is None:
        tree["metadata"] = {}
    return tree


def schema(kind: Any) -> dict[str, Any]:  # any: a JSON Schema
    """The JSON Schema of a type."""
    return _adapter(kind).json_schema()


def profile_document(profile: Profile) -> dict[str, Any]:  # any: JSON
    """The agent document of a profile: id, metadata, and the profile under its kind."""
    return {
        "id": profile.id,
        "metadata": {"type": profile.type},
        profile.type: _adapter(type(profile)).dump_python(profile, mode="json"),
    }


def read_profile(document: Mapping[str, Any]) -> Profile:  # any: JSON
    """The profile in an agent document; raises pydantic's ValidationError or a LookupError."""
    if "business" in document:
        return read(Business, document["business"])
    return read(Customer, document["customer"])
