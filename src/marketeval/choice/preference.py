"""How a user learns: what an outcome does to one row of preferences, and what an entrant gets.

A row holds two numbers per agent, in sorted-id order; NaN in the first means that the user does
not know the agent. Four kinds (docs/model.md has the table of rules each can serve):

    kind         first            second        worth              an entrant gets
    drift        preference p     unused        p                  1/(n+1), others times n/(n+1)
    exponential  average v        count n       v                  prior, 0
    mean         average v        count n       v                  prior, 0
    beta         a                b             a / (a + b)        1, 1
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import inline, kernel

Floats = NDArray[np.float64]

KINDS = ("drift", "exponential", "mean", "beta")
DRIFT, EXPONENTIAL, MEAN, BETA = range(4)


@inline
def worth(kind: int, first: float, second: float) -> float:
    """What the choice rules take an agent to be worth."""
    return first / (first + second) if kind == BETA else first


@inline
def evidence(kind: int, first: float, second: float) -> float:
    """How often an agent was tried, as UCB1 and Thompson sampling need it (beta: a + b)."""
    return first + second if kind == BETA else second


@inline
def learn(
    kind: int,
    first: Floats,
    second: Floats,
    agent: int,
    signal: float,
    rate: float,
    floor: float,
    forgetting: float,
    prior: float,
) -> None:
    """Update one row after an outcome of `agent`; `first` and `second` have shape (agents,).

    drift        p_a <- max(floor, p_a + rate s), then all divided by their sum
    exponential  v_a <- v_a + rate (s - v_a)
    mean         n_a <- n_a + 1, v_a <- v_a + (s - v_a) / n_a
    beta         x = (s + 1) / 2 cut to [0, 1]; a <- a + x, b <- b + 1 - x

    With forgetting f the row first moves towards what it knew at the start: p to 1/n, v of
    `exponential` to the prior, counts to 0, a and b to 1, each by the fraction f.
    """
    if forgetting > 0.0:
        _forget(kind, first, second, forgetting, prior)
    if kind == DRIFT:
        known = first[agent] == first[agent]
        first[agent] = max(floor, (first[agent] if known else floor) + rate * signal)
        normalise(first)
        return
    if first[agent] != first[agent]:
        first[agent] = 1.0 if kind == BETA else prior
        second[agent] = 1.0 if kind == BETA else 0.0
    if kind == BETA:
        success = min(1.0, max(0.0, 0.5 * (signal + 1.0)))
        first[agent] += success
        second[agent] += 1.0 - success
        return
    second[agent] += 1.0
    weight = rate if kind == EXPONENTIAL else 1.0 / second[agent]
    first[agent] += weight * (signal - first[agent])


@inline
def normalise(first: Floats) -> None:
    """Divide the known entries by their sum, taken from left to right; equal if all are 0."""
    total = 0.0
    known = 0
    for one in first:
        if one == one:
            total += one
            known += 1
    for agent in range(first.size):
        if total > 0.0:
            first[agent] = first[agent] / total
        elif first[agent] == first[agent]:
            first[agent] = 1.0 / known


@inline
def _forget(kind: int, first: Floats, second: Floats, fraction: float, prior: float) -> None:
    keep = 1.0 - fraction
    known = 0
    for one in first:
        known += one == one
    for agent in range(first.size):
        if kind == DRIFT:
            first[agent] = keep * first[agent] + fraction / known
        elif kind == EXPONENTIAL:
            first[agent] = prior + keep * (first[agent] - prior)
        elif kind == MEAN:
            second[agent] = keep * second[agent]
        else:
            first[agent] = 1.0 + keep * (first[agent] - 1.0)
            second[agent] = 1.0 + keep * (second[agent] - 1.0)


@kernel
def enter(
    kinds: NDArray[np.int64], first: Floats, second: Floats, agent: int, priors: Floats
) -> None:
    """Make an agent known to all rows; those who know it already keep what they know.

    Parameters: `kinds` and `priors` of shape (rows,), `first` and `second` (rows, agents).
    """
    for row in range(first.shape[0]):
        if first[row, agent] == first[row, agent]:
            continue
        if kinds[row] == DRIFT:
            known = 0
            for one in first[row]:
                known += one == one
            for other in range(first.shape[1]):
                first[row, other] *= known / (known + 1)
            first[row, agent] = 1.0 / (known + 1)
        elif kinds[row] == BETA:
            first[row, agent] = second[row, agent] = 1.0
        else:
            first[row, agent] = priors[row]
            second[row, agent] = 0.0


@kernel
def leave(kinds: NDArray[np.int64], first: Floats, second: Floats, agent: int) -> None:
    """Make all rows forget an agent; the preferences of `drift` are shared out by their sizes."""
    for row in range(first.shape[0]):
        first[row, agent] = np.nan
        second[row, agent] = 0.0
        if kinds[row] == DRIFT:
            normalise(first[row])
