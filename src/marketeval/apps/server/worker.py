"""A process that fills one seat of a scenario: its agents decide here, and act here over HTTP.

The coordinator says whose turn it is. It hands over requests and is given decisions; it says which
action is carried out next, and the process of the agent that acts sends it, with that agent's own
token.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from marketeval.adapters.market_client import MarketClient
from marketeval.agents.registry import make_agent
from marketeval.core.errors import MarketevalError
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
    import httpx

    clients: dict[str, MarketClient] = {}
    shared: httpx.Client | None = None
    url = ""
    while True:
        what, *rest = connection.recv()
        try:
            if what == "open":
                (url,) = rest
                if shared is not None:
                    shared.close()
                shared = httpx.Client(base_url=url, timeout=60, verify=False)
                clients = {}
                answer: Any = None  # any: parsed JSON
            elif what == "register":
                name, document = rest
                clients[name] = MarketClient(url, agent=name, connections=shared)
                answer = clients[name].register(document)
            else:
                name, parameters = rest
                answer = clients[name].act(parameters)
            connection.send((True, answer))
        except MarketevalError as error:
            connection.send((False, str(error)))
