"""The money of an episode, in millionths of a dollar: double entry, and a row for every payment."""

from __future__ import annotations

from marketeval.core.log import EventLog
from marketeval.mechanisms.accounts import BANK, Accounts

MICROS = 1_000_000


def micros(dollars: float) -> int:
    """Dollars in whole millionths, rounded half to even."""
    return round(dollars * MICROS)


def user_account(user: int) -> str:
    """The name of a user's account."""
    return f"user {user}"


class Books:
    """Accounts of all, and the payments of the step so far."""

    def __init__(self, openings: dict[str, int | None]) -> None:
        self._accounts = Accounts()
        self._openings = openings
        for name, opening in openings.items():
            self._accounts.open(name, opening)
        self._rows: list[tuple[int, str, str, int, int]] = []
        self.limited = {name for name, opening in openings.items() if opening is not None}
        self.earned: dict[str, int] = {}  # what came in less what went out, for adaptation
        self.revenue: dict[str, int] = {}

    def covers(self, name: str, amount: int) -> bool:
        """Whether an account may pay this much."""
        return name not in self.limited or self._accounts.balance(name) >= amount

    def left(self, name: str) -> int | None:
        """What an account may still pay; None without limit."""
        return self._accounts.balance(name) if name in self.limited else None

    def pay(self, slot: int, payer: str, payee: str, amount: int, purpose: int) -> int:
        """Move an amount, or what is there of it; what was moved."""
        left = self.left(payer)
        amount = amount if left is None else min(amount, left)
        if amount <= 0:
            return 0
        self._accounts.move(payer, payee, amount)
        self._rows.append((slot, payer, payee, amount, purpose))
        self.earned[payer] = self.earned.get(payer, 0) - amount
        self.earned[payee] = self.earned.get(payee, 0) + amount
        self.revenue[payee] = self.revenue.get(payee, 0) + amount
        return amount

    def write(self, log: EventLog, step: int) -> None:
        """Log the payments of a step."""
        if self._rows:
            slots, payers, payees, amounts, purposes = zip(*self._rows, strict=True)
            log.append(
                "payment", step=step, slot=slots, payer=payers, payee=payees, micros=amounts,
                purpose=purposes,
            )  # fmt: skip
            self._rows = []

    def close(self, log: EventLog) -> None:
        """Log every account."""
        names = [*self._openings, BANK]
        opened = [self._openings.get(name) or 0 for name in self._openings]
        log.append(
            "balance",
            account=names,
            opening=[*opened, -sum(opened)],
            closing=[self._accounts.balance(name) for name in names],
        )
