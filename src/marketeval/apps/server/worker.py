"""A process that fills one seat of a scenario: its agents decide here, and act here over HTTP.

The coordinator says whose turn it is. It hands over requests and is given decisions; it says which
action is carried out next, and the process of the agent that acts sends it, with that agent's own
token.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import secrets
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

from marketeval.agents.registry import make_agent
from marketeval.core.errors import MarketevalError, RunError
from marketeval.core.market import Action, Agent, Failure, Request

Message = tuple[Any, ...]  # any: what travels between the two processes


@dataclass(frozen=True, slots=True)
class Casting:
    """What a process needs to make its agents: their places, the short text, the options."""

    places: tuple[str, ...]
    text: str
    options: Mapping[str, Any]  # any: as a scenario's


def work(casting: Casting, asking: list[Connection], acting: Connection) -> None:
    """Answer requests and carry out actions until the coordinator goes away."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    agents = {
        place: make_agent(casting.text, seat=place, options=casting.options)
        for place in casting.places
    }
    for connection in asking:
        threading.Thread(target=_decide, args=(connection, agents, loop), daemon=True).start()
    with suppress(EOFError, OSError):
        _act(acting)


def _decide(
    connection: Connection, agents: Mapping[str, Agent], loop: asyncio.AbstractEventLoop
) -> None:
    with suppress(EOFError, OSError):
        while True:
            seat, request = connection.recv()
            asked = asyncio.run_coroutine_threadsafe(_decision(agents[seat], request), loop)
            connection.send(asked.result())


async def _decision(agent: Agent, request: Request) -> Action:
    """What the agent decides; its own errors are a failure of it, as everywhere."""
    try:
        return await agent.act(request)
    except MarketevalError as error:
        return error
    except Exception as error:  # an agent's misbehaviour is an event, never a crash
        return Failure(f"{type(error).__name__}: {error}")


def _act(connection: Connection) -> None:
    """Registrations and actions, one after the other, for the market at the address given last."""
    wire = Wire("")
    while True:
        what, name, body = connection.recv()
        try:
            if what == "open":
                wire.close()
                wire, answer = Wire(name), None
            elif what == "register":
                answer = wire.post("/agents/register", name, {"agent": body})
            else:
                answer = wire.post("/v1/actions", name, body)
            connection.send((True, answer))
        except (RunError, OSError, http.client.HTTPException) as error:
            connection.send((False, f"{type(error).__name__}: {error}"))


class Wire:
    """One connection to a market for all agents of this process, each with a token of its own."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
        self._tokens: dict[str, str] = {}

    def post(self, path: str, agent: str, body: Any) -> Any:  # any: JSON
        """The answer to a request of an agent."""
        token = self._tokens.get(agent) or self._tokens.setdefault(agent, secrets.token_urlsafe(24))
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection.request("POST", path, json.dumps(body), headers)
        answer = self._connection.getresponse()
        read = answer.read()
        if answer.status != 200:
            raise RunError(f"the market answered {answer.status} to {agent}: {read[:300]!r}")
        return json.loads(read)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
