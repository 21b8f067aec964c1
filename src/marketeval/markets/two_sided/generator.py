"""Populations of our own making: any size, four domains, seeded, without a network.

The shape is that of the reference's populations: per customer some businesses hold everything that
is wanted, at prices scattered around the customer's own; all but the last of them have every wanted
amenity, the last lacks the first one. Menus are filled up with other items, amenities with others.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Annotated, Any, Self

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from marketeval.actions.two_sided import Business, Customer
from marketeval.core.errors import ScenarioError, UnknownNameError
from marketeval.core.spec import Spec
from marketeval.core.streams import Stream, Streams
from marketeval.markets.two_sided.population import Population

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Words = dict[str, Any]  # any: the word lists of a domain
_OTHER_DRAWS = 40  # draws of a business besides those of its items
_PER_ITEM = 13  # one for the place on the menu, twelve for the price


class Generated(Spec):
    """A population to be made; pairs are ranges, ends included.

    `matches`: businesses per customer that hold all wanted items; `lacking`: how many of them lack
    an amenity. `near_misses`: further businesses per customer that lack one wanted item.
    `price_spread`: standard deviation of a price over its mean. `rating`: uniform in this range.
    `extra_amenities`: chance that a business has an amenity nobody asked it for. `paraphrased`:
    chance that a request describes an item in other words than the menus do.
    """

    domain: str = "restaurants"
    customers: Count = 10
    seed: Annotated[int, Field(ge=0)] = 0
    items: tuple[Count, Count] = (1, 3)
    amenities: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] = (1, 2)
    matches: Count = 3
    lacking: Annotated[int, Field(ge=0)] = 1
    near_misses: Annotated[int, Field(ge=0)] = 0
    distractors: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] = (10, 15)
    price_spread: Share = 0.125
    rating: tuple[Share, Share] = (1.0, 1.0)
    floor: tuple[Share, Share] = (0.6, 0.95)
    extra_amenities: Share = 0.3
    paraphrased: Share = 0.0

    @field_validator("domain")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in domains():
            raise UnknownNameError("domain", name, domains())
        return name

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        for name in ("items", "amenities", "distractors", "rating", "floor"):
            low, high = getattr(self, name)
            if low > high:
                raise ScenarioError(f"generate.{name}: {low} is above {high}")
        if self.lacking > self.matches:
            raise ScenarioError("generate.lacking is more than generate.matches")
        if self.lacking and self.amenities[0] == 0:
            raise ScenarioError("generate.lacking needs customers who want an amenity")
        return self


def domains() -> list[str]:
    """The domains there are words for."""
    return sorted(set(_words()) - {"people"})


def generate(spec: Generated) -> Population:
    """The population that a specification and its seed stand for; the same on every machine."""
    words, streams = _words()[spec.domain], Streams(spec.seed)
    goods = [
        (f"{manner} {thing}", manner, thing, mean * (0.8 + 0.02 * place))
        for thing, mean in words["things"].items()
        for place, manner in enumerate(words["manners"])
    ]
    goods = [goods[place] for place in streams["goods"].permutation(0, len(goods))]
    customers: list[Customer] = []
    businesses: list[Business] = []
    width = max(4, len(str(spec.customers * (spec.matches + spec.near_misses))))
    for number in range(spec.customers):
        u = streams["customer"].uniform(number, 64)
        start, count = int(u[0] * len(goods)), _between(spec.items, u[1])
        wanted = [goods[(start + place) % len(goods)] for place in range(count)]
        amenities = _pick(words["amenities"], _between(spec.amenities, u[2]), u[3:33])
        customer = _customer(
            spec, words, f"customer_{number + 1:0{width}d}", wanted, amenities, u[33:]
        )
        customers.append(customer)
        for place in range(spec.matches + spec.near_misses):
            near_miss = place >= spec.matches
            held = wanted[1:] if near_miss else wanted
            has = set(amenities)
            if not near_miss and place >= spec.matches - spec.lacking:
                has -= {amenities[0]}
            businesses.append(
                _business(
                    spec, words, goods, len(businesses), customer.id, held,
                    {one[0] for one in wanted}, amenities, has, streams["business"],
                )
            )  # fmt: skip
    order = streams["order"].permutation(0, len(businesses))
    renamed = [
        replace(businesses[place], id=f"business_{number + 1:0{width}d}")
        for number, place in enumerate(order.tolist())
    ]
    source = f"generated: {spec.model_dump_json(exclude_defaults=True)}"
    return Population(customers=customers, businesses=renamed, source=source)


def _customer(
    spec: Generated,
    words: Words,
    id_: str,
    wanted: list[tuple[str, str, str, float]],
    amenities: list[str],
    u: NDArray[np.float64],
) -> Customer:
    people = _words()["people"]
    named = [
        f"'{name}'"
        if u[4 + place] >= spec.paraphrased
        else f"{thing.lower()}, {manner.lower()} kind,"
        for place, (name, manner, thing, _) in enumerate(wanted[:8])
    ] + [f"'{name}'" for name, *_ in wanted[8:]]
    wishes = words["wishes"]
    request = wishes[int(u[0] * len(wishes))].format(
        items=_listed(named), amenities=_listed(amenities) or "nothing special"
    )
    first, last = people["first"], people["last"]
    return Customer(
        id=id_,
        name=f"{first[int(u[1] * len(first))]} {last[int(u[2] * len(last))]}",
        request=request,
        menu_features={name: round(mean, 2) for name, _, _, mean in wanted},
        amenity_features=tuple(amenities),
    )


def _business(
    spec: Generated,
    words: Words,
    goods: list[tuple[str, str, str, float]],
    number: int,
    customer: str,
    held: list[tuple[str, str, str, float]],
    wanted: set[str],
    asked: list[str],
    has: set[str],
    stream: Stream,
) -> Business:
    u = stream.uniform(number, _OTHER_DRAWS)
    extra = _between(spec.distractors, u[0])
    start = int(u[1] * len(goods))
    step = 7  # coprime with the number of goods: distractors come from all over the list
    others = [goods[(start + step * place) % len(goods)] for place in range(extra + len(wanted))]
    menu = held + [one for one in others if one[0] not in wanted][:extra]
    u = stream.uniform(number, _OTHER_DRAWS + len(menu) * _PER_ITEM)
    spread = u[_OTHER_DRAWS:].reshape(len(menu), _PER_ITEM)
    order = np.argsort(spread[:, 0], kind="stable").tolist()
    # twelve uniform numbers less six are close to a normal number, and the same on any machine
    factors = (1 + spec.price_spread * (spread[:, 1:].sum(axis=1) - 6.0)).tolist()
    prices = {
        menu[place][0]: max(0.01, round(menu[place][3] * factors[place], 2)) for place in order
    }
    amenities = {
        name: name in has or (name not in asked and bool(u[8 + place] < spec.extra_amenities))
        for place, name in enumerate(words["amenities"])
    }
    first, second, towns = words["first"], words["second"], _words()["people"]["towns"]
    name = f"{first[number % len(first)]} {second[(number // len(first)) % len(second)]}"
    town = number // (len(first) * len(second))
    if town:
        name += f" {towns[(town - 1) % len(towns)]}"
    openings, closings = words["openings"], words["closings"]
    low, high = spec.rating
    least, most = spec.floor
    return Business(
        id="",
        name=name,
        description=f"{openings[int(u[2] * len(openings))]} {closings[int(u[3] * len(closings))]}",
        rating=round(low + (high - low) * float(u[4]), 3),
        menu_features=prices,
        amenity_features=amenities,
        min_price_factor=round(least + (most - least) * float(u[5]), 2),
        progenitor_customer=customer,
    )


def _pick(options: list[str], count: int, u: NDArray[np.float64]) -> list[str]:
    order = np.argsort(u[: len(options)], kind="stable").tolist()
    return [options[place] for place in order[:count]]


def _between(ends: tuple[int, int], u: float) -> int:
    return ends[0] + int(u * (ends[1] - ends[0] + 1))


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


@cache
def _words() -> dict[str, Words]:
    text = (resources.files(__package__) / "domains.yaml").read_text("utf-8")
    made: dict[str, Words] = yaml.safe_load(text)
    return made
