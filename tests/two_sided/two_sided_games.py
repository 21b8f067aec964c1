"""Small two-sided markets, ready to be played."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from marketeval.actions.two_sided import Business, Customer
from marketeval.agents.registry import make_agent
from marketeval.core.drive import lockstep
from marketeval.core.log import EventLog
from marketeval.core.market import Agent
from marketeval.markets.two_sided.family import build, cast
from marketeval.markets.two_sided.population import Population, read_population
from marketeval.markets.two_sided.scenario import TwoSided

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "magentic"
STUDIES = {
    "competitive": "manipulation/competitive_description",
    "malicious": "manipulation/malicious_description",
    "position": "manipulation/position_bias",
}


@cache
def published(name: str) -> Population:
    """A population of the reference, such as `mexican_3_9` or `competitive-mexican_authority`."""
    study, dash, own = name.partition("-")
    folder = PUBLISHED / STUDIES[study] / own if dash else PUBLISHED / name
    if not folder.is_dir():
        pytest.skip(f"the published population {name} is not there")
    return read_population(str(folder))


def customer(id_: str = "customer_1", *, wants: Mapping[str, float] | None = None, needs=("Wifi",)):
    """A customer; by default the one of the analytics test vectors."""
    return Customer(
        id=id_,
        name=f"Name of {id_}",
        request="I would like a Taco in a place with Wifi",
        menu_features=wants or {"Taco": 12.0},
        amenity_features=tuple(needs),
    )


def business(id_: str = "business_1", *, menu=None, has=("Wifi",), **more):
    """A business; by default the one of the analytics test vectors."""
    return Business(
        id=id_,
        name=more.pop("name", f"Name of {id_}"),
        description=more.pop("description", "Nice food."),
        rating=more.pop("rating", 1.0),
        menu_features=menu or {"Taco": 10.0, "Soup": 5.0},
        amenity_features=dict.fromkeys(has, True),
        min_price_factor=more.pop("floor", 0.8),
    )


def population(customers, businesses) -> Population:
    """A population of its own."""
    return Population(customers=customers, businesses=businesses, source="test")


def play(
    people: Population,
    *,
    buyer: str | Agent = "careful-buyer",
    seller: str | Agent = "menu-honest",
    others: Mapping[str, str | Agent] | None = None,
    seed: int = 1,
    turns: list | None = None,
    **spec,
) -> EventLog:
    """The log of one episode; `others` seats single agents."""
    named = {"customers": buyer, "businesses": seller, **(others or {})}
    made = {
        name: make_agent(f"heuristic:{agent}", seat=name) if isinstance(agent, str) else agent
        for name, agent in named.items()
    }
    labels = [
        (name, agent if isinstance(agent, str) else type(agent).__name__)
        for name, agent in named.items()
    ]
    knowing = [name for name, agent in made.items() if agent.privileged]
    market = build(TwoSided(**spec), labels, privileged=knowing, population=people)
    seats = {place: made[name] for place, name in cast(market, made).items()}
    log = EventLog(market.events)
    lockstep(market, seats, seed=seed, log=log, record=turns)
    return log
