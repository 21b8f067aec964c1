"""Money of named parties in whole cents, moved by double entry: what one gives, another gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

BANK = "(bank)"  # stands for the world outside


class Accounts:
    """Balances by name. They sum to 0 at all times, the bank's included.

    >>> books = Accounts()
    >>> books.open("ann", 500)
    >>> books.open("shop", 0)
    >>> books.move("ann", "shop", 320)
    >>> books.balance("ann"), books.balance("shop"), books.covers("ann", 181)
    (180, 320, False)
    """

    def __init__(self) -> None:
        self._balances: dict[str, int] = {BANK: 0}
        self._credit: set[str] = {BANK}

    def open(self, name: str, opening: int | None) -> None:
        """Open an account with cents from the bank; None is credit without limit.

        An account that is open stays as it is.
        """
        if name in self._balances:
            return
        self._balances[name] = 0
        if opening is None:
            self._credit.add(name)
        else:
            self.move(BANK, name, opening)

    def balance(self, name: str) -> int:
        """Cents in an account; negative where it lives on credit."""
        return self._balances[name]

    def covers(self, name: str, amount: int) -> bool:
        """Whether an account may pay this much."""
        return name in self._credit or self._balances[name] >= amount

    def move(self, payer: str, payee: str, amount: int) -> None:
        """Move cents. Raises ValueError for a negative amount or an uncovered one."""
        if amount < 0 or not self.covers(payer, amount):
            raise ValueError(f"{payer} cannot pay {amount} cents of {self._balances[payer]}")
        self._balances[payer] -= amount
        self._balances[payee] += amount

    def remember(self, name: str) -> Callable[[], None]:
        """What puts an account, and the bank's, back to as they are now."""
        before, bank, trusted = self._balances.get(name), self._balances[BANK], name in self._credit

        def back() -> None:
            self._balances[BANK] = bank
            if before is None:
                self._balances.pop(name, None)
            else:
                self._balances[name] = before
            if not trusted:
                self._credit.discard(name)

        return back

    @property
    def balances(self) -> Mapping[str, int]:
        """All balances, by name."""
        return MappingProxyType(self._balances)

    def check(self) -> bool:
        """Whether nothing was made or lost."""
        return sum(self._balances.values()) == 0
