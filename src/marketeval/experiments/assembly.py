"""From a checked scenario to a market and the agents in its seats, nothing left to go wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

from marketeval.agents.bernoulli import Bernoulli
from marketeval.agents.models import ModelSeat
from marketeval.agents.recorded import Recorded
from marketeval.agents.registry import make_agent
from marketeval.core.errors import DataError, ScenarioError, UnknownNameError
from marketeval.core.market import Agent, Market
from marketeval.experiments.families import FAMILIES
from marketeval.experiments.outcomes import Outcomes, read_outcomes
from marketeval.experiments.pool import Pool, read_csv, read_pool
from marketeval.experiments.scenario import (
    Entries,
    Phase,
    Scenario,
    Seat,
    Tree,
    check,
    recorded_file,
)
from marketeval.llm.calls import Calls
from marketeval.markets.information.facts import Generator, Questions
from marketeval.markets.information.market import JUDGE, InformationMarket
from marketeval.markets.information.scenario import Information, Intervention
from marketeval.metrics.base import parse_metric
from marketeval.metrics.static import accuracy, f_score

PHASE_METRICS = (
    "MarketShare", "ShareVersusFair", "FairShare", "HHI(points=true)", "Dominance", "Rank",
    "KendallTau", "SpearmanRho", "LongitudinalUtility",
)  # fmt: skip
WHOLE_METRICS = (
    "MarketShare", "HHI(points=true)", "Rank", "StaticRank", "KendallTau", "SpearmanRho", "EED",
    "Dominance", "ExpectedExposure", "Gini", "Entropy", "CR(k=4)", "Retention(m=10)",
    "SwitchRate", "LongitudinalUtility", "FailureRate",
    "MarketShare(window=10, mode=tumbling)", "HHI(points=true, window=10, mode=tumbling)",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A scenario ready to be played: every seat filled, every file read and checked."""

    scenario: Scenario
    market: Market
    seats: Mapping[str, Agent]
    hashes: Mapping[str, str]


def assemble(scenario: Scenario, *, calls: Calls | None = None) -> Experiment:
    """Read the data, fill the seats, and resolve what the scenario left open.

    The experiment's scenario has the seats, phases and metrics spelled out. `calls` is what models
    are asked through; without it nothing that they say is kept.
    """
    if scenario.family != "information":
        return _assemble_family(scenario, calls)
    pool = read_pool(scenario.items) if scenario.items else None
    outcomes = _outcomes(scenario, pool)
    choosing = _choosing(scenario)
    named = {
        name: seat
        for name, seat in scenario.seats.items()
        if name != JUDGE and name not in choosing
    }
    named = named or {model: Seat() for model in (outcomes.tables if outcomes else ())}
    seats = _with_entries(named, scenario.entries, scenario.market.horizon)
    if not seats:
        raise ScenarioError(
            f"scenario '{scenario.name}' has no seats: name them under 'seats' or give a table of "
            "recorded answers with --outcomes FILE"
        )
    tables = outcomes.tables if outcomes else {}
    agents = {
        name: make_agent(seat.agent, seat=name, options=seat.options, tables=tables, calls=calls)
        for name, seat in seats.items()
    }
    judges = _judge(scenario, agents, pool)
    _check_sizes(scenario.market)
    _check_seats(scenario, seats, agents)
    phases = scenario.phases or _phases(scenario, seats)
    metrics = scenario.metrics or _default_metrics(phases)
    metrics = tuple(str(parse_metric(text)) for text in metrics)  # as they are read back
    _check_ranges(metrics, phases, scenario.market.horizon)
    resolved = scenario.model_copy(
        update={
            "seats": {**seats, **choosing, **judges},
            "phases": phases,
            "metrics": metrics,
            "entries": None,
        }
    )
    market = InformationMarket(
        spec=scenario.market,
        generators=[_generator(name, seats[name], agents[name], outcomes) for name in seats],
        questions=_questions(outcomes, pool, scenario.market.questions),
        phases=[(one.name, one.start, one.stop) for one in phases],
    )
    return Experiment(
        scenario=resolved,
        market=market,
        seats={
            **agents,
            **{
                name: make_agent(seat.agent, seat=name, options=seat.options, calls=calls)
                for name, seat in (*choosing.items(), *judges.items())
            },
        },
        hashes={
            **(outcomes.hashes if outcomes else {}),
            **({scenario.items: pool.hash} if pool else {}),
        },
    )


