"""Coupled markets (marketplace paper, sections 3 and 4), told along the governance graph.

Users select a generator, a search engine, or a router that does; a generator buys evidence from
retrievers, itself or through a router; the answer is worth something, and all who chose on the way
learn from it. One `play` is one seeded episode. All choices of a step are made from the state at
its start; learning follows, in slot order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from marketeval.core.log import EventKind, EventLog
from marketeval.core.market import Script
from marketeval.core.streams import Streams
from marketeval.events import coupled as events
from marketeval.markets.coupled.demand import Asking
from marketeval.markets.coupled.facts import Ecosystem
from marketeval.markets.coupled.state import State
from marketeval.markets.coupled.step import Step


@dataclass(frozen=True, kw_only=True)
class CoupledMarket:
    """The rules of one ecosystem, ready to be played once per seed."""

    world: Ecosystem
    events: ClassVar[Sequence[EventKind]] = events.KINDS

    def play(self, streams: Streams, log: EventLog) -> Script:
        """One episode: the populations act in topological order, step after step."""
        world = self.world
        if not log.has_shared("market"):
            world.introduce(log)
        state = State(world, streams)
        demand = Asking(world.spec, world.pool, state.user_count, streams)

        for number in range(world.spec.horizon):
            step = Step(world, state, streams, number, *demand.draw(number))

            # Users choose whom to ask, routers pass them on, providers take whom they can.
            step.users_choose()
            yield from step.routers_choose(to_retrievers=False)
            step.providers_admit()

            # Generators buy evidence, in rounds; routers choose the retriever where they are asked.
            while step.generators_choose():
                yield from step.routers_choose(to_retrievers=True)
                yield from step.retrievers_answer()
            yield from step.search_engines_answer()

            # The answer is made of it, it is worth something, and everybody on the path learns.
            yield from step.generators_answer()
            step.settle()
            step.learn()
            step.write(log)

            # Providers set prices and depth anew, or leave, from what they saw themselves.
            state.adapt(number, log)
        state.close(log)
