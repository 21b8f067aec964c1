"""Thompson sampling: each agent in proportion to the probability that it is the best one.

W. R. Thompson, Biometrika 25 (1933) 285-294; with Beta posteriors as in O. Chapelle, L. Li,
An empirical evaluation of Thompson sampling, NIPS 2011.
"""

from __future__ import annotations

import numpy as np

from marketeval.choice._math import ATTEMPTS, gamma
from marketeval.core.compiled import inline

PARAMETER = ""
DEFAULT = 0.0
RANGE = (0.0, 0.0)
LEARNING = ("beta",)


@inline
def score(
    worth: float, count: float, total: float, theta: float, code: np.uint64, step: int, slot: int
) -> float:
    """A draw from Beta(a, b), where worth = a / (a + b) and count = a + b.

    The draw stands for the worth itself, so popularity is added to it and not to the mean before.
    """
    a = gamma(worth * count, code, step, 2 * ATTEMPTS * slot)
    b = gamma((1.0 - worth) * count, code, step, 2 * ATTEMPTS * slot + ATTEMPTS)
    return a / (a + b) if a + b > 0.0 else worth
