"""What lasts from step to step in one episode: choosers, desks, money, levers, who is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from marketeval.core.log import EventLog
from marketeval.core.streams import Streams
from marketeval.events import coupled as events
from marketeval.events.information import CHANGES
from marketeval.markets.coupled.books import MICROS, Books, micros, user_account
from marketeval.markets.coupled.chooser import Chooser
from marketeval.markets.coupled.facts import Ecosystem
from marketeval.markets.coupled.levers import Lever
from marketeval.markets.coupled.scenario import Choosing, Generator, Retriever, Router, Users
from marketeval.mechanisms.desk import Desk

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class State:
    """The state of an episode; agents by their number."""

    def __init__(self, world: Ecosystem, streams: Streams) -> None:
        self.world = world
        spec = world.spec
        names = world.names
        self.users: Sequence[Users] = list(spec.users.values())
        counts = [one.count for one in self.users]
        self.user_count = sum(counts)
        self.first_user = np.cumsum([0, *counts])
        self.segment = np.repeat(np.arange(len(counts)), counts)
        self.present = np.ones(len(names), bool)
        self.desks: Mapping[int, Desk] = {
            place: Desk(one.capacity, one.overflow, one.patience)
            for place, one in enumerate(world.agents.values())
            if not isinstance(one, Router)
        }
        self.books = Books(
            {
                **{
                    user_account(user): None if one.budget is None else micros(one.budget)
                    for start, one in zip(self.first_user, self.users, strict=False)
                    for user in range(start, start + one.count)
                },
                **{
                    name: None if isinstance(one, Router) or one.budget is None
                    else micros(one.budget)
                    for name, one in world.agents.items()
                },
            }
        )  # fmt: skip
        self.paid = any(
            one.fee > 0
            if isinstance(one, Router)
            else one.price.query > 0 or one.price.token > 0 or one.cost > 0 or one.penalty > 0
            or one.adapt is not None
            for one in world.agents.values()
        )  # fmt: skip
        self.choosers = {name: self._chooser(name, streams) for name in world.targets}
        self.traffic = np.zeros(len(names))  # times each agent was selected
        self.window = np.zeros(len(names))  # times since the last look at exits
        self.asked: dict[int, Floats] = {}  # per segment: (users, targets) times chosen
        self.last: dict[int, Integers] = {}  # per segment: place of the last target, -1 = none
        for place, (name, one) in enumerate(spec.users.items()):
            size = world.targets[name].size
            self.asked[place] = np.zeros((one.count, size))
            self.last[place] = np.full(one.count, -1)
        self.levers = {
            place: Lever(name, one.adapt, streams)
            for place, (name, one) in enumerate(world.agents.items())
            if isinstance(one, Generator | Retriever) and one.adapt is not None
        }
        self.texts: dict[str, str] = {}  # of documents that a retriever handed over with its answer
        self.credit = np.zeros((len(names), 2))  # sum and number of credits of the period

    def _chooser(self, name: str, streams: Streams) -> Chooser:
        world = self.world
        targets = world.targets[name]
        users = world.spec.users.get(name)
        agent = None if users else world.agents[name]
        choose = Choosing()
        if users is not None:
            choose = users.choose
        elif isinstance(agent, Router | Generator):
            choose = agent.choose
        made = Chooser(
            name,
            events.NOBODY if users is not None else world.number[name],
            choose,
            targets=targets,
            names=[world.names[one] for one in targets],
            members=1 if users is None else users.count,
            topics=len(world.pool.topic_names),
            tie_rank=np.argsort(np.argsort(world.position[targets])),
            keyed_ties=world.spec.ties == "random",
            streams=streams,
        )
        made.asks = users is None and isinstance(agent, Router) and name in world.seats
        return made

    def price(self, agent: int, documents: int = 1) -> int:
        """What a call of an agent costs now, in millionths of a dollar."""
        found = self.world.agents[self.world.names[agent]]
        if isinstance(found, Router):
            return micros(found.fee)
        if agent in self.levers and self.levers[agent].spec.lever == "price":
            found = found.model_copy(
                update={
                    "price": found.price.model_copy(
                        update={"query": float(self.levers[agent].value)}
                    )
                }
            )
        return self.world.quote(found, documents)

    def documents(self, generator: int) -> int:
        """How many documents a generator takes of each retriever now."""
        found = self.world.agents[self.world.names[generator]]
        assert isinstance(found, Generator)
        lever = self.levers.get(generator)
        if lever is not None and lever.spec.lever == "depth":
            return int(float(lever.value))
        return found.strategy.documents

    def declared(self, retriever: int, topics: Integers) -> Floats:
        """The declared evidence of a retriever on these topics, with its focus."""
        found = self.world.agents[self.world.names[retriever]]
        assert isinstance(found, Retriever)
        assert found.evidence is not None
        value = self.world.by_topic(found.evidence)
        lever = self.levers.get(retriever)
        if lever is not None and lever.spec.lever == "focus":
            focus = self.world.pool.topic_names.index(str(lever.value))
            gain = found.focus_gain
            on = np.arange(value.size) == focus
            value = np.where(on, value + gain * (1 - value), value * (1 - gain))
        return np.asarray(value[topics])

    def shares(self, targets: Integers) -> Floats:
        """The share of each target in what all targets were asked so far."""
        counts = self.traffic[targets]
        total = counts.sum()  # whole numbers: exact in any order
        return counts / total if total else counts

    def adapt(self, step: int, log: EventLog) -> None:
        """Let levers be set anew and those with too little traffic leave, at the end of a step."""
        names = self.world.names
        for place, lever in self.levers.items():
            if (step + 1) % lever.spec.every:
                continue
            payoff = self._payoff(place, lever)
            value = lever.next(payoff, (step + 1) // lever.spec.every)
            log.append(
                "adapted", step=step, agent=place,
                lever=events.LEVERS.index(lever.spec.lever), value=str(value), payoff=payoff,
            )  # fmt: skip
            self.books.earned[names[place]] = self.books.revenue[names[place]] = 0
            self.credit[place] = 0.0
            lever.calls = 0
        for place, one in enumerate(self.world.agents.values()):
            if isinstance(one, Router) or not one.exit_below or (step + 1) % one.exit_window:
                continue
            peers = [
                number
                for number, name in enumerate(names)
                if self.world.graph.population_of[name]
                == self.world.graph.population_of[names[place]]
            ]
            total = self.window[peers].sum()
            share = self.window[place] / total if total else 1.0
            if self.present[place] and share < one.exit_below and self.present[peers].sum() > 1:
                self.present[place] = False
                log.append(
                    "intervention", step=step, agent=place, change=CHANGES.index("exit"),
                    value=share,
                )  # fmt: skip
            self.window[place] = 0.0

    def _payoff(self, agent: int, lever: Lever) -> float:
        """What the period brought, by the lever's goal: per step and over its scale."""
        name, spec = self.world.names[agent], lever.spec
        if spec.goal == "utility":
            total, count = self.credit[agent]
            return float(total / count) if count else 0.0
        if spec.goal == "traffic":
            return lever.calls / spec.every / spec.scale
        money = (self.books.earned if spec.goal == "profit" else self.books.revenue).get(name, 0)
        return money / MICROS / spec.every / spec.scale

    def close(self, log: EventLog) -> None:
        """Log what is left at the end of the episode."""
        if self.paid:
            self.books.close(log)
        for name, chooser in self.choosers.items():
            if chooser.targets.size:
                log.append("preference", chooser=name, agent=chooser.targets, worth=chooser.worth())
