"""What the routes work with: the market's host, its settings, and how documents are shown."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import to_json

from marketeval.actions import two_sided as act
from marketeval.apps.server.book import Json
from marketeval.apps.server.calls import Call, Stop, not_fitting, wrong
from marketeval.apps.server.host import Host, KeyReused, Unavailable
from marketeval.apps.server.identity import Identity
from marketeval.apps.server.settings import Settings
from marketeval.markets.two_sided.journal import checked_profile
from marketeval.markets.two_sided.state import Entry, Found, Mail, Refused
from marketeval.markets.two_sided.wire import result_document

PARAMETERS: TypeAdapter[act.ProtocolAction] = TypeAdapter(
    Annotated[act.SendMessage | act.FetchMessages | act.Search, Field(discriminator="type")]
)
LONGEST_KEY = 200
PAGE = 1000  # messages in one answer of a strict market at most
_NO_WISH = Refused("not_allowed_to_search", "the optimal search is for customers")


@dataclass(slots=True)
class Service:
    """One market as it is served."""

    host: Host
    settings: Settings
    identity: Identity = field(init=False)
    _hits: dict[str, tuple[object, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.identity = Identity(self.host, self.settings)

    @property
    def strict(self) -> bool:
        """Whether the market takes only what it can vouch for."""
        return self.settings.auth == "tokens"

    async def perform(self, agent: str, action: act.ProtocolAction, call: Call) -> Entry:
        """Carry out an action; the errors of the host become answers."""
        key = call.header(b"idempotency-key") or ""
        if len(key) > LONGEST_KEY:
            raise Stop(422, f"an Idempotency-Key has at most {LONGEST_KEY} characters")
        if self.strict and isinstance(action, act.FetchMessages):
            most = PAGE if action.limit is None else min(action.limit, PAGE)
            action = replace(action, limit=most)
        if isinstance(action, act.Search) and action.search_algorithm == "optimal":
            document = self.host.documents.get(agent, {})
            if not isinstance(document.get("customer"), dict):
                return Entry(0, self.host.state.now, agent, action, _NO_WISH)
        try:
            return await self.host.perform(agent, action, key=key)
        except Unavailable as error:
            raise unavailable(error) from None
        except KeyReused:
            raise Stop(409, "this Idempotency-Key stood for another action before") from None

    def checked(self, document: Json) -> None:
        """422 for an agent document that this market does not take."""
        try:
            profile = checked_profile(document)
        except ValidationError as error:
            if not self.strict:
                # As in the reference: it is kept, and it is no business that can be found.
                return
            raise not_fitting(error, ("body", "agent")) from None
        if not self.strict:
            return
        where = ("body", "agent")
        if not any(isinstance(document.get(kind), dict) for kind in ("business", "customer")):
            raise wrong("missing", where, "expected a 'customer' or a 'business' in the document")
        if isinstance(profile, act.Business):
            if not 0 <= profile.rating <= 1:
                raise wrong("value_error", (*where, "business", "rating"), "expected 0 to 1")
            if profile.min_price_factor is not None and not 0 <= profile.min_price_factor <= 1:
                raise wrong("value_error", (*where, "business"), "min_price_factor: 0 to 1")
        if not all(0 <= price <= act.LARGEST for price in profile.menu_features.values()):
            raise wrong("value_error", where, f"prices are from 0 to {act.LARGEST:g}")
        longest = self.settings.rules.longest_text
        if longest is not None and len(to_json(document)) > 4 * longest:
            raise wrong("value_error", where, f"a document has at most {4 * longest} bytes")

    def shown(self, name: str, reader: str | None) -> Json:
        """An agent's document as another sees it; a private wish or floor is left out."""
        document = self.host.documents[name]
        if not self.settings.rules.floor_is_private or reader == name:
            return document
        public = self.host.state.public.get(name)
        if public is not None:
            return act.profile_document(public)
        return {"id": name, "metadata": document.get("metadata") or {}}

    def result(self, entry: Entry) -> bytes:
        """The answer to an executed action."""
        result = entry.result
        if isinstance(result, Mail):
            mail = b",".join(self.heard(one, entry.caller) for one in result.messages)
            more = b"true" if result.has_more else b"false"
            content = b'{"messages":[' + mail + b'],"has_more":' + more + b"}"
        elif isinstance(result, Found):
            hits = b",".join(self._hit(one) for one in result.businesses)
            content = (
                b'{"businesses":[' + hits + b'],"search_algorithm":' + to_json(result.rule)
                + b',"total_possible_results":%d,"total_pages":%d}' % (result.total, result.pages)
            )  # fmt: skip
        else:
            return to_json(result_document(result, entry.caller))
        return b'{"content":' + content + b',"is_error":false,"metadata":{}}'

    def heard(self, one: act.Heard, to: str) -> bytes:
        """A message as its reader fetches it."""
        return (
            b'{"from_agent_id":' + to_json(one.sender) + b',"to_agent_id":' + to_json(to)
            + b',"created_at":"' + self.host.moment(one.index).encode() + b'","message":'
            + to_json(one.message) + b',"index":%d}' % one.index
        )  # fmt: skip

    def _hit(self, one: act.Business) -> bytes:
        kept = self._hits.get(one.id)
        if kept is not None and kept[0] is one:
            return kept[1]
        private = self.settings.rules.floor_is_private
        document = act.profile_document(one) if private else self.host.documents[one.id]
        made = to_json(document)
        self._hits[one.id] = one, made
        return made


def unavailable(error: Unavailable) -> Stop:
    """503: nothing was done, and trying again makes sense."""
    return Stop(503, f"nothing can be stored now: {error}", {"Retry-After": "1"})


def parameters(tree: Any) -> act.ProtocolAction:  # any: parsed JSON
    """The action that parameters stand for; raises pydantic's ValidationError."""
    return PARAMETERS.validate_python(tree)
