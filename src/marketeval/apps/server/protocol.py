"""The reference's eight routes, at the root: bodies, status codes and error texts as there."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from marketeval.actions import two_sided as act
from marketeval.apps.server.book import START, hashed
from marketeval.apps.server.calls import Answer, Call, Stop, member, ok, wrong
from marketeval.apps.server.host import Unavailable
from marketeval.apps.server.identity import bearer
from marketeval.apps.server.service import Service, parameters, unavailable
from marketeval.markets.two_sided.journal import TICK

LEVELS = ("debug", "info", "warning", "error")
_HEALTHY = Answer(200, b'{"status":"healthy"}')
_ACTIONS = (
    ("SendMessage", act.SendMessage, "Send one message to one agent."),
    ("FetchMessages", act.FetchMessages, "Read one's own inbox, oldest first."),
    ("Search", act.Search, "Look for businesses."),
)


async def health(service: Service, call: Call) -> Answer:
    """Whether the server is up; 503 while nothing can be stored."""
    down = service.host.down
    if down:
        raise Stop(503, f"nothing can be stored now: {down}", {"Retry-After": "1"})
    return _HEALTHY


async def register(service: Service, call: Call) -> Answer:
    """Enter the market, or replace one's document. Keys beyond id and metadata are kept."""
    tree = call.json(plain_text=service.strict)
    document = member(tree, "agent", dict)
    if "id" not in document:
        raise wrong("missing", ("body", "agent", "id"), "Field required")
    name = document["id"]
    if not isinstance(name, str):
        raise wrong("string_type", ("body", "agent", "id"), "Input should be a valid string", name)
    metadata = document.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        where = ("body", "agent", "metadata")
        raise wrong("dict_type", where, "Input should be a valid dictionary", metadata)
    document = {**document, "metadata": metadata or {}}
    if not name and service.settings.auth == "header":
        name = str(uuid.uuid4())
    if service.settings.auth == "suffixed":
        return await _register_suffixed(service, document, name)
    hash_, made = service.identity.may_enter(call, name)
    document["id"] = name
    service.checked(document)
    await enter(service, document, hash_)
    call.agent = name
    return ok({"error": None, "id": name, **({"token": made} if made else {})})


async def enter(service: Service, document: dict[str, Any], token: str) -> None:  # any: JSON
    """Register a document."""
    try:
        await service.host.register(document, token=token)
    except Unavailable as error:
        raise unavailable(error) from None


async def _register_suffixed(
    service: Service,
    document: dict[str, Any],
    base: str,  # any: JSON
) -> Answer:
    """The form before November 2025: a token, and an id with the next free number."""
    known = service.host.documents
    number = 1 + max(
        (
            int(end)
            for one in known
            for start, _, end in [one.rpartition("-")]
            if start == base and end.isascii() and end.isdigit() and len(end) < 10
        ),
        default=-1,
    )
    document["id"] = f"{base}-{number}"
    token = str(uuid.uuid4())
    await enter(service, document, hashed(token))
    return ok({"error": None, "agent": document, "token": token})


async def agents(service: Service, call: Call) -> Answer:
    """All agents in the order of registration."""
    offset = call.integer("offset", 0, 0) or 0
    limit = call.integer("limit", None, 1)
    reader = reading(service, call)
    names = list(service.host.documents)
    page = names[offset : None if limit is None else offset + limit]
    await settled(service)
    return ok(_list(len(names), offset, limit, [service.shown(one, reader) for one in page]))


async def agent(service: Service, call: Call) -> Answer:
    """One agent's document."""
    name = call.values["id"]
    if name not in service.host.documents:
        raise Stop(404, "Agent not found")
    document = service.shown(name, reading(service, call))
    await settled(service)
    return ok({"error": None, "agent": document})


async def describe(service: Service, call: Call) -> Answer:
    """The three actions with the JSON Schema of their parameters."""
    return ok(
        {
            "error": None,
            "actions": [
                {
                    "name": name,
                    "description": words,
                    "parameters": act.schema(kind),
                    "metadata": {"source": "BaseAction"},
                }
                for name, kind, words in _ACTIONS
            ],
        }
    )


async def execute(service: Service, call: Call) -> Answer:
    """Carry out one action of the caller. What the market refuses is 200 with `is_error`.

    The kind of action is `parameters.type`; the name beside it does not matter.
    """
    tree = call.json(plain_text=service.strict)
    caller = service.identity.caller(call)
    member(tree, "name", str)
    given = member(tree, "parameters", dict)
    member(tree, "metadata", dict, optional=True)
    try:
        action = parameters(given)
    except ValidationError as error:
        words = "; ".join(
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5]
        )
        return ok({"content": words, "is_error": True, "metadata": {}})
    return Answer(200, service.result(await service.perform(caller, action, call)))


async def create_log(service: Service, call: Call) -> Answer:
    """Keep a log document."""
    if service.strict and not service.identity.is_operator(call):
        service.identity.caller(call)
    document = member(call.json(plain_text=False), "log", dict)
    if document.get("level") not in LEVELS:
        told = "Input should be 'debug', 'info', 'warning' or 'error'"
        raise wrong("enum", ("body", "log", "level"), told, None)
    if not isinstance(document.get("name"), str):
        raise wrong("string_type", ("body", "log", "name"), "Input should be a valid string")
    document.setdefault("message", None)
    document.setdefault("data", None)
    document["metadata"] = document.get("metadata") or {}
    try:
        await service.host.note(document, to_json(document).decode())
    except Unavailable as error:
        raise unavailable(error) from None
    return ok({"error": None})


async def logs(service: Service, call: Call) -> Answer:
    """Log documents in order, strictly between two moments."""
    offset = call.integer("offset", 0, 0) or 0
    limit = call.integer("limit", None, 1)
    bounds = {
        name: None if moment is None else int((moment.timestamp() - START) * TICK)
        for name in ("after", "before")
        for moment in [call.moment(name)]
    }
    if service.strict:
        service.identity.needs_operator(call)
    store = service.host.store
    found = await store.notes(
        after=bounds["after"], before=bounds["before"], offset=offset, limit=limit
    )
    total = await store.count_notes()
    head = to_json(_list(total, offset, limit, []))[:-2]
    more = limit is not None and len(found) == limit
    head = head.replace(b'"has_more":false', b'"has_more":true') if more else head
    return Answer(200, head + ",".join(found).encode() + b"]}")


def reading(service: Service, call: Call) -> str | None:
    """Who reads, where that matters: an agent, or None for a stranger."""
    if service.settings.auth == "header" or bearer(call) is None:
        return None
    if service.identity.is_operator(call):
        return None
    return service.identity.caller(call)


async def settled(service: Service) -> None:
    """Wait until what is about to be shown is committed."""
    if service.host.down:
        return
    try:
        await service.host.settled()
    except Unavailable as error:
        raise unavailable(error) from None


def _list(total: int, offset: int, limit: int | None, items: Sequence[Any]) -> dict[str, Any]:
    """The reference's envelope (any: JSON); an exactly full last page claims more, as there."""
    return {
        "error": None,
        "total": total,
        "offset": offset,
        "limit": limit,
        "has_more": limit is not None and len(items) == limit,
        "items": items,
    }
