"""Money and stock in whole units, moved by double entry: what one party gives, another gets.

Traders are the first rows; behind them stand the outside parties. Sums over all parties never
change, and `check` says so after any number of postings.
"""

from __future__ import annotations

from collections import deque
from enum import IntEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Costing = Literal["average", "fifo"]


class Outside(IntEnum):
    """Parties besides the traders. Their balances may be negative: they stand for the world."""

    SUPPLIER = 0
    BUYERS = 1
    WAREHOUSE = 2
    BANK = 3


class Shelves:
    """Units on shelves in the order of their purchases, a queue per trader and item.

    Each purchase is put in once and taken out once, however many there are.
    """

    def __init__(self, traders: int, items: int) -> None:
        self._queues: list[list[deque[list[int]]]] = [
            [deque() for _ in range(items)] for _ in range(traders)
        ]

    def put(self, units: Integers, unit_price: Integers) -> None:
        """Units bought at a price each; both of shape (traders, items)."""
        for trader, item in np.argwhere(units > 0).tolist():
            bought = [int(units[trader, item]), int(unit_price[trader, item])]
            self._queues[trader][item].append(bought)

    def take(self, units: Integers) -> Integers:
        """Take units that are there, the oldest first; what they had cost (traders, items)."""
        cost = np.zeros_like(units)
        for trader, item in np.argwhere(units > 0).tolist():
            queue, left, worth = self._queues[trader][item], int(units[trader, item]), 0
            while left:
                oldest = queue[0]
                taken = min(oldest[0], left)
                left -= taken
                worth += taken * oldest[1]
                oldest[0] -= taken
                if not oldest[0]:
                    queue.popleft()
            cost[trader, item] = worth
        return cost

    def clear(self, traders: NDArray[np.bool_]) -> None:
        """The shelves of some traders are empty."""
        for trader in np.flatnonzero(traders).tolist():
            for queue in self._queues[trader]:
                queue.clear()


class Ledger:
    """Balances of money, shape (traders,), and of stock and its cost, shape (traders, items).

    The cost of stock is an integer total per trader and item. At weighted average (`average`),
    selling s of S units takes floor(cost * s / S) of it, so that nothing is lost to rounding and
    an empty shelf costs 0; first in, first out (`fifo`), the units bought first are sold first.
    """

    def __init__(
        self, traders: int, items: int, *, funds: int, costing: Costing = "average"
    ) -> None:
        self._traders = traders
        self._money = np.zeros(traders + len(Outside), np.int64)
        self._units = np.zeros((traders + len(Outside), items), np.int64)
        self._cost = np.zeros((traders, items), np.int64)
        self._shelves = Shelves(traders, items) if costing == "fifo" else None
        self.pay(Outside.BANK, np.full(traders, funds))

    @property
    def funds(self) -> Integers:
        """Each trader's money, as a view that must not be written to."""
        return self._read_only(self._money[: self._traders])

    @property
    def stock(self) -> Integers:
        """Units on each trader's shelves, as a view that must not be written to."""
        return self._read_only(self._units[: self._traders])

    @property
    def cost(self) -> Integers:
        """What the units on each trader's shelves cost, as a view that must not be written to."""
        return self._read_only(self._cost)

    def outside(self, party: Outside) -> int:
        """The money of an outside party."""
        return int(self._money[self._traders + party])

    def pay(self, payer: Outside, amounts: Integers) -> None:
        """An outside party pays each trader its amount (a negative one is paid by the trader)."""
        self._money[: self._traders] += amounts
        self._money[self._traders + payer] -= amounts.sum()

    def buy(self, seller: Outside, units: Integers, unit_price: Integers) -> Integers:
        """Traders buy units from an outside party; what each paid, shape (traders,)."""
        worth = units * unit_price
        paid = worth.sum(axis=1)
        self.pay(seller, -paid)
        self._units[: self._traders] += units
        self._units[self._traders + seller] -= units.sum(axis=0)
        self._cost += worth
        if self._shelves is not None:
            self._shelves.put(units, unit_price)
        return np.asarray(paid)

    def sell(self, buyer: Outside, units: Integers, revenue: Integers) -> Integers:
        """Traders sell units for a revenue (traders, items); the cost of what each sold.

        Raises ValueError if a trader would sell more than it has.
        """
        held = self._units[: self._traders]
        if (units > held).any() or (units < 0).any():
            raise ValueError("expected sales of at most the stock, got more")
        if self._shelves is None:
            cost = np.where(units > 0, _parts(self._cost, units, held), 0)
        else:
            cost = self._shelves.take(units)
        self.pay(buyer, revenue.sum(axis=1))
        self._units[: self._traders] -= units
        self._units[self._traders + buyer] += units.sum(axis=0)
        self._cost -= cost
        return cost

    def lose(self, traders: NDArray[np.bool_]) -> None:
        """The stock of some traders goes to the warehouse, for nothing."""
        lost = np.where(traders[:, None], self._units[: self._traders], 0)
        self._units[: self._traders] -= lost
        self._units[self._traders + Outside.WAREHOUSE] += lost.sum(axis=0)
        self._cost[traders] = 0
        if self._shelves is not None:
            self._shelves.clear(traders)

    def check(self) -> bool:
        """Whether nothing was made or lost: money and each item sum to 0 over all parties."""
        return bool(
            self._money.sum() == 0
            and not self._units.sum(axis=0).any()
            and (self._units[: self._traders] >= 0).all()
            and (self._cost[self._units[: self._traders] == 0] == 0).all()
        )

    @staticmethod
    def _read_only(values: Integers) -> Integers:
        view = values.view()
        view.flags.writeable = False
        return view


def _parts(whole: Integers, units: Integers, held: Integers) -> Integers:
    """floor(whole * units / held) without overflow: quotient and rest of whole / held apart."""
    below = np.maximum(held, 1)
    return (whole // below) * units + (whole % below) * units // below
