"""The compiled pass over users' histories that retention and churn share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import kernel

Values = NDArray[Any]  # any: kernels are compiled for the types they are called with
INTERACTIONS, STEPS, EVERYTHING = range(3)


@kernel
def adoptions(
    seed: Values,
    user: Values,
    step: Values,
    agent: Values,
    seeds: int,
    agents: int,
    m: int,
    reading: int,
    start: int,
    stop: int,
) -> tuple[Values, Values, Values, Values]:
    """Follow every user after the first interaction with each agent, in one pass.

    The rows are sorted by seed, user and time. Returns, by (seed, agent): users whose first
    interaction with the agent came at `start` or later; those of them observed for long enough;
    the sum of the latter's retention; and how many of them had no interaction with the agent
    among their last m.
    """
    adopters = np.zeros((seeds, agents), np.int64)
    observed = np.zeros((seeds, agents), np.int64)
    retained = np.zeros((seeds, agents))
    gone = np.zeros((seeds, agents), np.int64)
    first = np.full(agents, -1, np.int64)
    last = np.zeros(agents, np.int64)
    hits = np.zeros(agents, np.int64)
    tried = np.zeros(agents, np.int64)
    begin = 0
    while begin < seed.size:
        end, count = begin, 0
        while end < seed.size and seed[end] == seed[begin] and user[end] == user[begin]:
            one = agent[end]
            if first[one] < 0:
                first[one], hits[one] = end, 0
                tried[count] = one
                count += 1
            else:
                distance = end - first[one]
                if reading == STEPS:
                    distance = step[end] - step[first[one]]
                if reading == EVERYTHING or distance <= m:
                    hits[one] += 1
            last[one] = end
            end += 1
        episode = seed[begin]
        for place in range(count):
            one = tried[place]
            at = first[one]
            first[one] = -1
            if step[at] < start:
                continue
            adopters[episode, one] += 1
            later = end - 1 - at
            if reading == INTERACTIONS:
                enough, length = later >= m, m
            elif reading == STEPS:
                enough, length = step[at] + m < stop, m
            else:
                enough, length = later > 0, later
            if enough:
                observed[episode, one] += 1
                retained[episode, one] += hits[one] / length
                if last[one] < end - m:
                    gone[episode, one] += 1
        begin = end
    return adopters, observed, retained, gone
