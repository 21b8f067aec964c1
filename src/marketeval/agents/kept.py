"""Keeps what a seat did that could not simply do it again: HTTP, Python and human seats.

A seat that declares itself deterministic, or whose calls are kept one by one, needs none of this.
An interrupt cancels whoever waits, not what was asked: that ends, and is kept.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from marketeval.actions.wire import from_json, request_hash, to_json
from marketeval.core.errors import ReplayError, RunError, UsageError
from marketeval.core.market import Action, Agent, Failure, Noted, Request
from marketeval.llm.cassette import Cassette, RecordedAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An agent whose actions are found in the cassette or recorded there before they are used.

    `arm` tells the scenario from its controls; `retry_missing` asks again where it failed.
    """

    agent: Agent
    seat: str
    cassette: Cassette
    arm: str = ""
    retry_missing: bool = False
    immediate: bool = False
    deterministic: bool = False
    _asked: dict[int, tuple[int, int]] = field(default_factory=dict, repr=False, compare=False)
    _open: set[asyncio.Task[Action]] = field(default_factory=set, repr=False, compare=False)

    @property
    def privileged(self) -> bool:
        """As the agent."""
        return self.agent.privileged

    async def act(self, request: Request) -> Action:
        """The recorded action of this turn, or the agent's own.

        Raises
        ------
        ReplayError : something else was asked when it was recorded, or it is not recorded and
            replay-only asks nobody
        """
        seed, turn = request.draws.seed, request.turn
        place = (self.arm, seed, turn, self.seat, self._ordinal(seed, turn))
        asked = request_hash(request)
        where = f"seat '{self.seat}', seed {seed}, turn {turn}"
        kept = self.cassette.action(*place)
        if kept is not None and kept.request != asked:
            raise ReplayError(
                f"{where}: expected the request that was answered when it was recorded, got "
                "another; was the scenario changed? start anew with --force"
            )
        if kept is not None and not (kept.action is None and self.retry_missing):
            if kept.action is None:
                return Failure(kept.reason)
            return from_json(request.action, json.loads(kept.action))
        if self.cassette.mode == "replay-only":
            raise ReplayError(f"{where}: not in {self.cassette.path}, and replay-only asks nobody")
        task = asyncio.ensure_future(self._make(request, place, asked))
        self._open.add(task)
        task.add_done_callback(self._closed)
        return await asyncio.shield(task)

    async def drain(self) -> None:
        """Wait for what is open, but not for a person: nobody has to go on typing."""
        if getattr(self.agent, "may_be_left", False):
            return
        while self._open:
            await asyncio.wait(list(self._open))

    def _ordinal(self, seed: int, turn: int) -> int:
        """The how many-th request of its turn it is; told before anything is awaited, so that it
        is the same however long anyone takes."""
        last, count = self._asked.get(seed, (turn, -1))
        count = count + 1 if last == turn else 0
        self._asked[seed] = turn, count
        return count

    async def _make(
        self, request: Request, place: tuple[str, int, int, str, int], asked: str
    ) -> Action:
        """Ask, and keep the action before it is used."""
        began = time.monotonic()
        action = await self._act(request)
        failed = isinstance(action, Failure)
        await self.cassette.keep_action(
            *place,
            RecordedAction(
                request=asked,
                action=None if failed else json.dumps(to_json(action)),
                reason=action.reason if isinstance(action, Failure) else "",
                latency_s=time.monotonic() - began,
            ),
        )
        return action

    async def _act(self, request: Request) -> Action:
        """The agent's action, with what it does wrong as a `Failure`, so that this is kept too."""
        try:
            action = await self.agent.act(request)
        except (RunError, UsageError):
            raise
        except Exception as error:  # an agent's misbehaviour is an outcome
            return Failure(f"{type(error).__name__}: {error}")
        bare = action.action if isinstance(action, Noted) else action
        if not isinstance(bare, (request.action, Failure)):
            return Failure(f"expected {request.action.__name__}, got {type(bare).__name__}")
        return bare

    def _closed(self, task: asyncio.Task[Action]) -> None:
        self._open.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has it


async def drained(agents: Iterable[Agent]) -> None:
    """Wait for whatever the kept seats among these have been asked."""
    for agent in agents:
        if isinstance(agent, Kept):
            await agent.drain()


def keeping(
    seats: Mapping[str, Agent],
    cassette: Cassette,
    *,
    arm: str = "",
    retry_missing: bool = False,
) -> dict[str, Agent]:
    """The seats, with those wrapped whose actions have to be kept."""
    return {
        seat: agent
        if agent.deterministic or getattr(agent, "keeps_its_calls", False)
        else Kept(agent=agent, seat=seat, cassette=cassette, arm=arm, retry_missing=retry_missing)
        for seat, agent in seats.items()
    }
