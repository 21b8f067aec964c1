"""What holds for every episode of a coupled market: agents, edges, what each could give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.coupled import Found
from marketeval.core.errors import ScenarioError, UnknownNameError
from marketeval.core.log import EventLog
from marketeval.events import coupled as events
from marketeval.markets.coupled.books import MICROS, micros
from marketeval.markets.coupled.demand import Pool
from marketeval.markets.coupled.scenario import (
    ByTopic,
    Coupled,
    Generator,
    Retriever,
    Router,
    Service,
)
from marketeval.mechanisms.governance import Governance
from marketeval.mechanisms.relevance import Relevance

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_POTENTIALS = 2_000_000
NOBODY = events.NOBODY


@dataclass(frozen=True)
class Ecosystem:
    """A checked scenario with its data.

    Parameters
    ----------
    seats : agents that are asked, by name; generators without one answer by their declared response
    rankings : the answers to the questions themselves of retrievers that are known beforehand
    shelf : texts of documents by id
    """

    spec: Coupled
    graph: Governance
    pool: Pool
    relevance: Relevance | None
    seats: frozenset[str]
    rankings: Mapping[str, Found] = field(default_factory=dict)
    wordy: frozenset[str] = frozenset()
    shelf: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def agents(self) -> Mapping[str, Router | Generator | Retriever]:
        """Router, generators and retrievers by name, sorted."""
        return dict(sorted(self.spec.agents.items()))

    @cached_property
    def names(self) -> Sequence[str]:
        """The agents' names; their places are their numbers."""
        return list(self.agents)

    @cached_property
    def number(self) -> Mapping[str, int]:
        """The number of each agent."""
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def position(self) -> Integers:
        """The place of each agent in the configuration."""
        order = {name: place for place, name in enumerate(self.spec.agents)}
        return np.array([order[name] for name in self.names], np.int64)

    @cached_property
    def targets(self) -> Mapping[str, Integers]:
        """The numbers of the agents that each chooser may select, ascending."""
        return {
            chooser: np.array(sorted(self.number[one] for one in those), np.int64)
            for chooser, those in self.graph.targets.items()
        }

    def by_topic(self, value: ByTopic) -> Floats:
        """A declared number for each topic."""
        if isinstance(value, float | int):
            return np.full(len(self.pool.topic_names), float(value))
        for name in value:
            if name not in self.pool.topic_names:
                raise UnknownNameError("topic", name, self.pool.topic_names)
        return np.array([value.get(name, 0.0) for name in self.pool.topic_names])

    @cached_property
    def scope(self) -> NDArray[np.bool_]:
        """Whether each agent serves each topic; shape (agents, topics)."""
        found = np.ones((len(self.names), len(self.pool.topic_names)), bool)
        for place, agent in enumerate(self.agents.values()):
            if isinstance(agent, Retriever) and agent.topics:
                for name in agent.topics:
                    if name not in self.pool.topic_names:
                        raise UnknownNameError("topic", name, self.pool.topic_names)
                found[place] = [name in agent.topics for name in self.pool.topic_names]
        return found

    @cached_property
    def providers(self) -> Integers:
        """Agents that users reach, themselves or through a router; ascending."""
        found: set[int] = set()
        for users in self.spec.users:
            for one in self.graph.targets[users]:
                routed = self.graph.targets[one] if isinstance(self.agents[one], Router) else (one,)
                found.update(self.number[name] for name in routed)
        return np.array(sorted(found), np.int64)

    def reachable(self, generator: str) -> Sequence[str]:
        """The retrievers that a generator reaches, itself or through a router."""
        found: dict[str, None] = {}
        for one in self.graph.targets[generator]:
            agent = self.agents[one]
            if isinstance(agent, Router):
                wanted = agent.choose.exclusive
                found.update(
                    (name, None) for name in self.graph.targets[one] if not wanted or name in wanted
                )
            else:
                found[one] = None
        return list(found)

    def quote(self, agent: Service, documents: int = 1) -> int:
        """What a call costs, in millionths: per query, and per token of answer or documents."""
        tokens = agent.tokens if isinstance(agent, Generator | Retriever) else 0
        if isinstance(agent, Retriever):
            tokens *= documents
        return micros(agent.price.query + agent.price.token * tokens)

    def evidence(self, name: str, depth: int) -> Floats | None:
        """What a retriever's answer to each question is worth, alone; None if nobody can know."""
        agent = self.agents[name]
        assert isinstance(agent, Retriever)
        if agent.noise or agent.personal:
            return None
        scope = self.scope[self.number[name]][self.pool.topics]
        if name in self.rankings and self.relevance is not None:
            ranked = self.rankings[name].documents
            pairs = [
                (topic, tuple(documents[:depth]))
                for topic, documents in zip(self.pool.ids, ranked, strict=True)
            ]
            return np.where(scope, self.relevance.of(pairs), 0.0)
        if name not in self.seats and agent.evidence is not None:
            return np.where(scope, self.by_topic(agent.evidence)[self.pool.topics], 0.0)
        return None

    def introduce(self, log: EventLog) -> None:
        """Log what holds for every seed."""
        spec, pool, graph = self.spec, self.pool, self.graph
        users = sum(one.count for one in spec.users.values())
        log.shared("market", horizon=spec.horizon, users=users, users_per_step=spec.per_step)
        reached = self.providers
        log.shared(
            "generator",
            agent=reached,
            seat=[self.names[one] for one in reached],
            label=[self._label(one) for one in reached],
            position=self.position[reached],
            entry_step=0,
            privileged=False,
        )
        log.shared(
            "agent",
            agent=np.arange(len(self.names)),
            seat=self.names,
            label=[self._label(one) for one in range(len(self.names))],
            population=[graph.population_of[name] for name in self.names],
            role=[
                events.ROLES.index(graph.roles[graph.population_of[name]]) for name in self.names
            ],
            position=self.position,
            capacity=[
                -1 if isinstance(one, Router) or one.capacity is None else one.capacity
                for one in self.agents.values()
            ],
            opening=[
                -1 if isinstance(one, Router) or one.budget is None else micros(one.budget)
                for one in self.agents.values()
            ],
        )
        log.shared(
            "population",
            population=list(graph.order),
            role=[graph.roles[name] for name in graph.order],
            size=[
                spec.users[name].count if name in spec.users else len(graph.members[name])
                for name in graph.order
            ],
        )
        log.shared("edge", source=[a for a, _ in graph.edges], target=[b for _, b in graph.edges])
        links = [(a, b) for a, those in self.targets.items() for b in those]
        log.shared("admissible", chooser=[a for a, _ in links], target=[b for _, b in links])
        log.shared("topic", topic=np.arange(len(pool.topic_names)), name=list(pool.topic_names))
        log.shared(
            "question",
            question=np.arange(len(pool.ids)),
            item=list(pool.ids),
            topic=pool.topics,
        )
        kinds = list(spec.users.values())
        log.shared(
            "segment",
            segment=np.arange(len(kinds)),
            name=list(spec.users),
            weight=[one.count / users for one in kinds],
            seat="",
        )
        log.shared(
            "weights",
            segment=np.arange(len(kinds)),
            quality=[float(one.utility.quality) for one in kinds],
            cost=[float(one.utility.cost) for one in kinds],
            latency=[float(one.utility.latency) for one in kinds],
            opening=[-1 if one.budget is None else micros(one.budget) for one in kinds],
        )
        log.shared(
            "user",
            user=np.arange(users),
            segment=np.repeat(np.arange(len(kinds)), [one.count for one in kinds]),
            arrived=0,
        )
        log.shared("phase", name="all steps", start=0, stop=spec.horizon)
        self._potentials(log)

    def _errors(self, agent: int) -> float:
        found = self.agents[self.names[agent]]
        return found.errors if isinstance(found, Generator) else 0.0

    def _label(self, agent: int) -> str:
        return self.agents[self.names[agent]].label or self.names[agent]

    def _potentials(self, log: EventLog) -> None:
        """What each provider could give for each question with each retriever, nobody else there.

        Left out where somebody has to be asked to know.
        """
        size = len(self.pool.ids)
        rows: list[tuple[int, int, Floats, float, float]] = []
        perfect: list[tuple[int, float]] = []
        for number in self.providers:
            name = self.names[number]
            agent = self.agents[name]
            if isinstance(agent, Retriever):
                depth = max(one.documents for one in self.spec.users.values())
                found = self.evidence(name, depth)
                if found is None:
                    return
                cost = self.quote(agent, depth) / MICROS
                rows.append((int(number), int(number), found, cost, agent.latency_s))
                perfect.append((int(number), 1.0))
                continue
            assert isinstance(agent, Generator)
            if name in self.seats:
                return
            closed, ceiling = (
                self.by_topic(one)[self.pool.topics] for one in (agent.closed_book, agent.ceiling)
            )
            cost = self.quote(agent) / MICROS
            rows.append((int(number), NOBODY, closed, cost, agent.latency_s))
            perfect.append((int(number), float(ceiling.max())))
            if agent.strategy.kind == "none":
                continue
            for one in self.reachable(name):
                found = self.evidence(one, agent.strategy.documents)
                if found is None:
                    return
                retriever = self.agents[one]
                assert isinstance(retriever, Retriever)
                quality = closed + (ceiling - closed) * found
                wait = agent.latency_s + retriever.latency_s
                rows.append((int(number), self.number[one], quality, cost, wait))
        if not rows or len(rows) * size > MOST_POTENTIALS:
            return
        log.shared(
            "potential",
            provider=np.repeat([row[0] for row in rows], size),
            retriever=np.repeat([row[1] for row in rows], size),
            question=np.tile(np.arange(size), len(rows)),
            quality=np.concatenate([row[2] for row in rows]),
            cost_usd=np.repeat([row[3] for row in rows], size),
            latency_s=np.repeat([row[4] for row in rows], size),
            errors=np.repeat([self._errors(row[0]) for row in rows], size),
        )
        log.shared(
            "perfect",
            provider=[one for one, _ in perfect],
            quality=[quality for _, quality in perfect],
        )


