"""Every error this package raises on purpose.

    MarketevalError
    ├── UsageError          the caller's mistake (also a ValueError); the command line exits with 2
    │   ├── UnknownNameError    a name that is not known (also a LookupError)
    │   ├── ScenarioError       a scenario that cannot be played
    │   └── DataError           a table or file that is not what it should be
    ├── EventError          a market wrote an event its schema forbids (also a ValueError)
    └── RunError            a run that failed on its way; the command line exits with 1
        ├── ReplayError         a replayed episode differs from the recorded one
        └── StoreError          a database that takes or gives nothing now

A message says what was expected, what came, and what to do. What an *agent* does wrong is never
an error here: it is a `Failure` (see `core.market`) and becomes an event.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MarketevalError(Exception):
    """Root of the tree above."""


class UsageError(MarketevalError, ValueError):
    """What the caller asked for cannot be done as asked; nothing was written.

    As a ValueError it may be raised by whoever checks a part of a specification: `core.spec` tells
    it with the place of that part.
    """


class UnknownNameError(UsageError, LookupError):
    """A name outside the known set.

    >>> str(UnknownNameError("metric", "HIH", ["HHI", "Gini"]))
    "unknown metric 'HIH'; did you mean 'HHI'? known: Gini, HHI"
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str = "") -> None:
        names = sorted(known)
        near = near_miss(name, names)
        guess = f"; did you mean '{near}'?" if near else ";"
        listed = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")
        super().__init__(f"unknown {kind} '{name}'{guess} known: {listed or 'none'}{hint}")

    def __reduce__(self) -> tuple[object, ...]:  # as it reads, also from another process
        return BaseException.__new__, (type(self), *self.args)


class ScenarioError(UsageError):
    """A scenario whose values cannot hold together."""


class DataError(UsageError):
    """A file that is missing, broken, or lacks what is needed of it."""


class EventError(MarketevalError, ValueError):
    """An event its declared schema forbids: a fault of the market, not of an agent."""


class RunError(MarketevalError, RuntimeError):
    """A run that could not be finished; what was finished stays readable."""


class ReplayError(RunError):
    """A replay asked for, or produced, something else than the recorded episode."""


class StoreError(RunError):
    """A database that takes or gives nothing now: gone, full, or broken."""


def near_miss(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to `name`, upper and lower case alike, or None."""
    by_lower = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[close[0]] if close else None
