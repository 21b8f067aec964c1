"""The information market from its scenario: tables read, seats, questions and judge in place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from marketeval.actions.information import TableBacked
from marketeval.agents.bernoulli import Bernoulli
from marketeval.agents.model_seat import ModelSeat
from marketeval.agents.recorded import Recorded
from marketeval.agents.registry import make_agent
from marketeval.agents.wording import hash_of
from marketeval.core.errors import ScenarioError, UnknownNameError
from marketeval.core.market import Agent
from marketeval.experiments.entries import default_metrics, phases_between_entries, with_entries
from marketeval.experiments.experiment import Experiment
from marketeval.experiments.information_checks import check_ranges, check_seats, check_sizes
from marketeval.experiments.outcomes import Outcomes, read_outcomes
from marketeval.experiments.pool import Pool, read_pool
from marketeval.experiments.scenario import Scenario, Seat, recorded_file
from marketeval.markets.information.choosers import RULES, rules
from marketeval.markets.information.facts import Generator, Questions
from marketeval.markets.information.market import JUDGE, InformationMarket
from marketeval.metrics.base import parse_metric
from marketeval.metrics.static import accuracy, f_score

if TYPE_CHECKING:
    from marketeval.llm.calls import Calls


def assemble_information(scenario: Scenario, calls: Calls | None) -> Experiment:
    """As `assembly.assemble`, for users who choose among generators."""
    pool = read_pool(scenario.items) if scenario.items else None
    outcomes = outcomes_of(scenario, pool)
    choosing = _choosing(scenario)
    named = {
        name: seat
        for name, seat in scenario.seats.items()
        if name != JUDGE and name not in choosing
    }
    named = named or {model: Seat() for model in (outcomes.tables if outcomes else ())}
    seats = with_entries(named, scenario.entries, scenario.market.horizon)
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
    check_sizes(scenario.market)
    check_seats(scenario, seats, agents)
    phases = scenario.phases or phases_between_entries(scenario, seats)
    metrics = scenario.metrics or (
        *default_metrics(phases),
        *(("ChoiceFailureRate",) if choosing else ()),
    )
    metrics = tuple(str(parse_metric(text)) for text in metrics)  # as they are read back
    check_ranges(metrics, phases, scenario.market.horizon)
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
    serving = {
        name: make_agent(seat.agent, seat=name, options=seat.options, calls=calls)
        for name, seat in (*choosing.items(), *judges.items())
    }
    told = [one for name, one in (*agents.items(), *serving.items()) if name not in choosing]
    return Experiment(
        scenario=resolved,
        market=market,
        seats={**agents, **serving},
        hashes={
            **(outcomes.hashes if outcomes else {}),
            **({scenario.items: pool.hash} if pool else {}),
            **_prompts(told),
            **({f"prompt {RULES}": hash_of(rules())} if choosing else {}),
        },
    )


def _prompts(agents: Sequence[Agent]) -> Mapping[str, str]:
    """The hashes of the prompts of those who answer in words or grade."""
    speaking = [one for one in agents if not isinstance(one, TableBacked)]
    if not speaking:
        return {}
    from marketeval.agents.preview import prompts_of

    return {f"prompt {one.name}": one.hash for agent in speaking for one in prompts_of(agent)}


def outcomes_of(scenario: Scenario, pool: Pool | None) -> Outcomes | None:
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
