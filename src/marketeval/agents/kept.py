"""Keeps what a seat did that could not simply do it again: HTTP, Python and human seats.

A seat that declares itself deterministic, or whose calls are kept one by one, needs none of this.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

from marketeval.actions.wire import from_json, request_hash, to_json
from marketeval.core.errors import ReplayError
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
        place = (self.arm, request.draws.seed, request.turn, self.seat)
        asked = request_hash(request)
        where = f"seat '{self.seat}', seed {request.draws.seed}, turn {request.turn}"
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
        began = time.monotonic()
        action = await self._act(request)
        bare = action.action if isinstance(action, Noted) else action
        failed = isinstance(bare, Failure)
        await self.cassette.keep_action(
            *place,
            RecordedAction(
                request=asked,
                action=None if failed else json.dumps(to_json(bare)),
                reason=bare.reason if isinstance(bare, Failure) else "",
                latency_s=time.monotonic() - began,
            ),
        )
        return bare

    async def _act(self, request: Request) -> Action:
        """The agent's action, with what it does wrong as a `Failure`, so that this is kept too."""
        action = await self.agent.act(request)
        bare = action.action if isinstance(action, Noted) else action
        if isinstance(bare, (request.action, Failure)):
            return action
        return Failure(f"expected {request.action.__name__}, got {type(bare).__name__}")


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
