"""What the coupled-markets family offers to those who run scenarios of any family."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from marketeval.actions.coupled import Found, KnownRankings
from marketeval.core.errors import DataError, ScenarioError, UnknownNameError
from marketeval.core.log import EventKind
from marketeval.events import coupled as events
from marketeval.markets.coupled.answering import JUDGE
from marketeval.markets.coupled.demand import read_pool, schedule
from marketeval.markets.coupled.facts import Ecosystem, check
from marketeval.markets.coupled.market import CoupledMarket
from marketeval.markets.coupled.scenario import Coupled, Generator, Retriever
from marketeval.mechanisms.relevance import Relevance
from marketeval.mechanisms.trec import read_corpus, read_qrels

Spec = Coupled
KINDS: Sequence[EventKind] = events.KINDS
SHARED: Sequence[EventKind] = events.SHARED
SERVICES: Mapping[str, str] = {}
SEATLESS = True  # a scenario may declare everything and ask nobody
PATHS = ("run", "bm25", "dense")  # agents whose argument is a file from the scenario's folder
DEFAULT_METRICS: Sequence[str] = (
    "MarketShare", "HHI", "Retention(m=10)", "SwitchRate", "LongitudinalUtility", "MeanScore",
    "FailureRate", "Regret", "Regret(best=topic)", "Regret(best=item)", "LostUtility",
    "CostPerUtility",
)  # fmt: skip
OF_POPULATION = ("MarketShare", "HHI", "MeanScore", "Survival")


def resolve(spec: Coupled, agent: str) -> str:
    """An agent's short text with its files from the scenario's folder."""
    kind, colon, rest = agent.partition(":")
    if kind not in PATHS or not rest:
        return agent
    files, mark, more = rest.partition("#")
    for one in files.split("+"):
        _there(spec, one)
    return f"{kind}{colon}{'+'.join(spec.path(one) for one in files.split('+'))}{mark}{more}"


def _there(spec: Coupled, file: str) -> None:
    """Refuse a file that is not where the scenario says, and say how to name its folder."""
    if not os.path.isfile(spec.path(file)):
        raise DataError(
            f"no file {spec.path(file)}; put it there, or say where the scenario's data are with "
            "--set folder=FOLDER (market.folder)"
        )


def build(
    spec: Coupled, seats: Sequence[tuple[str, str]], *, privileged: Collection[str] = ()
) -> CoupledMarket:
    """The market of a checked scenario; `seats` are (name, label) of the agents that are asked."""
    if not spec.populations:
        raise ScenarioError("market.populations is empty: name users and whom they may ask")
    agents = spec.agents
    named = {name for name, _ in seats} - set(spec.without)
    for name in sorted(named):
        if name not in agents and name != JUDGE:
            raise UnknownNameError("seat", name, [*agents, JUDGE])
    for file in filter(None, (spec.questions, spec.qrels, spec.documents)):
        _there(spec, file)
    relevance = None
    if spec.qrels:
        qrels = read_qrels(Path(spec.path(spec.qrels)))
        relevance = Relevance(qrels, spec.measure)
    pool = read_pool(spec, None if relevance is None else relevance.topics)
    schedule(spec.demand, pool)
    world = Ecosystem(
        spec=spec,
        graph=spec.graph,
        pool=pool,
        relevance=relevance,
        seats=frozenset(named),
        shelf=read_corpus(Path(spec.path(spec.documents))) if spec.documents else {},
    )
    check(world)
    return CoupledMarket(world=world)


def cast(market: CoupledMarket, seats: Collection[str]) -> Mapping[str, str]:
    """The seat of the scenario that fills each place: its own."""
    return {name: name for name in seats if name in market.world.seats}


def prepare(market: CoupledMarket, agents: Mapping[str, Any]) -> CoupledMarket:
    """The market with what retrievers answer to its questions, where that is known beforehand.

    `agents` are those in the seats (any: of any class). Raises ScenarioError where a run shares no
    topic with the judgments, or where a file is used that another retriever owns.
    """
    world = market.world
    rankings: dict[str, Found] = {}
    shelf = dict(world.shelf)
    depth = max(
        [one.documents for one in world.spec.users.values()]
        + [_deepest(one) for one in world.agents.values() if isinstance(one, Generator)]
    )
    known = {name: one for name, one in agents.items() if isinstance(one, KnownRankings)}
    for name, agent in known.items():
        spec = world.agents.get(name)
        if not isinstance(spec, Retriever):
            raise ScenarioError(f"seat '{name}' is a retriever, but the market has it as another")
        for other, other_agent in known.items():
            owned = {world.spec.path(one) for one in spec.owns}
            shared = owned & set(other_agent.collections)
            if other != name and shared:
                raise ScenarioError(
                    f"{min(shared)} belongs to retriever '{name}' alone, so '{other}' cannot use it"
                )
        if not agent.takes_words and (spec.noise or spec.personal):
            raise ScenarioError(
                f"retriever '{name}' has recorded answers to the questions as they are: it takes "
                "no noise and cannot be personal"
            )
        for one in spec.owns:
            if world.spec.path(one) not in agent.collections:
                raise ScenarioError(f"retriever '{name}' owns {one}, which its seat does not read")
        shelf |= agent.shelf
        if getattr(agent, "deterministic", False):
            found = agent.rank_all(world.pool.ids, world.pool.texts, depth)
            if not agent.takes_words and not any(found.documents):
                raise ScenarioError(
                    f"the run of retriever '{name}' and the judged questions share no topic: "
                    f"expected lines for topics such as {world.pool.ids[0]}"
                )
            rankings[name] = found
    wordy = {name for name in world.seats if name not in known or known[name].takes_words}
    return CoupledMarket(
        world=replace(world, rankings=rankings, shelf=shelf, wordy=frozenset(wordy))
    )


def _deepest(generator: Generator) -> int:
    lever = generator.adapt
    options = [int(float(one)) for one in lever.options] if lever and lever.lever == "depth" else []
    return max([generator.strategy.documents, *options])


def default_metrics(spec: Coupled) -> tuple[str, ...]:
    """The metrics of a scenario that names none: of the users' market, and of each population."""
    graph = spec.graph
    populations = [one for one in graph.order if graph.roles[one] != "user"]
    return (
        *DEFAULT_METRICS,
        *(f'In({one}, metric="{metric}")' for one in populations for metric in OF_POPULATION),
        *(
            ("MarginalContribution", "Contribution")
            if any(graph.roles[one] == "retriever" for one in graph.order)
            else ()
        ),
        "NetIncome",
    )


def hashes() -> Mapping[str, str]:
    """What a manifest should record besides data: nothing here."""
    return {}


def data_hashes(market: CoupledMarket) -> Mapping[str, str]:
    """The files a market was made of, by their content."""
    import hashlib

    spec = market.world.spec
    found = {}
    for name in filter(None, (spec.questions, spec.qrels, spec.documents)):
        path = spec.path(name)
        found[os.path.relpath(path, spec.folder or ".")] = hashlib.sha256(
            Path(path).read_bytes()
        ).hexdigest()
    return found
