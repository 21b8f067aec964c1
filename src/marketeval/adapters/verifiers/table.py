"""The table of one episode: its seats are opened here, and the market is played over them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import verifiers.v1 as vf

from marketeval.adapters.verifiers.harness import SeatState
from marketeval.adapters.verifiers.seats import Seat
from marketeval.core.drive import lockstep_async
from marketeval.core.log import EventLog
from marketeval.core.market import Agent, Market

Json = dict[str, Any]  # any: JSON
Rewards = Mapping[str, tuple[float | None, float]]  # by name: score (None: undefined) and weight


class MarketData(vf.TaskData):
    """A task: one episode of one market, whose specification is `market`. `seat` is empty but on
    the traces of the seats."""

    cell: str
    seed: int
    market: Json = {}
    seat: str = ""


class MarketTask(vf.Task[MarketData, SeatState]):
    """An episode, or one seat of it; rewards are the market's own metrics."""


@dataclass
class Table:
    """The open seats of one episode; leaving it closes their interactions.

    `task` is the episode's; the task of each seat's trace is named after it. `rewards` are their
    names, undefined until `record`; `counters` is where in a trace's info the seat's own stand.
    """

    task: MarketTask
    rewards: Sequence[str]
    counters: str = "market_seat"
    seats: dict[str, Seat] = field(default_factory=dict)
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for seat, one in self.traces:
            one.info[self.counters] = seat.told()
        await self._open.__aexit__(kind, error, trace)

    def seat(self, name: str, player: vf.Agent) -> Seat:
        """A seat that a role of the environment plays; its interaction opens when it is asked."""
        data = self.task.data

        def interaction(rules: str) -> Any:  # any: an async context manager of an interaction
            task = self.task.with_data(
                name=f"{data.name}/{name}", seat=name, system_prompt=rules or None
            )
            return player.interaction(task)

        async def enter(opening: AbstractAsyncContextManager[vf.Interaction]) -> vf.Interaction:
            opened = await self._open.enter_async_context(opening)
            opened.trace.rewards.update(dict.fromkeys(self.rewards))
            return opened

        made = Seat(
            name=name,
            episode=str(data.name),
            open=interaction,
            enter=enter,
            harness=player.harness,
        )
        self.seats[name] = made
        return made

    async def sit(self, rules: Mapping[str, str]) -> None:
        """Open all seats before the first request, each with its system prompt."""
        await asyncio.gather(*(seat.sit(rules[name]) for name, seat in self.seats.items()))

    async def play(self, market: Market, scripted: Mapping[str, Agent], *, seed: int) -> EventLog:
        """One episode in this event loop: the seats of the table, and those that are scripts."""
        log = EventLog(market.events)
        await lockstep_async(market, {**scripted, **self.seats}, seed=seed, log=log)
        return log

    @property
    def traces(self) -> list[tuple[Seat, vf.Trace]]:
        """The open seats with their traces, in the order in which they were named."""
        return [
            (seat, seat.interaction.trace)
            for seat in self.seats.values()
            if seat.interaction is not None
        ]

    def record(self, rewards: Mapping[str, Rewards], *, key: str, info: Json) -> None:
        """Write each seat's rewards onto its trace, with what else is known under `key` of its
        info."""
        for seat, trace in self.traces:
            for name, (score, weight) in rewards[seat.name].items():
                if score is not None:
                    trace.record_reward(name, score, weight)
            trace.info[key] = {"seat": seat.name, **info}
