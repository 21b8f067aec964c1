"""Our additions under `/v1`: long polling and events, one agent's view, numbers, the clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from marketeval.actions import two_sided as act
from marketeval.apps.server.book import moment
from marketeval.apps.server.calls import Answer, Call, Stop, not_fitting, ok, wrong
from marketeval.apps.server.host import Unavailable
from marketeval.apps.server.protocol import settled
from marketeval.apps.server.service import PAGE, Service, parameters, unavailable
from marketeval.markets.two_sided.journal import TICK
from marketeval.markets.two_sided.state import Refused

BEAT_S = 15.0  # between signs of life on an event stream
OFFERS = 200  # offers that a view holds at most


async def act_(service: Service, call: Call) -> Answer:
    """Carry out one action: the parameters alone are the body; what came of it, with its row.

    A refusal has `refused` set to its reason. `Idempotency-Key` makes a message safe to repeat.
    """
    caller = service.identity.caller(call)
    try:
        action = parameters(call.json(plain_text=service.strict))
    except ValidationError as error:
        raise not_fitting(error, ("body",)) from None
    entry = await service.perform(caller, action, call)
    refused = to_json(entry.result.reason if isinstance(entry.result, Refused) else None)
    head = b'{"row":%d,"tick":%d,"refused":' % (entry.row, entry.now)
    return Answer(200, head + refused + b"," + service.result(entry)[1:])


async def messages(service: Service, call: Call) -> Answer:
    """New mail of the caller after a row; with `wait`, the answer comes once there is some."""
    caller = service.identity.caller(call)
    after = call.integer("after_index", 0, 0) or 0
    limit = call.integer("limit", PAGE, 1)
    wait = min(call.integer("wait", 0, 0) or 0, service.settings.limits.longest_wait)
    if wait:
        await service.host.wait_for_mail(caller, after, wait)
    action = act.FetchMessages(after_index=after, limit=min(limit or PAGE, PAGE))
    return Answer(200, service.result(await service.perform(caller, action, call)))


async def events(service: Service, call: Call) -> Answer:
    """New mail of the caller as server-sent events; `Last-Event-ID` is the last row seen."""
    caller = service.identity.caller(call)
    seen = call.header(b"last-event-id") or ""
    after = call.integer("after_index", 0, 0) or 0
    if seen.isascii() and seen.isdigit() and len(seen) < 16:
        after = max(after, int(seen))
    return Answer(200, stream=_stream(service, caller, after), kind="text/event-stream")


async def _stream(service: Service, agent: str, after: int) -> AsyncIterator[bytes]:
    host = service.host
    yield b": the mail of " + to_json(agent) + b"\n\n"
    while not host.stopping.is_set():
        await host.wait_for_mail(agent, after, BEAT_S)
        try:
            await host.settled()
        except Unavailable:
            await asyncio.sleep(1)
            continue
        mail = host.state.mail(agent, after)[:PAGE]
        for one in mail:
            after = one.index
            yield b"event: message\nid: %d\ndata: " % after + service.heard(one, agent) + b"\n\n"
        if not mail:
            yield b": still here\n\n"


async def view(service: Service, call: Call) -> Answer:
    """The market as the caller sees it: its document, balance, latest offers, mail and the time."""
    caller = service.identity.caller(call)
    await settled(service)
    host, state = service.host, service.host.state
    inbox = state.inboxes.get(caller, [])
    known = list(host.offers.get(caller, {}))[-OFFERS:]
    offers = [state.offers[one] for one in reversed(known) if one in state.offers]
    now = host.now()
    books = state.rules.books
    return ok(
        {
            "agent": host.documents[caller],
            "now": moment(now),
            "tick": now // TICK,
            "balance_cents": state.accounts.balance(caller) if books else None,
            "messages": len(inbox),
            "last_index": inbox[-1].index if inbox else 0,
            "offers": [
                {
                    "seller": offer.seller,
                    "buyer": offer.buyer,
                    "proposal": act.plain(offer.proposal),
                    "paid": offer.paid,
                    "expires": None if offer.expires is None else moment(offer.expires * TICK),
                    "lapsed": offer.expires is not None and state.now > offer.expires,
                }
                for offer in offers
            ],
        }
    )


async def metrics(service: Service, call: Call) -> Answer:
    """Totals of the market: agents, actions, messages, refusals by reason, money that moved."""
    await settled(service)
    host, state = service.host, service.host.state
    return ok(
        {
            "agents": len(host.documents),
            "businesses": len(state.public),
            "rows": state.rows,
            "actions": host.totals.actions,
            "messages": host.totals.messages,
            "refusals": host.totals.refusals,
            "paid_cents": host.totals.paid if state.rules.books else None,
            "books_balance": state.balances_hold() if state.rules.books else None,
        }
    )


async def clock(service: Service, call: Call) -> Answer:
    """Move the logical clock of a market that has one: `{"tick": n}`. For the operator."""
    service.identity.needs_operator(call)
    if not service.host.logical:
        raise Stop(409, "this market goes by the wall clock; serve it with --clock logical")
    tree: Any = call.json(plain_text=True)  # any: parsed JSON
    to = tree.get("tick") if isinstance(tree, dict) else None
    if type(to) is not int or not 0 <= to < 2**31:
        raise wrong("int_type", ("body", "tick"), "Input should be a whole number from 0")
    try:
        await service.host.tick(to)
    except ValueError as error:
        raise Stop(409, str(error)) from None
    except Unavailable as error:
        raise unavailable(error) from None
    return ok({"tick": to})
