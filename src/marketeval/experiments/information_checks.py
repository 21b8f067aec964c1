"""What can be wrong with an information market although each part of its scenario is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from marketeval.agents.bernoulli import Bernoulli
from marketeval.agents.model_seat import ModelSeat
from marketeval.agents.recorded import Recorded
from marketeval.core.errors import ScenarioError, UnknownNameError
from marketeval.core.market import Agent
from marketeval.experiments.scenario import Phase, Scenario, Seat
from marketeval.markets.information.scenario import Information, Intervention
from marketeval.metrics.base import parse_metric


def check_sizes(spec: Information) -> None:
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


def check_ranges(metrics: Sequence[str], phases: Sequence[Phase], horizon: int) -> None:
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


def check_seats(scenario: Scenario, seats: Mapping[str, Seat], agents: Mapping[str, Agent]) -> None:
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
