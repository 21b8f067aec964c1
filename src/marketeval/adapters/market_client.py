"""A client of a served two-sided market, for programs and for other event loops: sync and async.

    with MarketClient("http://127.0.0.1:8080", agent="customer_1") as me:
        me.register({"customer": {...}})
        hits = me.search("a taco with wifi")
        me.send(hits[0]["id"], {"type": "text", "content": "How much?"})
        mail = me.wait(seconds=30)

Every message carries an idempotency key, so that what went unanswered can be asked again and is
still done once. 429, 503 and lost connections are tried again; whatever else goes wrong is raised.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from marketeval.core.errors import RunError, UsageError

try:
    import httpx
except ModuleNotFoundError:  # said where it is needed
    httpx = None

Json = Any  # any: parsed JSON
AGAIN = (429, 503)
FIRST_S, LONGEST_S = 0.1, 10.0
FETCHED = 10  # results of a search


class MarketError(RunError):
    """An answer that is an error, or none at all after the last attempt (status 0)."""

    def __init__(self, status: int, detail: Json) -> None:
        super().__init__(f"the market answered {status or 'nothing'}: {detail}")
        self.status, self.detail = status, detail


class Refused(RunError):
    """The market said no to an action; `content` is what it said."""

    def __init__(self, content: Json) -> None:
        super().__init__(f"the market refused: {content}")
        self.content = content


@dataclass(frozen=True, slots=True)
class _Ask:
    """One request, ready to be sent as often as it takes."""

    method: str
    path: str
    body: Json = None
    query: Mapping[str, str | int] | None = None
    headers: Mapping[str, str] | None = None
    wait: float = 0.0


class _Shared:
    """What both clients have in common: who they are, and what to ask."""

    def __init__(
        self, url: str, *, agent: str, token: str = "", registration: str = "", attempts: int = 12
    ) -> None:
        if httpx is None:
            raise UsageError(
                "the client needs the package httpx: python -m pip install 'marketeval[server]'"
            )
        if attempts < 1:
            raise UsageError(f"attempts: expected 1 or more, got {attempts}")
        self.url, self.agent = url.rstrip("/"), agent
        self.token = token or secrets.token_urlsafe(24)
        self.seen = 0  # the row of the last message that was read
        self._registration, self._attempts = registration, attempts

    def _headers(self, more: Mapping[str, str] | None) -> dict[str, str]:
        return {
            "X-Agent-Id": self.agent,
            "Authorization": f"Bearer {self.token}",
            **(more or {}),
        }

    def _register(self, document: Mapping[str, Json]) -> _Ask:
        whole = {"id": self.agent, "metadata": {}, **document}
        secret = {"X-Registration-Token": self._registration} if self._registration else None
        return _Ask("POST", "/agents/register", {"agent": whole}, headers=secret)

    def _registered(self, answer: Json) -> str:
        """The id; also in the protocol's older form, where the server gives it and the token."""
        self.agent = answer.get("id") or answer["agent"]["id"]
        self.token = answer.get("token") or self.token
        return self.agent

    def _execute(self, parameters: Mapping[str, Json], key: str | None) -> _Ask:
        names = {"send_message": "SendMessage", "search": "Search"}
        name = names.get(parameters["type"], "FetchMessages")
        body = {"name": name, "parameters": parameters, "metadata": {}}
        return _Ask(
            "POST", "/actions/execute", body, headers={"Idempotency-Key": key or uuid.uuid4().hex}
        )

    def _message(self, to: str, message: Mapping[str, Json]) -> Mapping[str, Json]:
        return {
            "type": "send_message",
            "from_agent_id": self.agent,
            "to_agent_id": to,
            "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "message": message,
        }

    def _new_mail(self, wait: float) -> _Ask:
        query: dict[str, str | int] = {"after_index": self.seen, "wait": int(wait)}
        return _Ask("GET", "/v1/messages", query=query, wait=wait)

    def _taken(self, answer: Json) -> list[Json]:
        found: list[Json] = answer["content"]["messages"]
        self.seen = max([self.seen, *(one["index"] for one in found)])
        return found


def _pause(attempt: int, answer: Any) -> float:  # any: a response, or None
    """Seconds before the next attempt: twice as long each time, with jitter, or as asked."""
    asked = answer.headers.get("Retry-After", "") if answer is not None else ""
    doubled = min(FIRST_S * 2.0**attempt, LONGEST_S)
    return (min(float(asked), LONGEST_S) if asked.isdigit() else doubled) * random.uniform(0.5, 1)


def _content(answer: Json) -> Json:
    if answer["is_error"]:
        raise Refused(answer["content"])
    return answer["content"]


def _read(answer: Any) -> Json:  # any: a response
    if answer.status_code == 200:
        return answer.json()
    try:
        detail = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        detail = answer.text[:200]
    raise MarketError(answer.status_code, detail)


def _search(query: str, rule: str, limit: int, page: int) -> Mapping[str, Json]:
    return {
        "type": "search", "query": query, "search_algorithm": rule, "limit": limit, "page": page,
    }  # fmt: skip


