"""Proportional choice: each agent with probability worth / sum of worths (Luce's choice axiom).

R. D. Luce, Individual choice behavior, 1959. The marketplace paper's wording, "based on their
current preference distribution", is this rule.
"""

from __future__ import annotations

import numpy as np

from marketeval.choice._math import gumbel, log
from marketeval.core.compiled import inline
from marketeval.core.streams import draw_uniform

PARAMETER = ""
DEFAULT = 0.0
RANGE = (0.0, 0.0)
LEARNING = ("drift", "beta")


@inline
def score(
    worth: float, count: float, total: float, theta: float, code: np.uint64, step: int, slot: int
) -> float:
    """log(worth) plus a Gumbel number of the agent's own: its argmax is Luce's choice."""
    return log(max(worth, 1e-300)) + gumbel(draw_uniform(code, step, slot))