def _choosing(scenario: Scenario) -> Mapping[str, Seat]:
    """The seats that choose for the users of a segment; they do not compete."""
    for segment in scenario.market.segments:
        if segment.agent and segment.agent not in scenario.seats:
            raise UnknownNameError(
                f"seat that chooses for segment '{segment.name}'", segment.agent, scenario.seats
            )
    seats = {name: scenario.seats[name] for name in scenario.market.user_seats}
    for name, seat in seats.items():
        if seat.enters:
            raise ScenarioError(
                f"seat '{name}' chooses for users, who are there from step 0: it cannot enter at "
                f"step {seat.enters}"
            )
    return seats


def _judge(
    scenario: Scenario, agents: Mapping[str, Agent], pool: Pool | None
) -> Mapping[str, Seat]:
    """The seat that grades answers in words: as named, or by match with the accepted answers."""
    given = scenario.seats.get(JUDGE)
    speaking = [name for name, agent in agents.items() if isinstance(agent, ModelSeat)]
    if not speaking and given is None:
        return {}
    if speaking and (pool is None or pool.texts is None):
        raise ScenarioError(
            f"seat '{speaking[0]}' answers in words, so it needs the questions in words: give a "
            "CSV with item_id, question and answer with --items FILE"
        )
    if given is None and (pool is None or pool.golds is None):
        raise ScenarioError(
            f"the answers of seat '{speaking[0]}' need a judge: name one under seats as '{JUDGE}', "
            "or give the accepted answers in a column 'answer' of the questions"
        )
    return {JUDGE: given or Seat(agent="judge:match")}


def _assemble_family(scenario: Scenario, calls: Calls | None) -> Experiment:
    """As `assemble`, for families whose seats need nothing but agents."""
    family = FAMILIES[scenario.family]
    for name in ("outcomes", "items", "entries", "phases"):
        if getattr(scenario, name):
            raise ScenarioError(f"{name}: a scenario of family '{scenario.family}' takes none")
    given = {**family.SERVICES, **getattr(family, "DEFAULT_SEATS", {})}
    seats = {**{name: Seat(agent=agent) for name, agent in given.items()}, **scenario.seats}
    competing = [name for name in seats if name not in family.SERVICES]
    if not competing:
        raise ScenarioError(f"scenario '{scenario.name}' has no seats: name them under 'seats'")
    late = [name for name in seats if seats[name].enters]
    if late:
        raise ScenarioError(
            f"seat '{late[0]}' enters late; in family '{scenario.family}' all are there from step 0"
        )
    agents = {
        name: make_agent(seat.agent, seat=name, options=seat.options, calls=calls)
        for name, seat in seats.items()
    }
    speaking = [name for name in competing if isinstance(agents[name], ModelSeat)]
    if speaking and not getattr(family, "MODELS", True):
        raise ScenarioError(
            f"seat '{speaking[0]}': in family '{scenario.family}' models cannot play yet; use "
            "heuristic:NAME or python:package.module:Class"
        )
    market = family.build(
        scenario.market,
        [(name, seats[name].label or name) for name in competing],
        privileged=[name for name in competing if agents[name].privileged],
    )
    hashes = dict(family.hashes())
    if hasattr(family, "cast"):
        hashes |= family.data_hashes(market)
        agents = {
            place: make_agent(
                seats[name].agent, seat=place, options=seats[name].options, calls=calls
            )
            for place, name in family.cast(market, seats).items()
        }
    metrics = scenario.metrics or family.default_metrics(scenario.market)
    return Experiment(
        scenario=scenario.model_copy(
            update={"seats": seats, "metrics": tuple(str(parse_metric(one)) for one in metrics)}
        ),
        market=market,
        seats=agents,
        hashes=hashes,
    )


def with_seats(tree: Tree) -> Tree:
    """The tree with the seats spelled out that its tables of answers imply, if it names none."""
    if tree.get("seats") or not tree.get("outcomes"):
        return tree
    scenario = check(tree)
    outcomes = _outcomes(scenario, read_pool(scenario.items) if scenario.items else None)
    return (
        {**tree, "seats": {model: {"agent": "recorded"} for model in outcomes.tables}}
        if outcomes
        else tree
    )


def _outcomes(scenario: Scenario, pool: Pool | None) -> Outcomes | None:
    """The tables of answers that the scenario and its seats name."""
    files = [recorded_file(seat.agent) for seat in scenario.seats.values()]
    own = [file for file in dict.fromkeys(files) if file and file not in scenario.outcomes]
    paths = [*scenario.outcomes, *own]
    if not paths:
        silent = all(seat.agent.startswith("bernoulli") for seat in scenario.seats.values())
        if scenario.items and silent:
            raise ScenarioError(
                f"items ({scenario.items}) name questions of recorded answers, and no outcomes are "
                "given; give a table with --outcomes FILE"
            )
        return None
    return read_outcomes(
        [Path(one) for one in paths],
        missing=scenario.missing,
        items=pool,
    )


