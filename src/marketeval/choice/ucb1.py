"""UCB1: the agent with the highest upper confidence bound; who was never tried comes first.

P. Auer, N. Cesa-Bianchi, P. Fischer, Finite-time analysis of the multiarmed bandit problem,
Machine Learning 47 (2002) 235-256, Fig. 1: mean + sqrt(2 ln n / n_a) with rewards in [0, 1].
"""

from __future__ import annotations

import math

import numpy as np

from marketeval.choice._math import log
from marketeval.core.compiled import inline

PARAMETER = "exploration"
DEFAULT = 1.0
RANGE = (0.0, 1e9)
LEARNING = ("mean",)


@inline
def score(
    worth: float,
    count: float,
    total: float,
    exploration: float,
    code: np.uint64,
    step: int,
    slot: int,
) -> float:
    """(worth + 1) / 2 + c sqrt(2 ln n / n_a); the signal in [-1, 1] is mapped to [0, 1]."""
    if count <= 0.0:
        return np.inf
    return 0.5 * (worth + 1.0) + exploration * math.sqrt(2.0 * log(max(total, 1.0)) / count)
