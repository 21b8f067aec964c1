"""The supply-chain economy as a frozen specification: what a scenario file may say.

Defaults are those of Market-Bench (Tables 3 to 5), where it states them. `preset: paper` is the
paper's world; `default` the same with a highest mark-up that buyers accept; `language_matters`
has a low temperature and small consideration sets, so that slogans decide who is seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from marketeval.choice.consideration import Sampler
from marketeval.core.errors import ScenarioError, UnknownNameError
from marketeval.core.spec import Spec
from marketeval.mechanisms.auction import Pricing, Ties
from marketeval.mechanisms.ledger import Costing

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
Amount = Annotated[int, Field(ge=0, le=10**12)]
MarkUp = Annotated[float, Field(ge=1, le=10**6, allow_inf_nan=False)]


class Item(Spec):
    """Goods: name, category, units that the supplier offers per step, base (reserve) price."""

    name: str
    category: str = "goods"
    quantity: Count
    base_price: Count


class Tribe(Spec):
    """A kind of buyer: its share, lambda, rho, the persona that slogans are compared with, and,
    if it has one, a highest mark-up of its own."""

    name: str
    weight: Share
    sensitivity: NotNegative
    patience: Share = 0.6
    persona: str
    max_markup: MarkUp | None = None


class Auction(Spec):
    """Procurement. `feedback`: what a round shows of the one before; `final_void`: what stands in
    for a void last bid; `carry_supply`: whether unsold supply is offered again."""

    rounds: Count = 2
    pricing: Pricing = "pay_as_bid"
    ties: Ties = "random"
    line_errors: Literal["void_line", "void_bid"] = "void_line"
    final_void: Literal["empty", "last_valid"] = "empty"
    feedback: Literal["own_and_market", "own", "none"] = "own_and_market"
    carry_supply: bool = False


class Attention(Spec):
    """Who is noticed. `loyalty` adds to the exponent of the seller a buyer last bought of (buyers
    then come back every step); `reputation` takes that times the part of a seller's requests that
    met an empty shelf, over the steps so far."""

    sampler: Sampler = "plackett_luce"
    temperature: Positive = 1.0
    most: Count = 20
    candidates: Literal["all", "priced"] = "all"
    loyalty: NotNegative = 0.0
    reputation: NotNegative = 0.0


class Demand(Spec):
    """Buyers per step; units wanted per unit offered; one item per buyer or one per unit. Shocks
    multiply a step's demand, or an item's supply, by a number drawn from 1 - s to 1 + s."""

    buyers: Count = 200
    ratio: Annotated[float, Field(gt=0, le=1000)] = 0.95
    basket: Literal["single", "multi"] = "single"
    shock: Share = 0.0
    supply_shock: Share = 0.0


class Holding(Spec):
    """Cost of keeping a unit for a step: a rate of its cost or base price, or money per unit."""

    rate: NotNegative = 0.0
    base: Literal["cost", "base_price", "units"] = "cost"


class Credit(Spec):
    """How far below 0 funds may go, and the interest on what is below 0, per step."""

    limit: Amount = 0
    rate: NotNegative = 0.0


ITEMS = tuple(
    Item(name=f"item{place + 1}", category=category, quantity=quantity, base_price=base)
    for place, (category, quantity, base) in enumerate(
        [
            ("commodity", 200, 50),
            ("commodity", 200, 50),
            ("standard", 133, 150),
            ("standard", 133, 150),
            ("standard", 134, 150),
            ("luxury", 75, 800),
            ("luxury", 75, 800),
            ("veblen", 50, 2000),
        ]
    )
)
TRIBES = (
    Tribe(
        name="thrifty",
        weight=0.4,
        sensitivity=0.2,
        persona="I look for low prices, discounts and good value for my money.",
    ),
    Tribe(
        name="ethical",
        weight=0.3,
        sensitivity=0.8,
        persona="I buy green, fair and eco-friendly goods that do no harm to people or planet.",
    ),
    Tribe(
        name="hype",
        weight=0.2,
        sensitivity=0.9,
        persona="I want the exclusive, limited, trending thing before everybody else has it.",
    ),
    Tribe(
        name="quality",
        weight=0.1,
        sensitivity=0.5,
        persona="I value quality, fine craft and things that are made to last.",
    ),
)
Preset = Literal["paper", "default", "language_matters"]
MARKUP = 3.0
PRESETS: Mapping[Preset, Mapping[str, Any]] = {  # any: values as in a scenario file
    "paper": {},
    "default": {"max_markup": MARKUP},
    "language_matters": {
        "max_markup": MARKUP,
        "patience": 0.2,
        "attention": {"temperature": 0.1},
    },
}


class SupplyChain(Spec):
    """One supply-chain economy.

    `funds` defaults to `capital` times the base value of one step's supply, shared equally.
    `scarcity` divides what the supplier offers of every item; money and demand stay as they are.
    `items` may be a number: the paper's eight, over and over under new names. `patience` sets
    that of all tribes. `rotate` moves the seats' places by one per seed (the focal design).
    """

    preset: Preset = "default"
    horizon: Count = 6
    funds: Amount | None = None
    capital: Positive = 1.5
    scarcity: Positive = 1.0
    items: tuple[Item, ...] = ITEMS
    tribes: tuple[Tribe, ...] = TRIBES
    patience: Share | None = None
    max_markup: MarkUp | None = None
    auction: Auction = Auction()
    attention: Attention = Attention()
    demand: Demand = Demand()
    holding: Holding = Holding()
    credit: Credit = Credit()
    costing: Costing = "average"
    slogan_words: Count = 25
    history: Annotated[int, Field(ge=0, le=100)] = 3
    rotate: bool = False

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: Any) -> Any:  # any: whatever the YAML held
        if not isinstance(data, dict):
            return data
        preset = data.get("preset", "default")
        if preset not in PRESETS:
            raise UnknownNameError("preset", str(preset), PRESETS)
        filled = dict(data)
        for name, value in PRESETS[preset].items():
            if isinstance(value, Mapping):
                own = filled.get(name)
                filled[name] = {**value, **own} if isinstance(own, dict) else own or dict(value)
            else:
                filled.setdefault(name, value)
        if isinstance(filled.get("items"), int) and not isinstance(filled["items"], bool):
            filled["items"] = repeated(filled["items"])
        return filled

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        for what, names in (
            ("items", [one.name for one in self.items]),
            ("tribes", [one.name for one in self.tribes]),
        ):
            if not names:
                raise ScenarioError(f"{what}: expected at least one, got none")
            if len(set(names)) < len(names):
                raise ScenarioError(f"{what} need names of their own, got {names}")
        total = sum(one.weight for one in self.tribes)
        if abs(total - 1.0) > 1e-9:
            raise ScenarioError(f"the weights of the tribes sum to {total:g}, expected 1")
        if self.holding.base == "units" and self.holding.rate != int(self.holding.rate):
            raise ScenarioError(
                "holding.rate per unit is whole money when holding.base is units, got "
                f"{self.holding.rate:g}"
            )
        if self.preset != "paper" and self.max_markup is None:
            raise ScenarioError(
                "max_markup: only preset 'paper' goes without; expected a number from 1"
            )
        return self

    def funds_for(self, retailers: int) -> int:
        """Each retailer's money at the start.

        >>> SupplyChain().funds_for(20)
        22500
        """
        if self.funds is not None:
            return self.funds
        value = sum(one.quantity * one.base_price for one in self.items)
        return int(self.capital * value / max(retailers, 1))

    def offered(self, item: Item) -> int:
        """Units of an item per step, scarcity included; at least one.

        >>> [SupplyChain(scarcity=4.0).offered(one) for one in ITEMS[:3]]
        [50, 50, 33]
        """
        return max(1, math.floor(item.quantity / self.scarcity + 0.5))

    def patience_of(self, tribe: Tribe) -> float:
        """rho of a tribe, or the one that the scenario gives to all."""
        return tribe.patience if self.patience is None else self.patience

    def markup_of(self, tribe: Tribe) -> float | None:
        """The highest price over base that a tribe accepts; None for any."""
        own = [one for one in (tribe.max_markup, self.max_markup) if one is not None]
        return min(own) if own else None


def repeated(count: int) -> tuple[Item, ...]:
    """The paper's items over and over, `count` in all, each under a name of its own."""
    return tuple(
        ITEMS[place % len(ITEMS)].model_copy(update={"name": f"item{place + 1}"})
        for place in range(count)
    )
