"""Money and stock in whole units, moved by double entry: what one party gives, another gets.

Traders are the first rows; behind them stand the outside parties. Sums over all parties never
change, and `check` says so after any number of postings.
"""

from __future__ import annotations

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
        self._layers: list[tuple[Integers, Integers]] | None = [] if costing == "fifo" else None
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
        if self._layers is not None:
            self._layers.append((units.copy(), unit_price.copy()))
        return np.asarray(paid)

    def sell(self, buyer: Outside, units: Integers, revenue: Integers) -> Integers:
        """Traders sell units for a revenue (traders, items); the cost of what each sold.

        Raises ValueError if a trader would sell more than it has.
        """
        held = self._units[: self._traders]
        if (units > held).any() or (units < 0).any():
            raise ValueError("expected sales of at most the stock, got more")
        if self._layers is None:
            cost = np.where(units > 0, _parts(self._cost, units, held), 0)
        else:
            cost = self._oldest(self._layers, units)
        self.pay(buyer, revenue.sum(axis=1))
        self._units[: self._traders] -= units
        self._units[self._traders + buyer] += units.sum(axis=0)
        self._cost -= cost
        return cost

    @staticmethod
    def _oldest(layers: list[tuple[Integers, Integers]], units: Integers) -> Integers:
        """Take units from the purchases, the oldest first; what they had cost."""
        cost, left = np.zeros_like(units), units.copy()
        for there, price in layers:
            taken = np.minimum(there, left)
            there -= taken
            left -= taken
            cost += taken * price
        layers[:] = [one for one in layers if one[0].any()]
        return cost

    def lose(self, traders: NDArray[np.bool_]) -> None:
        """The stock of some traders goes to the warehouse, for nothing."""
        lost = np.where(traders[:, None], self._units[: self._traders], 0)
        self._units[: self._traders] -= lost
        self._units[self._traders + Outside.WAREHOUSE] += lost.sum(axis=0)
        self._cost[traders] = 0
        for there, _ in self._layers or ():
            there[traders] = 0

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
