"""Static evaluation: each system answers each question once, without competition."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def f_score(correct: float, attempted: float, items: float) -> float:
    """The F-score of SimpleQA (Wei et al., 2024), from 0 to 1.

        F = 2 correct / (items + attempted)

    the harmonic mean of correct / attempted and correct / items, so that an answer not attempted
    counts against recall alone. NaN without items.

    >>> f_score(30, 60, 100)
    0.375
    """
    return 2 * correct / (items + attempted) if items > 0 else float("nan")


def accuracy(correct: float, items: float) -> float:
    """Correct answers (or the sum of scores) per item, from 0 to 1; NaN without items.

    >>> accuracy(30, 100)
    0.3
    """
    return correct / items if items > 0 else float("nan")


def fair_shares(scores: ArrayLike) -> Floats:
    """Market shares in proportion to static scores (the paper, Table 1), from 0 to 1.

        fair_a = F_a / sum of F over the agents in the market

    The last axis runs over agents; NaN is an agent that is not in the market. All are NaN where
    the scores sum to 0.

    >>> fair_shares([60.0, 30.0, 10.0])
    array([0.6, 0.3, 0.1])
    """
    values = np.asarray(scores, np.float64)
    sums = np.nansum(values, axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(sums > 0, values / sums, np.nan))
