"""A two-sided market's journal as lines of JSON, one per entry, and the way back.

Searches and fetches are recorded by reference: the ids shown, the rows delivered. A line's time is
in microseconds since the first tick; the clock of the rules is its whole seconds.

    ["m", at, row, caller, from, to, message, created, metadata, refusal, key]     a message
    ["f", at, row, caller, from, limit, offset, after_index, upto, count, refusal] a fetch
    ["s", at, row, caller, query, rule, constraints, limit, page, total, pages, ids, refusal]
    ["r", at, document, token]                                                     a registration
    ["t", at]                                                                      the clock
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from marketeval.actions import two_sided as act
from marketeval.markets.two_sided.state import Entry, Found, Mail, Refused, Registered, Result, Sent

Json = Any  # any: parsed JSON
TICK = 1_000_000  # microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What one line holds.

    `key` is the caller's idempotency key; `document` and `token` (a hash) come with registrations.
    A line without an entry moves the clock.
    """

    at: int
    entry: Entry | None = None
    key: str = ""
    document: Json = None
    token: str = ""


def write_line(one: Recorded) -> str:
    """The line of an entry, or of a move of the clock."""
    return to_json(_fields(one)).decode()


def read_line(text: str) -> Recorded:
    """What a line holds. Raises ValueError, KeyError, TypeError or IndexError if it is none."""
    line = from_json(text)
    kind, at = line[0], line[1]
    if kind == "t":
        return Recorded(at=at)
    if kind == "r":
        _, _, document, token = line
        profile = profile_of(document)
        entry = Entry(0, at // TICK, profile.id, act.Register(profile), Registered(profile.id))
        return Recorded(at=at, entry=entry, document=document, token=token)
    row, caller, refusal = line[2], line[3], line[-1]
    result: Result
    key = ""
    action: act.ProtocolAction
    if kind == "m":
        _, _, _, _, sender, to, message, created, metadata, refusal, key = line
        action = act.SendMessage(
            from_agent_id=sender,
            to_agent_id=to,
            message=_message(message),
            created_at=None if created is None else datetime.fromisoformat(created),
            metadata=metadata,
        )
        result = Sent(action)
    elif kind == "f":
        _, _, _, _, sender, limit, offset, after, _, _, _ = line
        action = act.FetchMessages(
            from_agent_id=sender, limit=limit, offset=offset, after_index=after
        )
        result = Mail((), False)
    elif kind == "s":
        _, _, _, _, query, rule, asked, limit, page, total, pages, _, _ = line
        action = act.Search(
            query=query,
            search_algorithm=rule,
            constraints=None if asked is None else act.read(act.Constraints, asked),
            limit=limit,
            page=page,
        )
        result = Found((), rule, total, pages)
    else:
        raise ValueError(f"unknown kind of line {kind!r}")
    if refusal is not None:
        result = Refused(*refusal)
    return Recorded(at=at, entry=Entry(row, at // TICK, caller, action, result), key=key or "")


def profile_of(document: Json) -> act.Profile:
    """The profile in an agent document, under the document's id.

    An agent that is neither a customer nor a business may still be written to: it is a customer
    without wishes.
    """
    try:
        return checked_profile(document)
    except ValidationError:
        name = document["id"]
        return act.Customer(id=name, name=name, request="", menu_features={})


def checked_profile(document: Json) -> act.Profile:
    """As `profile_of`; raises pydantic's ValidationError for a profile that is none."""
    name = document["id"]
    if isinstance(document.get("business"), dict):
        return act.read(act.Business, {**document["business"], "id": name})
    if isinstance(document.get("customer"), dict):
        return act.read(act.Customer, {**document["customer"], "id": name})
    return act.Customer(id=name, name=name, request="", menu_features={})


def _fields(one: Recorded) -> list[Json]:
    entry = one.entry
    if entry is None:
        return ["t", one.at]
    action, result = entry.action, entry.result
    if isinstance(action, act.Register):
        return ["r", one.at, one.document, one.token]
    refusal = [result.reason, result.words] if isinstance(result, Refused) else None
    head = [one.at, entry.row, entry.caller]
    if isinstance(action, act.SendMessage):
        return [
            "m", *head, action.from_agent_id, action.to_agent_id, act.plain(action.message),
            None if action.created_at is None else action.created_at.isoformat(),
            action.metadata, refusal, one.key or None,
        ]  # fmt: skip
    if isinstance(action, act.FetchMessages):
        mail = result.messages if isinstance(result, Mail) else ()
        upto = mail[-1].index if mail else None
        return [
            "f", *head, action.from_agent_id, action.limit, action.offset, action.after_index,
            upto, len(mail), refusal,
        ]  # fmt: skip
    found = result if isinstance(result, Found) else Found((), action.search_algorithm, 0, 0)
    asked = None if action.constraints is None else act.plain(action.constraints)
    return [
        "s", *head, action.query, action.search_algorithm, asked, action.limit, action.page,
        found.total, found.pages, [hit.id for hit in found.businesses], refusal,
    ]  # fmt: skip


def _message(tree: Json) -> act.Message:
    """A message that we wrote ourselves: checked when it was sent."""
    kind = tree["type"]
    if kind == "text":
        return act.TextMessage(tree["content"])
    if kind == "order_proposal":
        items = tuple(act.OrderItem(**line) for line in tree.pop("items"))
        return act.OrderProposal(items=items, **tree)
    return act.Payment(**tree)
