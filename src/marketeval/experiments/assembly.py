"""From a checked scenario to a market and the agents in its seats, nothing left to go wrong."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from marketeval.agents.embedder import EmbedderSeat
from marketeval.agents.registry import make_agent
from marketeval.core.errors import ScenarioError
from marketeval.experiments.experiment import Experiment
from marketeval.experiments.families import FAMILIES
from marketeval.experiments.information import assemble_information, outcomes_of
from marketeval.experiments.pool import read_pool
from marketeval.experiments.scenario import Scenario, Seat, Tree, check
from marketeval.metrics.base import foreign_event, parse_metric

if TYPE_CHECKING:
    from marketeval.llm.calls import Calls


def assemble(scenario: Scenario, *, calls: Calls | None = None) -> Experiment:
    """Read the data, fill the seats, and resolve what the scenario left open.

    The experiment's scenario has the seats, phases and metrics spelled out. `calls` is what models
    are asked through; without it nothing that they say is kept.
    """
    if scenario.family == "information":
        return assemble_information(scenario, calls)
    return _assemble_family(scenario, calls)


def check_metrics(scenario: Scenario) -> None:
    """Refuse a metric that a scenario names and that its market's events cannot give."""
    for text in scenario.metrics:
        if foreign := _foreign(text, scenario.family):
            raise ScenarioError(
                f"metrics: {text} needs the event '{foreign}', which a market of the family "
                f"'{scenario.family}' does not write; leave it out"
            )


@lru_cache(maxsize=256)
def _foreign(text: str, family: str) -> str:
    return foreign_event(parse_metric(text), FAMILIES[family].KINDS)


def _assemble_family(scenario: Scenario, calls: Calls | None) -> Experiment:
    """As `assemble`, for families whose seats need nothing but agents."""
    family = FAMILIES[scenario.family]
    for name in ("outcomes", "items", "entries", "phases"):
        if getattr(scenario, name):
            raise ScenarioError(f"{name}: a scenario of family '{scenario.family}' takes none")
    given = {**family.SERVICES, **getattr(family, "DEFAULT_SEATS", {})}
    seats = {**{name: Seat(agent=agent) for name, agent in given.items()}, **scenario.seats}
    competing = [name for name in seats if name not in family.SERVICES]
    if not competing and not getattr(family, "SEATLESS", False):
        raise ScenarioError(f"scenario '{scenario.name}' has no seats: name them under 'seats'")
    late = [name for name in seats if seats[name].enters]
    if late:
        raise ScenarioError(
            f"seat '{late[0]}' enters late; in family '{scenario.family}' all are there from step 0"
        )
    if hasattr(family, "resolve"):
        seats = {
            name: seat.model_copy(update={"agent": family.resolve(scenario.market, seat.agent)})
            for name, seat in seats.items()
        }
    if hasattr(family, "check_seat"):
        for name, seat in seats.items():
            family.check_seat(name, seat.agent)
    agents = {
        name: make_agent(seat.agent, seat=name, options=seat.options, calls=calls)
        for name, seat in seats.items()
    }
    market = family.build(
        scenario.market,
        [(name, seats[name].label or name) for name in competing],
        privileged=[name for name in competing if agents[name].privileged],
    )
    hashes = dict(family.hashes())
    for agent in agents.values():
        if isinstance(agent, EmbedderSeat):
            hashes[f"embedder/{agent.embedder.name}"] = agent.embedder.sha256
    if hasattr(family, "prepare"):
        market = family.prepare(market, agents)
        agents = {place: agents[name] for place, name in family.cast(market, seats).items()}
        hashes |= family.data_hashes(market)
        for agent in agents.values():
            hashes |= getattr(agent, "collections", {})
    elif hasattr(family, "cast"):
        hashes |= family.data_hashes(market)
        agents = {
            place: make_agent(
                seats[name].agent, seat=place, options=seats[name].options, calls=calls
            )
            for place, name in family.cast(market, seats).items()
        }
    metrics = scenario.metrics or family.default_metrics(scenario.market)
    if hasattr(family, "check_metric"):
        for one in metrics:
            family.check_metric(scenario.market, parse_metric(one))
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
    outcomes = outcomes_of(scenario, read_pool(scenario.items) if scenario.items else None)
    return (
        {**tree, "seats": {model: {"agent": "recorded"} for model in outcomes.tables}}
        if outcomes
        else tree
    )
