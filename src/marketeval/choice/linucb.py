"""LinUCB with disjoint linear models: an upper confidence bound on a payoff linear in a context.

L. Li, W. Chu, J. Langford, R. E. Schapire, A contextual-bandit approach to personalized news
article recommendation, WWW 2010, Algorithm 1: theta_a = A_a^-1 b_a, score theta_a.x +
alpha sqrt(x.A_a^-1 x), with A_a = I + sum x x^T and b_a = sum r x. The context here is (1, topic as
indicator), so an agent's worth on one topic starts from its worth on the others.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def empty(targets: int, topics: int) -> tuple[Floats, Floats]:
    """A^-1 of shape (targets, 1 + topics, 1 + topics) and b of shape (targets, 1 + topics)."""
    size = 1 + topics
    return np.tile(np.eye(size), (targets, 1, 1)), np.zeros((targets, size))


@kernel
def scores(inverse: Floats, b: Floats, topics: Integers, alpha: float) -> Floats:
    """The score of each target for each context; shape (contexts, targets)."""
    size = b.shape[1]
    out = np.empty((topics.size, b.shape[0]))
    for place in range(topics.size):
        t = 1 + topics[place]
        for target in range(b.shape[0]):
            mean = 0.0
            for k in range(size):
                mean += (inverse[target, 0, k] + inverse[target, t, k]) * b[target, k]
            spread = inverse[target, 0, 0] + inverse[target, t, t] + 2.0 * inverse[target, 0, t]
            out[place, target] = mean + alpha * math.sqrt(max(spread, 0.0))
    return out


@kernel
def learn(inverse: Floats, b: Floats, target: int, topic: int, reward: float) -> None:
    """Add one outcome: A^-1 by the Sherman-Morrison formula, in place."""
    size = b.shape[1]
    t = 1 + topic
    v = np.empty(size)
    for k in range(size):
        v[k] = inverse[target, k, 0] + inverse[target, k, t]
    below = 1.0 + v[0] + v[t]
    for k in range(size):
        for j in range(size):
            inverse[target, k, j] -= v[k] * v[j] / below
    b[target, 0] += reward
    b[target, t] += reward