def _check_sizes(spec: Information) -> None:
    """Numbers that the log's columns, or a computer's memory, cannot hold."""
    most = {
        "market.horizon": (spec.horizon, 2**31 - 1),
        "market.users.population": (spec.users.population, 10**9),
        "market.users.per_step": (spec.users.per_step, 10**9),
        "market.questions": (spec.questions, 10**7),
    }
    for key, (got, limit) in most.items():
        if got > limit:
            raise ScenarioError(f"{key}: expected at most {limit:,}, got {got:,}")


def _check_ranges(metrics: Sequence[str], phases: Sequence[Phase], horizon: int) -> None:
    """Metrics over a phase or a range of steps that this scenario has not."""
    for phase in phases:
        if phase.stop > horizon:
            raise ScenarioError(
                f"phase '{phase.name}' ends at step {phase.stop}, past the horizon of {horizon}"
            )
    for text in metrics:
        metric = parse_metric(text)
        name = getattr(metric, "phase", None)
        if name is not None and name not in {one.name for one in phases}:
            raise UnknownNameError(f"phase in {text}", name, [one.name for one in phases])
        if (getattr(metric, "stop", None) or 0) > horizon:
            raise ScenarioError(f"{text} ends past the horizon of {horizon} steps")


def _check_seats(
    scenario: Scenario, seats: Mapping[str, Seat], agents: Mapping[str, Agent]
) -> None:
    """What only shows once all seats are known."""
    spec = scenario.market
    for change in spec.interventions:
        if change.agent not in seats:
            raise UnknownNameError("seat in an intervention", change.agent, seats)
    for name, seat in seats.items():
        if seat.enters >= spec.horizon:
            raise ScenarioError(
                f"seat '{name}' enters at step {seat.enters}, past the horizon: expected a step "
                f"from 0 to {spec.horizon - 1}, or a larger market.horizon"
            )
        _check_presence(name, seat, spec.interventions)
    for segment in spec.segments:
        for name in segment.preferences:
            if name not in seats:
                raise UnknownNameError(f"seat in the preferences of '{segment.name}'", name, seats)
    wanted = {
        name: any(getattr(kind.utility, weight) != 0 for kind in spec.kinds_of_user())
        for name, weight in (("cost_usd", "cost"), ("latency_s", "latency"))
    }
    for column, needed in wanted.items():
        lacking = [name for name, agent in agents.items() if needed and not _has(agent, column)]
        if lacking:
            raise ScenarioError(
                f"the utility weighs {column}, which {len(lacking)} of {len(seats)} seats lack "
                f"(first '{lacking[0]}'): give them {column}, or set the weight to 0"
            )


def _check_presence(name: str, seat: Seat, interventions: Sequence[Intervention]) -> None:
    """Nobody enters who is there, nobody leaves who is not, nobody does both at one step."""
    moves = [(one.step, one.kind) for one in interventions if one.agent == name]
    moves = [(step, kind) for step, kind in moves if kind in ("entry", "exit")]
    if seat.enters:
        moves.append((seat.enters, "entry"))
    moves.sort(key=lambda move: (move[0], move[1] != "entry"))
    there = not seat.enters and (not moves or moves[0][1] == "exit" or moves[0][0] == 0)
    for place, (step, kind) in enumerate(moves):
        if place and step == moves[place - 1][0]:
            raise ScenarioError(f"seat '{name}' enters or leaves twice at step {step}")
        if there == (kind == "entry") and (place or step):
            stands = "is in the market already" if there else "is not in the market"
            raise ScenarioError(
                f"the {kind} of seat '{name}' at step {step} cannot be: it {stands} then; entries "
                "and exits of a seat must take turns ('enters' counts as an entry)"
            )
        there = kind == "entry"


def _has(agent: Agent, column: str) -> bool:
    """Whether an agent's answers come with a cost or latency, as far as one can know before."""
    if isinstance(agent, Bernoulli):
        return getattr(agent, column) is not None
    if isinstance(agent, ModelSeat) and column == "latency_s":
        return agent.generator.latency_s is not None
    if isinstance(agent, Recorded):
        values = getattr(agent.table, column)
        return values is not None and not bool(
            (np.isnan(values) & ~np.isnan(agent.table.score)).any()
        )
    return True


