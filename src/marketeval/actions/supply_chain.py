"""What retailers are told and may answer, at the procurement and at the retail stage.

Answers come in two forms: by item name, with the values as a model wrote them (the market checks
each), or as arrays over the whole offer list, which is what scripts use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.common import first_object

Integers = NDArray[np.int64]
Numbers = Integers | Sequence[Any]  # any: what a model put in its JSON; the market checks it


@dataclass(frozen=True, slots=True, kw_only=True)
class Bid:
    """Units asked and price per unit, line by line.

    With `items` None there is one line per item of the offer list, quantity 0 meaning none.
    """

    quantity: Numbers
    price: Numbers
    items: Sequence[str] | None = None

    @classmethod
    def read(cls, answer: object) -> Self:
        """The bid in `{"bids": {"item1": {"qty": 10, "price": 51}}}`, as text or parsed.

        Raises ValueError if it is not of this form; lines are left to the market to check.
        """
        lines = _parsed(answer).get("bids")
        if not isinstance(lines, Mapping):
            raise ValueError("expected a JSON object with 'bids', an object of items")
        rows = [one if isinstance(one, Mapping) else {} for one in lines.values()]
        return cls(
            items=[str(name) for name in lines],
            quantity=[row.get("qty") for row in rows],
            price=[row.get("price") for row in rows],
        )

    @staticmethod
    def schema(items: Sequence[str]) -> dict[str, Any]:  # any: a JSON schema
        """The JSON schema of `read`'s form for these items."""
        line = _object({"qty": {"type": "integer"}, "price": {"type": "integer"}})
        return _object({"bids": _object(dict.fromkeys(items, line), every=False)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Retail prices and a slogan. With `items` None: one price per item, 0 meaning not listed."""

    price: Numbers
    slogan: str = ""
    items: Sequence[str] | None = None

    @classmethod
    def read(cls, answer: object) -> Self:
        """The offer in `{"prices": {"item1": 75}, "slogan": "..."}`, as text or parsed.

        Raises ValueError if it is not of this form; prices are left to the market to check.
        """
        found = _parsed(answer)
        prices = found.get("prices")
        if not isinstance(prices, Mapping):
            raise ValueError("expected a JSON object with 'prices', an object of items")
        listed = {str(name): price for name, price in prices.items() if price is not None}
        return cls(
            items=list(listed), price=list(listed.values()), slogan=found.get("slogan") or ""
        )

    @staticmethod
    def schema(items: Sequence[str]) -> dict[str, Any]:  # any: a JSON schema
        """The JSON schema of `read`'s form for these items; an item at null is not listed."""
        prices = _object({name: {"type": ["integer", "null"]} for name in items}, every=False)
        return _object({"prices": prices, "slogan": {"type": "string"}})


def _parsed(answer: object) -> Mapping[str, Any]:  # any: JSON
    """The object that an answer holds, as text or parsed; ValueError if it holds none."""
    found = first_object(answer) if isinstance(answer, str) else answer
    if not isinstance(found, Mapping):
        raise ValueError(f"expected a JSON object, got {found!r:.60}")
    return found


def _object(properties: Mapping[str, Any], *, every: bool = True) -> dict[str, Any]:  # any: schema
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties) if every else [],
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicStep:
    """What everybody may know of a step that is over; arrays of shape (retailers, items)."""

    step: int
    price: Integers  # 0 = not listed
    sold: Integers
    slogans: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What a seat learns of the round before; None where the scenario withholds it.

    `won` and `cost` are its own provisional award; `lowest` the lowest provisional winning price
    per item (0 where nothing was won), `asked` and `left` the units asked for and left over.
    """

    won: Integers | None = None
    cost: int | None = None
    lowest: Integers | None = None
    asked: Integers | None = None
    left: Integers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """What a retailer knows at either stage; its text is written only if somebody reads it.

    Arrays are over items, save those of the history. `me` is the seat's row in the history.
    `stage` is `procurement` or `retail`; `feedback` is there in later rounds of the former.
    """

    stage: str
    seat: str
    me: int
    retailers: int
    step: int
    steps: int
    round: int
    rounds: int
    funds: int
    credit: int
    overspent: bool
    items: Sequence[str]
    quantity: Integers
    base_price: Integers
    stock: Integers
    cost: Integers
    max_markup: float | None
    slogan_words: int
    history: Sequence[PublicStep]
    feedback: Feedback | None
    write: Callable[[Briefing], str]

    def __str__(self) -> str:
        return self.write(self)

    def payload(self) -> dict[str, Any]:  # any: JSON
        """Everything as JSON, for seats in other processes."""
        known = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "write"}
        return {name: _plain(value) for name, value in known.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Personas:
    """What only privileged seats are told: the tribes' texts, weights and sensitivities."""

    texts: Sequence[str]
    weight: NDArray[np.float64]
    sensitivity: NDArray[np.float64]


def _plain(value: Any) -> Any:  # any: the fields of a briefing
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (PublicStep, Feedback)):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value
