"""What an outcome is worth to a user, and what the user learns from it.

utility = alpha Q - beta C - gamma L + delta T (marketplace paper, section 4.1.2, with trust T
beside its quality, cost and latency). The signal has the same form with the quality signal g in
the place of Q: g = 2Q - 1, or what a map gives for the grade.
"""

from __future__ import annotations

from marketeval.core.compiled import inline


@inline
def utility(
    quality: float,
    cost: float,
    latency: float,
    trust: float,
    alpha: float,
    beta: float,
    gamma: float,
    delta: float,
) -> float:
    """alpha Q - beta C - gamma L + delta T; a term whose coefficient is 0 is left out.

    Q in [0, 1], C in dollars, L in seconds, T in [0, 1]; NaN if a term that counts is unknown.
    """
    value = alpha * quality
    if beta != 0.0:
        value -= beta * cost
    if gamma != 0.0:
        value -= gamma * latency
    if delta != 0.0:
        value += delta * trust
    return value


@inline
def reliability(successes: float, trials: float) -> float:
    """Trust: the mean of Beta(1 + successes, 1 + failures), 1/2 before any experience."""
    return (successes + 1.0) / (trials + 2.0)
