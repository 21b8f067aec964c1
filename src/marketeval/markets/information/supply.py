"""The supply side as it stands: who is in the market, and what interventions did to each agent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from marketeval.core.streams import Stream
from marketeval.events.information import CORRECT, INCORRECT, UNGRADED


class Supply:
    """State per agent, all arrays of shape (agents,) in sorted-id order."""

    def __init__(self, agents: int, quality_draws: Sequence[Stream]) -> None:
        self.present = np.zeros(agents, bool)
        self.hidden_until = np.zeros(agents, np.int64)
        self.failing_until = np.zeros(agents, np.int64)
        self.price = np.ones(agents)
        self.latency = np.ones(agents)
        self.quality = np.zeros(agents)
        self._quality_draws = quality_draws

    def available(self, step: int) -> NDArray[np.bool_]:
        """Whom users can choose at a step."""
        return self.present & (self.hidden_until <= step)

    def failing(self, step: int) -> NDArray[np.bool_]:
        """Who fails whoever asks at a step."""
        return self.failing_until > step

    def alter(
        self,
        agent: int,
        step: int,
        slots: NDArray[np.int64],
        score: NDArray[np.float64],
        grade: NDArray[np.int8],
    ) -> None:
        """Degrade or improve the answers of one agent in place, by one keyed draw per slot.

        A change below 0 turns answers worth something into wrong ones and leaves refusals as they
        are; above 0 it makes any answer a right one.
        """
        change = self.quality[agent]
        if change == 0.0:
            return
        hit = self._quality_draws[agent].uniform_at(step, slots) < abs(change)
        hit &= score > 0.0 if change < 0 else score == score
        score[hit] = float(change > 0)
        graded = hit & (grade != UNGRADED)
        grade[graded] = CORRECT if change > 0 else INCORRECT
