"""A provider's capacity: who is served at once, who waits, who is turned away or served worse.

All of it is a declared function of how many came and in which order.

    reject   the first `capacity` of a step are served, the others are turned away
    queue    place p in the queue is served floor(p / capacity) steps later; beyond `patience`
             steps of waiting it is turned away
    degrade  all are served, each with the effort min(1, what is left of the capacity / how many
             came), and the answer is worth that much of itself

In each, the effort spent per step never exceeds the capacity.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Overflow = Literal["reject", "queue", "degrade"]


class Desk:
    """The state of one provider's capacity (None: without limit)."""

    def __init__(self, capacity: int | None, overflow: Overflow, patience: int) -> None:
        self.capacity, self.overflow, self.patience = capacity, overflow, patience
        self.backlog = 0  # calls accepted in earlier steps that still wait
        self.load = 0  # calls that came in this step
        self._taken = 0  # of these, accepted ones
        self._spent = 0.0  # effort of this step, where calls are degraded

    def admit(self, count: int) -> tuple[Floats, Integers]:
        """The effort for each of `count` more calls (0 = turned away) and the steps it waits."""
        self.load += count
        effort, wait = np.ones(count), np.zeros(count, np.int64)
        if self.capacity is None or not count:
            return effort, wait
        if self.overflow == "degrade":
            each = min(1.0, (self.capacity - self._spent) / count)
            self._spent += each * count
            return effort * each, wait
        place = self.backlog + self._taken + np.arange(count)
        longest = self.patience if self.overflow == "queue" else 0
        wait = place // self.capacity
        served = wait <= longest
        self._taken += int(served.sum())
        return served.astype(np.float64), np.where(served, wait, 0)

    def close(self) -> None:
        """End a step: so many of those who wait are served."""
        if self.capacity is not None and self.overflow == "queue":
            self.backlog = max(0, self.backlog + self._taken - self.capacity)
        self.load, self._taken, self._spent = 0, 0, 0.0


def latency(base: float, per_call: float, load: int, wait: Integers, step_s: float) -> Floats:
    """Seconds until the answer: base + per_call * (load - 1) + waiting; shape of `wait`."""
    return np.asarray(base + per_call * max(load - 1, 0) + wait * step_s, np.float64)
