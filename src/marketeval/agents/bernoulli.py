"""An agent with a success rate: right with that probability, wrong otherwise.

The stand-in for a system of which only the benchmark rate is known, as in Table 1 of the
marketplace paper. Redrawn: every answer is a new draw. Fixed: each question is either within or
beyond the agent for the whole episode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marketeval.actions.information import Answers, SuccessRate
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """Answers with score 1 at the given rate, else 0; cost and latency are constants, if given."""

    rate: float
    fixed: bool = False
    cost_usd: float | None = None
    latency_s: float | None = None
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False

    def as_table(self) -> SuccessRate:
        """The rate and constants that this agent's answers follow."""
        return SuccessRate(
            rate=self.rate, fixed=self.fixed, cost_usd=self.cost_usd, latency_s=self.latency_s
        )

    async def act(self, request: Request) -> Answers:
        """One keyed draw per answer: by its slot, or by its question if `fixed`."""
        batch = request.batch
        if self.fixed:
            u = request.draws["knows"].uniform_at(0, batch["question"])
        else:
            u = request.draws["outcome"].uniform_at(request.step, batch["slot"])
        return Answers(
            score=(u < self.rate).astype(np.float64),
            cost_usd=None if self.cost_usd is None else np.full(u.size, self.cost_usd),
            latency_s=None if self.latency_s is None else np.full(u.size, self.latency_s),
        )