class MarketClient(_Shared):
    """One agent's connection to a market."""

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 60.0,
        **who: Any,  # any: as _Shared
    ) -> None:
        super().__init__(url, **who)
        self._http = httpx.Client(base_url=self.url, timeout=timeout)

    def register(self, document: Mapping[str, Json]) -> str:
        """Enter the market with a `customer` or `business`; the id."""
        return self._registered(self._ask(self._register(document)))

    def execute(self, parameters: Mapping[str, Json], *, key: str | None = None) -> Json:
        """The content that an action gives; raises Refused."""
        return _content(self._ask(self._execute(parameters, key)))

    def act(self, parameters: Mapping[str, Json], *, key: str | None = None) -> Json:
        """What came of an action, refused or not, with its row (`POST /v1/actions`)."""
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        return self._ask(_Ask("POST", "/v1/actions", parameters, headers=headers))

    def send(self, to: str, message: Mapping[str, Json], *, key: str | None = None) -> Json:
        """Send a text, an order proposal or a payment; raises Refused."""
        return self.execute(self._message(to, message), key=key)

    def search(
        self, query: str, *, rule: str = "lexical", limit: int = FETCHED, page: int = 1
    ) -> Sequence[Json]:
        """The documents of the businesses found."""
        found: Sequence[Json] = self.execute(_search(query, rule, limit, page))["businesses"]
        return found

    def inbox(self) -> Sequence[Json]:
        """All mail, oldest first, page by page."""
        found: list[Json] = []
        while True:
            page = self.execute(_after(found))
            found += page["messages"]
            if not (page["has_more"] and page["messages"]):
                return found

    def wait(self, seconds: float = 30.0) -> Sequence[Json]:
        """Mail that was not read yet, as soon as there is some; nothing if the time is over."""
        return self._taken(self._ask(self._new_mail(seconds)))

    def events(self) -> Iterator[Json]:
        """New mail for as long as the server runs, as it comes."""
        query = {"after_index": self.seen}
        headers = self._headers(None)
        with self._http.stream("GET", "/v1/events", params=query, headers=headers) as answer:
            if answer.status_code != 200:
                answer.read()
                _read(answer)
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    one = httpx.Response(200, text=line[6:]).json()
                    self.seen = one["index"]
                    yield one

    def get(self, path: str) -> Json:
        """Any other route, such as /v1/view or /agents."""
        return self._ask(_Ask("GET", path))

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, ask: _Ask) -> Json:
        why: Json = ""
        for attempt in range(self._attempts):
            answer = None
            try:
                answer = self._http.request(
                    ask.method, ask.path, json=ask.body, params=ask.query,
                    headers=self._headers(ask.headers), **_within(ask.wait),
                )  # fmt: skip
                if answer.status_code not in AGAIN:
                    return _read(answer)
                why = answer.text[:200]
            except httpx.TransportError as error:
                why = f"{type(error).__name__}: {error}"
            if attempt + 1 < self._attempts:
                time.sleep(_pause(attempt, answer))
        raise MarketError(0 if answer is None else answer.status_code, why)


class AsyncMarketClient(_Shared):
    """As MarketClient, for event loops."""

    def __init__(self, url: str, *, timeout: float = 60.0, **who: Any) -> None:  # any: as _Shared
        super().__init__(url, **who)
        self._http = httpx.AsyncClient(base_url=self.url, timeout=timeout)

    async def register(self, document: Mapping[str, Json]) -> str:
        """As the other's."""
        return self._registered(await self._ask(self._register(document)))

    async def execute(self, parameters: Mapping[str, Json], *, key: str | None = None) -> Json:
        """As the other's."""
        return _content(await self._ask(self._execute(parameters, key)))

    async def send(self, to: str, message: Mapping[str, Json], *, key: str | None = None) -> Json:
        """As the other's."""
        return await self.execute(self._message(to, message), key=key)

    async def search(
        self, query: str, *, rule: str = "lexical", limit: int = FETCHED, page: int = 1
    ) -> Sequence[Json]:
        """As the other's."""
        content = await self.execute(_search(query, rule, limit, page))
        found: Sequence[Json] = content["businesses"]
        return found

    async def inbox(self) -> Sequence[Json]:
        """As the other's."""
        found: list[Json] = []
        while True:
            page = await self.execute(_after(found))
            found += page["messages"]
            if not (page["has_more"] and page["messages"]):
                return found

    async def wait(self, seconds: float = 30.0) -> Sequence[Json]:
        """As the other's."""
        return self._taken(await self._ask(self._new_mail(seconds)))

    async def events(self) -> AsyncIterator[Json]:
        """As the other's."""
        query = {"after_index": self.seen}
        headers = self._headers(None)
        async with self._http.stream("GET", "/v1/events", params=query, headers=headers) as answer:
            if answer.status_code != 200:
                await answer.aread()
                _read(answer)
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    one = httpx.Response(200, text=line[6:]).json()
                    self.seen = one["index"]
                    yield one

    async def get(self, path: str) -> Json:
        """As the other's."""
        return await self._ask(_Ask("GET", path))

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask(self, ask: _Ask) -> Json:
        why: Json = ""
        for attempt in range(self._attempts):
            answer = None
            try:
                answer = await self._http.request(
                    ask.method, ask.path, json=ask.body, params=ask.query,
                    headers=self._headers(ask.headers), **_within(ask.wait),
                )  # fmt: skip
                if answer.status_code not in AGAIN:
                    return _read(answer)
                why = answer.text[:200]
            except httpx.TransportError as error:
                why = f"{type(error).__name__}: {error}"
            if attempt + 1 < self._attempts:
                await asyncio.sleep(_pause(attempt, answer))
        raise MarketError(0 if answer is None else answer.status_code, why)


def _after(found: Sequence[Json]) -> dict[str, Json]:
    """The fetch of what comes after the mail that was found."""
    return {"type": "fetch_messages", "after_index": found[-1]["index"] if found else None}


def _within(wait: float) -> dict[str, float]:
    """A time-out that leaves room for a long poll."""
    return {"timeout": wait + 30.0} if wait else {}