def _generator(name: str, seat: Seat, agent: Agent, outcomes: Outcomes | None) -> Generator:
    """The competitor as the market introduces it, with its static result."""
    items, correct, attempted, exact, f = 0, math.nan, math.nan, math.nan, math.nan
    if isinstance(agent, Bernoulli):
        exact = f = agent.rate
    elif isinstance(agent, Recorded) and outcomes is not None:
        static = outcomes.static[_model_of(agent, outcomes)]
        items, correct, attempted = static.items, static.correct, static.attempted
        exact, f = accuracy(correct, items), f_score(correct, attempted, items)
    return Generator(
        seat=name,
        label=seat.label or name,
        enters=seat.enters,
        privileged=agent.privileged,
        items=items,
        correct=correct,
        attempted=attempted,
        accuracy=exact,
        f_score=f,
    )


def _model_of(agent: Recorded, outcomes: Outcomes) -> str:
    return next(name for name, table in outcomes.tables.items() if table is agent.table)


def _questions(outcomes: Outcomes | None, pool: Pool | None, count: int) -> Questions:
    texts, golds = (None, None) if pool is None else (pool.texts, pool.golds)
    if outcomes is None and pool is not None:
        names = sorted(set(pool.topics or ["all"]))
        topics = [names.index(topic) for topic in pool.topics or ["all"] * len(pool.items)]
        return Questions(
            items=pool.items,
            topics=np.array(topics, np.int64),
            topic_names=names,
            texts=texts,
            golds=golds,
        )
    if outcomes is None:
        names = [f"q{number + 1}" for number in range(count)]
        return Questions(items=names, topics=np.zeros(count, np.int64))
    return Questions(
        items=outcomes.items,
        topics=outcomes.topics,
        topic_names=outcomes.topic_names,
        texts=texts,
        golds=golds,
    )


def _with_entries(
    seats: Mapping[str, Seat], entries: Entries | None, horizon: int
) -> dict[str, Seat]:
    """The seats with the entry steps that a table of dates or steps gives them."""
    if entries is None:
        return dict(seats)
    path = Path(entries.file)
    try:
        table = read_csv(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is not a readable CSV: {str(error).splitlines()[0]}") from None
    when = "step" if "step" in table.columns else "date"
    if "model" not in table.columns or when not in table.columns:
        raise DataError(
            f"{path}: expected the columns model and date (or step), "
            f"found {', '.join(table.columns):.200}"
        )
    named = table["model"].filter(table["model"].is_in(list(seats)))
    twice = named.filter(named.is_duplicated())
    if twice.len():
        raise DataError(f"{path} has several rows for '{twice[0]}'; expected one {when} per model")
    given = dict(zip(table["model"], table[when], strict=True))
    lacking = [name for name in seats if not given.get(name)]
    if lacking:
        raise DataError(f"{path} has no {when} for {len(lacking)} seats, the first '{lacking[0]}'")
    steps: Mapping[str, int]
    try:
        if when == "step":
            steps = {name: int(given[name]) for name in seats}
        else:
            days = sorted({date.fromisoformat(given[name]) for name in seats})
            every = entries.every or min(20, max(1, horizon // len(days)))
            steps = {name: days.index(date.fromisoformat(given[name])) * every for name in seats}
    except ValueError as error:
        raise DataError(f"{path}, column {when}: {error}") from None
    early = [name for name, step in steps.items() if step < 0]
    if early:
        raise ScenarioError(f"{path}: '{early[0]}' enters at step {steps[early[0]]}, before step 0")
    return {name: seat.model_copy(update={"enters": steps[name]}) for name, seat in seats.items()}


def _phases(scenario: Scenario, seats: Mapping[str, Seat]) -> tuple[Phase, ...]:
    """The stretches between entries: before and after the only one, or one per entry date."""
    horizon = scenario.market.horizon
    steps = {seat.enters for seat in seats.values()}
    steps |= {one.step for one in scenario.market.interventions if one.kind == "entry"}
    cuts = sorted(step for step in steps if step)
    if not cuts:
        return (Phase(name="all steps", start=0, stop=horizon),)
    names = ["before", "after"]
    if len(cuts) > 1:
        ends = [*cuts, horizon]
        names = [f"steps {a + 1}-{b}" for a, b in zip([0, *cuts], ends, strict=True)]
    return tuple(
        Phase(name=name, start=a, stop=b)
        for name, a, b in zip(names, [0, *cuts], [*cuts, horizon], strict=True)
    )


def _default_metrics(phases: Sequence[Phase]) -> tuple[str, ...]:
    by_phase = [
        _with_argument(metric, f"phase={_quoted(one.name)}")
        for one in phases
        for metric in PHASE_METRICS
    ]
    return tuple(dict.fromkeys((*WHOLE_METRICS, *by_phase)))


def _with_argument(metric: str, argument: str) -> str:
    return f"{metric[:-1]}, {argument})" if metric.endswith(")") else f"{metric}({argument})"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
