"""What a seat is asked at a step, found out without asking anybody.

The market is played up to there. Seats that are tables or rules answer as they do; for every other
seat nobody answers, but for questions in words, which get an example: so that a judge has
something to grade.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from marketeval.actions.information import Answers
from marketeval.core.drive import lockstep
from marketeval.core.errors import RunError, UnknownNameError, UsageError
from marketeval.core.log import EventLog
from marketeval.core.market import Action, Agent, Failure, Market, Request

EXAMPLE = "(an example of an answer)"


class _Found(RunError):
    """Ends the episode at the request that was looked for."""

    def __init__(self, request: Request) -> None:
        super().__init__("found")
        self.request = request


@dataclass(frozen=True, slots=True)
class _Nobody:
    """Gives nothing but an example of an answer in words; the seat looked for ends at `until`."""

    agent: Agent
    until: int | None = None
    immediate: bool = True
    deterministic: bool = False  # so that the turn stands in the request

    @property
    def privileged(self) -> bool:
        """As the agent, so that the request holds what the agent would be told."""
        return self.agent.privileged

    async def act(self, request: Request) -> Action:
        """Nothing, or an example."""
        if self.until is not None and request.step >= self.until:
            raise _Found(request)
        if request.action is Answers and "asked" in request.batch:
            rows = len(request.batch["asked"])
            return Answers(score=np.full(rows, np.nan), text=[EXAMPLE] * rows)
        return Failure("nobody was asked")


def first_request(
    market: Market, seats: Mapping[str, Agent], seat: str, *, step: int = 0, seed: int = 1
) -> Request:
    """The first request to a seat at a step or later.

    Raises
    ------
    UnknownNameError : there is no such seat
    UsageError : it is not asked from that step on
    """
    if seat not in seats:
        raise UnknownNameError("seat", seat, seats)
    answering: dict[str, Agent] = {
        name: agent if agent.deterministic and agent.immediate else _Nobody(agent)
        for name, agent in seats.items()
    }
    answering[seat] = _Nobody(seats[seat], until=step)
    try:
        lockstep(market, answering, seed=seed, log=EventLog(market.events))
    except _Found as found:
        return found.request
    raise UsageError(
        f"seat '{seat}' is not asked at step {step} or later (seed {seed}); give another --step "
        "or --seed"
    )
