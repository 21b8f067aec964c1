"""The shoppers of a step: who they are, what they want, in which order they come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketeval.core.streams import Streams
from marketeval.markets.supply_chain.scenario import SupplyChain

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Crowd:
    """`tribe` per buyer; then one row per want, in order of arrival."""

    tribe: Integers
    buyer: Integers
    item: Integers
    need: Integers


class Demand:
    """Draws the crowd of a step: D = floor(r * supply) units split evenly over the buyers, the
    rest going to some of them at random; items in proportion to what is offered."""

    def __init__(self, spec: SupplyChain, streams: Streams) -> None:
        self._spec = spec.demand
        self._streams = streams
        self._stay = spec.attention.loyalty > 0
        self._offered = np.cumsum([one.quantity for one in spec.items])
        self._shares: NDArray[np.float64] = np.cumsum([one.weight for one in spec.tribes])
        self._shares[-1] = 1.0

    def draw(self, step: int) -> Crowd:
        """The crowd of one step."""
        streams, buyers = self._streams, self._spec.buyers
        swing = 1.0
        if self._spec.shock:
            chance = float(streams["demand"].uniform(step, 1)[0])
            swing += self._spec.shock * (2.0 * chance - 1.0)
        supply = int(self._offered[-1])
        wanted = int(np.floor(self._spec.ratio * supply * swing + 1e-9))
        each, rest = divmod(wanted, buyers)
        need = np.full(buyers, each, np.int64)
        if rest:
            need[streams["extra"].sample(step, buyers, rest)] += 1
        u = streams["tribe"].uniform(0 if self._stay else step, buyers)
        tribe = np.asarray(np.searchsorted(self._shares, u, side="right"), np.int64)
        arrival = streams["arrival"].permutation(step, buyers)
        if self._spec.basket == "single":
            item = self._items(streams["item"].below(supply, step, buyers))
            return Crowd(tribe, arrival, item[arrival], need[arrival])
        unit_buyer = np.repeat(np.arange(buyers), need)
        unit_item = self._items(streams["item"].below(supply, step, wanted))
        kinds = self._offered.size
        counts = np.bincount(unit_buyer * kinds + unit_item, minlength=buyers * kinds)
        baskets = counts.reshape(buyers, kinds)[arrival]
        rows, items = np.nonzero(baskets)
        return Crowd(tribe, arrival[rows], items, baskets[rows, items])

    def _items(self, numbers: Integers) -> Integers:
        return np.asarray(np.searchsorted(self._offered, numbers, side="right"), np.int64)


class Supplier:
    """What the supplier offers at each step."""

    def __init__(self, spec: SupplyChain, streams: Streams) -> None:
        self._quantity = np.array([spec.offered(one) for one in spec.items], np.int64)
        self._shock = spec.demand.supply_shock
        self._carry = spec.auction.carry_supply
        self._stream = streams["supply"]
        self._left = np.zeros_like(self._quantity)

    def offer(self, step: int) -> Integers:
        """Units of each item, shocks and what was carried over included."""
        quantity = self._quantity
        if self._shock:
            swing = 1.0 + self._shock * (2.0 * self._stream.uniform(step, quantity.size) - 1.0)
            quantity = np.floor(quantity * swing + 0.5).astype(np.int64)
        return quantity + self._left

    def keep(self, left: Integers) -> None:
        """What was not sold at auction expires, or is kept for the next step."""
        if self._carry:
            self._left = left
