"""A user segment's character as one row of numbers, the form in which kernels read it."""

from __future__ import annotations

(
    RULE,  # code of the choice rule
    THETA,  # the rule's parameter
    INERTIA,  # probability of asking the same agent as last time
    PORTFOLIO,  # number of best agents the choice is spread over
    POPULARITY,  # weight of an agent's share so far, added to its worth
    LEARNING,  # code of the kind of learning
    RATE,
    FLOOR,
    FORGETTING,
    PRIOR,
    ALPHA,  # weights of quality, cost, latency and trust
    BETA,
    GAMMA,
    DELTA,
    LEAVES_BELOW,  # running utility under which a user thinks of leaving; -inf = never
    PATIENCE,  # interactions in a row below it until the user leaves
    MOOD_RATE,  # weight of the newest utility in the running one
) = range(17)
SIZE = 17
