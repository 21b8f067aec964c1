"""Logit choice: P(a) = exp(worth_a / T) / sum over b of exp(worth_b / T), with temperature T.

McFadden's conditional logit, drawn as the argmax of worth / T plus Gumbel noise of each agent.
"""

from __future__ import annotations

import numpy as np

from marketeval.choice._math import gumbel
from marketeval.core.compiled import inline
from marketeval.core.streams import draw_uniform

PARAMETER = "temperature"
DEFAULT = 0.1
RANGE = (1e-9, 1e9)
LEARNING = ("drift", "exponential", "mean", "beta")


@inline
def score(
    worth: float,
    count: float,
    total: float,
    temperature: float,
    code: np.uint64,
    step: int,
    slot: int,
) -> float:
    """worth / T plus a Gumbel number of the agent's own."""
    return worth / temperature + gumbel(draw_uniform(code, step, slot))