def check(world: Ecosystem) -> None:
    """What only shows once the data are there."""
    _ = world.scope
    spec = world.spec
    if spec.measure != Coupled().measure and not spec.qrels:
        raise ScenarioError(
            f"market.measure ({spec.measure}) values documents by judgments: give market.qrels"
        )
    if spec.demand.label != Coupled().demand.label and not spec.questions:
        raise ScenarioError(
            f"demand.label names a column ('{spec.demand.label}') of market.questions: give that"
        )
    for name, agent in world.agents.items():
        if isinstance(agent, Retriever):
            if name not in world.seats and agent.evidence is None:
                raise ScenarioError(
                    f"retriever '{name}' has nothing to retrieve from: give it a seat "
                    f"(seats.{name}: run:FILE, bm25:CORPUS, dense:CORPUS or search:URL), or "
                    "declare its evidence"
                )
            if name in world.seats and world.relevance is None and not _read_by_seats(world, name):
                raise ScenarioError(
                    f"retriever '{name}' hands over documents, which only judgments can value: "
                    "give market.qrels"
                )
            if agent.owns and name not in world.seats:
                raise ScenarioError(
                    f"retriever '{name}' owns {agent.owns[0]} but reads no file: give it a seat"
                )
            if agent.evidence is not None:
                _check_topics(world, f"{name}.evidence", agent.evidence, agent.topics)
        elif isinstance(agent, Generator):
            _check_topics(world, f"{name}.closed_book", agent.closed_book)
            _check_topics(world, f"{name}.ceiling", agent.ceiling)
            if agent.strategy.kind != "none" and not world.graph.targets[name]:
                raise ScenarioError(
                    f"generator '{name}' retrieves ({agent.strategy.kind}) but no edge leads from "
                    "it; give it one, or strategy.kind: none"
                )
        if not isinstance(agent, Router) and isinstance(agent, Generator | Retriever):
            _check_lever(world, name, agent)
        choose = agent.choose if isinstance(agent, Router | Generator) else None
        for one in choose.exclusive if choose else ():
            if one not in world.graph.targets[name] and one not in world.spec.without:
                raise UnknownNameError(
                    f"exclusive target of '{name}'", one, world.graph.targets[name]
                )
    for users, asking in spec.users.items():
        targets = world.graph.targets[users]
        for one in asking.behaviour.framing:
            if one not in targets and one not in world.spec.without:
                raise UnknownNameError(f"framed target of '{users}'", one, targets)
        if len(world.names) > 32_000 or asking.count > 10**6:
            raise ScenarioError("expected at most 32,000 agents and 1,000,000 users")


