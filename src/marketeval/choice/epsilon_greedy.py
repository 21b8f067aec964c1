"""Epsilon-greedy: the best known agent, or with probability epsilon any of them.

The rule of the marketplace paper's experiment (section 2.1.1; epsilon 0.2 in its package).
"""

from __future__ import annotations

import numpy as np

from marketeval.core.compiled import inline

PARAMETER = "epsilon"
DEFAULT = 0.2
RANGE = (0.0, 1.0)
LEARNING = ("drift", "exponential", "mean", "beta")


@inline
def score(
    worth: float, count: float, total: float, epsilon: float, code: np.uint64, step: int, slot: int
) -> float:
    """What an exploiting user maximises: the agent's worth itself.

    Whether the user explores is one draw of the user, and whom then is an argmax over one keyed
    number per agent; both stand in `choice.select`, since no other rule has them.
    """
    return worth
