"""The gate that every request passes: limits first, then the route, then counters and the log.

Routes that are asked often are answered here directly; the rest goes on to the FastAPI
application, which documents them all.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any

from marketeval.apps.server.calls import Answer, Call, Stop
from marketeval.apps.server.service import Service
from marketeval.apps.server.settings import Limits

Scope = MutableMapping[str, Any]  # any: ASGI's own
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]
Endpoint = Callable[[Service, Call], Awaitable[Answer]]
log = logging.getLogger("marketeval.server")
DRAINED = 16 * 2**20  # bytes of a body that is too large which are still read
_TOO_MANY = {"Retry-After": "1"}


class Bucket:
    """So many per second, and as many saved up for two seconds."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: float) -> None:
        self._rate, self._left, self._at = rate, 2 * rate, time.monotonic()

    def take(self) -> float:
        """0 if there was one left, else the seconds until there is."""
        now = time.monotonic()
        self._left = min(2 * self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / self._rate


@dataclass(slots=True)
class Counters:
    """What `/metrics` tells of requests: how many by route and status, seconds in all."""

    requests: dict[tuple[str, str, int], int] = field(default_factory=dict)
    seconds: float = 0.0
    open: int = 0


class Gate:
    """The server's outermost application."""

    def __init__(
        self,
        app: Asgi,
        service: Service,
        often: Mapping[tuple[str, str], Endpoint],
        access_log: IO[str] | None = None,
    ) -> None:
        self._app, self._service, self._often = app, service, often
        self._log = access_log
        self.limits: Limits = service.settings.limits
        self.counters = Counters()
        self._all = None if self.limits.rate is None else Bucket(self.limits.rate)
        self._each: dict[str, Bucket] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        counters = self.counters
        counters.open += 1
        method, path = scope["method"], scope["path"]
        call = Call(method, path, scope["query_string"], dict(scope["headers"]))
        endpoint = self._often.get((method, path))
        status, size = 500, 0
        answer: Answer | None = None
        try:
            try:
                self._check_rates(call, path)
                call.body = await self._body(call, receive)
                if endpoint is not None:
                    answer = await endpoint(self._service, call)
            except Stop as stop:
                answer = stop.answer()
            if answer is not None:
                status, size = answer.status, len(answer.body)
                await respond(answer, send, receive)
            else:
                scope["marketeval.call"] = call

                async def counted(message: MutableMapping[str, Any]) -> None:  # any: ASGI's own
                    nonlocal status, size
                    if message["type"] == "http.response.start":
                        status = message["status"]
                    size += len(message.get("body", b""))
                    await send(message)

                await self._app(scope, _replaying(call.body, receive), counted)
        except Exception:
            log.exception("%s %s failed", method, _route(scope))
            status = 500
            with suppress(Exception):  # the answer may have begun
                await respond(Answer(500, b'{"detail":"internal error"}'), send, receive)
        finally:
            taken = time.perf_counter() - start
            counters.open -= 1
            counters.seconds += taken
            key = method, path if endpoint is not None else _route(scope), status
            counters.requests[key] = counters.requests.get(key, 0) + 1
            if self._log is not None:
                self._note(key, call, size, taken)

    def _check_rates(self, call: Call, path: str) -> None:
        if self._all is not None and path != "/health":
            wait = self._all.take()
            if wait:
                raise Stop(429, "too many requests to this server", _TOO_MANY)
        rate = self.limits.agent_rate
        if rate is None:
            return
        who = call.header(b"authorization") or call.header(b"x-agent-id")
        if who is None:
            return
        bucket = self._each.get(who)
        if bucket is None:
            if len(self._each) > 50_000:
                self._each.clear()
            bucket = self._each[who] = Bucket(rate)
        wait = bucket.take()
        if wait:
            told = f"too many requests of one agent: at most {rate:g} a second"
            raise Stop(429, told, {"Retry-After": str(max(1, math.ceil(wait)))})

    async def _body(self, call: Call, receive: Receive) -> bytes:
        if call.method in ("GET", "HEAD") and b"content-length" not in call.headers:
            return b""
        note = call.path == "/logs/create"
        most = self.limits.largest_note if note else self.limits.largest_body
        too_large = Stop(413, f"a body here has at most {most} bytes", {"Connection": "close"})
        stated = call.headers.get(b"content-length", b"0")
        if not stated.isdigit() or len(stated) > 15 or int(stated) > DRAINED:
            raise too_large
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await self._next(receive)
            if message["type"] == "http.disconnect":
                raise Stop(400, "the request broke off")
            part = message.get("body", b"")
            size += len(part)
            if size > DRAINED:
                raise too_large
            if size <= most:  # what is beyond is read, so that the answer is, and thrown away
                parts.append(part)
            more = message.get("more_body", False)
        if size > most:
            raise too_large
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _next(self, receive: Receive) -> MutableMapping[str, Any]:  # any: ASGI's own
        try:
            async with asyncio.timeout(self.limits.body_within):
                return await receive()
        except TimeoutError:
            raise Stop(408, "the body did not come in time", {"Connection": "close"}) from None

    def _note(self, key: tuple[str, str, int], call: Call, size: int, taken: float) -> None:
        """One line of the access log: no bodies, no queries, no headers."""
        line = {
            "at": round(time.time(), 3),
            "method": key[0],
            "route": key[1],
            "status": key[2],
            "agent": call.agent,
            "ms": round(taken * 1000, 2),
            "in": len(call.body),
            "out": size,
        }
        assert self._log is not None  # asked by the caller
        self._log.write(json.dumps(line) + "\n")


async def respond(answer: Answer, send: Send, receive: Receive) -> None:
    """Send an answer; a stream ends when its reader has gone."""
    headers = [(b"content-type", answer.kind.encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in answer.headers.items()]
    if answer.stream is None:
        headers.append((b"content-length", b"%d" % len(answer.body)))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})
        return
    headers.append((b"cache-control", b"no-store"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        while True:
            part = asyncio.ensure_future(_next(answer.stream))
            await asyncio.wait({part, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                part.cancel()
                return
            body = part.result()
            if body is None:
                break
            await send({"type": "http.response.body", "body": body, "more_body": True})
    finally:
        gone.cancel()
    await send({"type": "http.response.body", "body": b""})


async def _disconnected(receive: Receive) -> None:
    """Returns once the reader has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _next(stream: AsyncIterator[bytes]) -> bytes | None:
    """The next part of a stream; None at its end."""
    return await anext(stream, None)


def opened(where: object) -> IO[str] | None:
    """The file of the access log, written line by line."""
    if where is None:
        return None
    if where == "-":
        return sys.stderr
    return open(str(where), "a", buffering=1, encoding="utf-8")


def _replaying(body: bytes, receive: Receive) -> Receive:
    """A receive that gives the body that was read already."""
    given = False

    async def replay() -> MutableMapping[str, Any]:  # any: ASGI's own
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _route(scope: Scope) -> str:
    """The route's own path, not what a stranger made of it."""
    found = scope.get("route")
    return str(getattr(found, "path", "(none)"))
