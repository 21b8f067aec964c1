"""`marketeval run SCENARIO --over http`: the script of a two-sided market against a real server.

The turns are those of lockstep, so the log is that of the run within one process: the coordinator
plays the script, every seat of the scenario is a process of its own, and what comes of an action is
decided by the server, whom the process of the acting agent asks over HTTP. The coordinator keeps a
copy of the state by the entries that the server gives; it decides nothing.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import queue
import secrets
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from marketeval.actions import two_sided as act
from marketeval.apps.server.worker import Casting, work
from marketeval.core.errors import MarketevalError, RunError, UsageError
from marketeval.core.market import Action, Agent, Market, Request
from marketeval.experiments.experiment import Experiment
from marketeval.markets.two_sided.family import cast
from marketeval.markets.two_sided.market import TwoSidedMarket
from marketeval.markets.two_sided.rules import EPOCH
from marketeval.markets.two_sided.state import Action as MarketAction
from marketeval.markets.two_sided.state import (
    Entry,
    Found,
    Mail,
    Refused,
    Registered,
    Result,
    Sent,
    State,
)
from marketeval.markets.two_sided.switches import Rules

Json = Any  # any: parsed JSON
AT_ONCE = 4  # requests one process decides at the same time


class Seat:
    """A process with the agents of one seat, and the ends of what connects it."""

    def __init__(self, casting: Casting) -> None:
        context = multiprocessing.get_context("spawn")
        pairs = [context.Pipe() for _ in range(AT_ONCE + 1)]
        theirs = [pair[1] for pair in pairs]
        self._free: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        for ours, _ in pairs[1:]:
            self._free.put(ours)
        self._acting: Connection = pairs[0][0]
        self._process = context.Process(
            target=work, args=(casting, theirs[1:], theirs[0]), daemon=True
        )
        self._process.start()
        for one in theirs:
            one.close()

    def decide(self, place: str, request: Request) -> Action:
        """What an agent of this process decides."""
        connection = self._free.get()
        try:
            connection.send((place, request))
            action = connection.recv()
        except (EOFError, OSError) as error:
            raise RunError(f"the process of seat '{place}' has ended: {error}") from error
        finally:
            self._free.put(connection)
        if isinstance(action, MarketevalError):
            raise action
        return action

    def act(self, *words: Json) -> Json:
        """What the server answers to an agent of this process."""
        try:
            self._acting.send(words)
            well, answer = self._acting.recv()
        except (EOFError, OSError) as error:
            raise RunError(f"the process of a seat has ended: {error}") from error
        if not well:
            raise RunError(answer)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """An agent that decides in another process."""

    agent: Agent
    seat: Seat
    place: str
    immediate: bool = False

    @property
    def deterministic(self) -> bool:
        """As the agent."""
        return self.agent.deterministic

    @property
    def privileged(self) -> bool:
        """As the agent."""
        return self.agent.privileged

    async def act(self, request: Request) -> Action:
        """What it decides there."""
        return await asyncio.to_thread(self.seat.decide, self.place, request)


class OverHttp:
    """Plays two-sided markets against a server of their own, one episode at a time.

    The journal of such a market is not kept: the run directory is what lasts. `database` is a name
    for it within a folder that ends with the episode, or memory.
    """

    def __init__(self, database: str = "memory:") -> None:
        for name in ("fastapi", "uvicorn"):
            if find_spec(name) is None:
                raise UsageError(
                    f"--over http needs the package {name}: python -m pip install "
                    "'marketeval[server]'"
                )
        self._database = database
        self._seats: list[Seat] = []
        self._turn = asyncio.Lock()

    def check(self, experiment: Experiment) -> None:
        """As the port."""
        market = experiment.market
        if not isinstance(market, TwoSidedMarket):
            raise UsageError(
                f"--over http: expected a two-sided market, got family "
                f"'{experiment.scenario.family}'"
            )
        spec = market.spec
        for name, usual in (("order", "as_ranked"), ("days", 1)):
            if getattr(spec, name) != usual:
                raise UsageError(
                    f"--over http: a server has no market.{name}={getattr(spec, name)}; play it "
                    "without --over"
                )
        if market.embedder:
            raise UsageError("--over http: a server has no embedder; play it without --over")

    def seats(self, experiment: Experiment) -> Mapping[str, Agent]:
        """As the port: one process per seat of the scenario."""
        market = experiment.market
        assert isinstance(market, TwoSidedMarket)  # checked before
        named = experiment.scenario.seats
        places = cast(market, named)
        made: dict[str, Seat] = {}
        for name in dict.fromkeys(places.values()):
            own = tuple(place for place, seat in places.items() if seat == name)
            made[name] = Seat(Casting(own, named[name].agent, named[name].options))
            self._seats.append(made[name])
        return {
            place: Elsewhere(experiment.seats[place], made[name], place)
            for place, name in places.items()
        }

    @asynccontextmanager
    async def market(self, market: Market, seats: Mapping[str, Agent]) -> AsyncIterator[Market]:
        """As the port: a server is started, and ends with the episode."""
        assert isinstance(market, TwoSidedMarket)  # checked before
        there = {place: one.seat for place, one in seats.items() if isinstance(one, Elsewhere)}
        async with self._turn:
            with tempfile.TemporaryDirectory() as folder:
                server = await asyncio.to_thread(
                    Server, market.spec.rules, Path(folder), self._database
                )
                try:
                    for seat in dict.fromkeys(there.values()):
                        seat.act("open", server.url, None)
                    yield replace(market, decide=Venue(server, there).decide)
                finally:
                    await asyncio.to_thread(server.close)

    def close(self) -> None:
        """As the port."""
        for seat in self._seats:
            seat.close()


class Server:
    """`marketeval serve` in a process of its own, with a clock that we move."""

    def __init__(self, rules: Rules, folder: Path, database: str) -> None:
        if database != "memory:":
            database = str(folder / database)
        self._operator = secrets.token_urlsafe(16)
        differing = rules.model_dump()
        preset = differing.pop("preset")
        words = [f"{name}={'null' if one is None else one}" for name, one in differing.items()]
        command = [
            sys.executable, "-m", "marketeval", "serve", "--port", "0", "--clock", "logical",
            "--database", database, "--rules", ",".join([preset, *words]),
            "--agent-rate", "1000000000",
        ]  # fmt: skip
        self._errors = (folder / "errors").open("w+")
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            env={**os.environ, "MARKETEVAL_OPERATOR_TOKEN": self._operator},
        )  # fmt: skip
        assert self._process.stdout is not None  # a pipe, as asked for
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            self._process.wait()
            self._errors.seek(0)
            raise RunError(f"the server did not start: {self._errors.read().strip()}")

    def tick(self, now: int) -> None:
        """Move the market's clock."""
        request = urllib.request.Request(
            f"{self.url}/v1/clock",
            json.dumps({"tick": now}).encode(),
            {"Authorization": f"Bearer {self._operator}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()
        self._errors.close()


class Venue:
    """Has the server decide what comes of an action."""

    def __init__(self, server: Server, seats: Mapping[str, Seat]) -> None:
        self._server, self._seats = server, seats
        self._now = 0

    def decide(self, state: State, caller: str, action: MarketAction) -> Entry:
        """The journal's next entry, as the server says."""
        if state.now != self._now:
            self._server.tick(state.now)
            self._now = state.now
        seat = self._seats[caller]
        if isinstance(action, act.Register):
            seat.act("register", caller, act.profile_document(action.profile))
            return Entry(state.rows, state.now, caller, action, Registered(caller))
        answer = seat.act("act", caller, act.plain(action))
        return Entry(answer["row"], answer["tick"], caller, action, _result(action, answer))


def _result(action: act.ProtocolAction, answer: Json) -> Result:
    content = answer["content"]
    if answer["refused"] is not None:
        return Refused(answer["refused"], content.get("message") or content["error"])
    if isinstance(action, act.SendMessage):
        return Sent(action)
    if isinstance(action, act.FetchMessages):
        return Mail(tuple(_heard(one) for one in content["messages"]), content["has_more"])
    hits = tuple(act.read(act.Business, one["business"]) for one in content["businesses"])
    return Found(
        hits, content["search_algorithm"], content["total_possible_results"], content["total_pages"]
    )


def _heard(tree: Json) -> act.Heard:
    at = datetime.fromisoformat(tree["created_at"]) - EPOCH
    message = act.read(_MESSAGES[tree["message"]["type"]], tree["message"])
    return act.Heard(tree["index"], tree["from_agent_id"], message, int(at.total_seconds()))


_MESSAGES: Mapping[str, type[act.Message]] = {
    "text": act.TextMessage,
    "order_proposal": act.OrderProposal,
    "payment": act.Payment,
}