def _check_topics(world: Ecosystem, what: str, value: ByTopic, served: Sequence[str] = ()) -> None:
    """Refuse a value by topic that names a topic nobody asks about, or leaves out one it serves."""
    world.by_topic(value)
    left = [
        one
        for one in served or world.pool.topic_names
        if not isinstance(value, float | int) and one not in value
    ]
    if left:
        raise ScenarioError(f"{what}: expected a number for each topic, none for {', '.join(left)}")


def _read_by_seats(world: Ecosystem, retriever: str) -> bool:
    """Whether all who may use a retriever answer in words, so that a judge values the answers."""
    number = world.number[retriever]
    if number in world.providers:
        return False
    readers = [
        name
        for name, one in world.agents.items()
        if isinstance(one, Generator) and retriever in world.reachable(name)
    ]
    return all(name in world.seats for name in readers)


def _check_lever(world: Ecosystem, name: str, agent: Generator | Retriever) -> None:
    if agent.adapt is None:
        return
    allowed = ("price", "depth") if isinstance(agent, Generator) else ("price", "focus")
    if agent.adapt.lever not in allowed:
        raise ScenarioError(
            f"agent '{name}' cannot set its {agent.adapt.lever}; it has {', '.join(allowed)}"
        )
    if agent.adapt.lever == "focus":
        for option in agent.adapt.options:
            if option not in world.pool.topic_names:
                raise UnknownNameError("topic to focus on", str(option), world.pool.topic_names)
