"""The yardstick: the minimal market as a hand-written kernel, without log, streams or choices.

N users, seven agents, epsilon-greedy (0.2), additive drift (0.1, floor 0.01), Bernoulli answers,
users drawn with replacement; a row of preferences per user, one thread. Draws come from splitmix64,
a state of one word, since numba's own Mersenne twister took half of the time.
"""

from __future__ import annotations

import time

import numba
import numpy as np

RATES = (0.1683, 0.6024, 0.4251, 0.1442, 0.2759, 0.2774, 0.1921)
WEYL, FIRST, SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)


@numba.njit
def uniform(state):
    """The number in [0, 1) that belongs to a state (Steele, Lea, Flood 2014)."""
    mixed = (state ^ (state >> np.uint64(30))) * FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * SECOND
    return np.float64((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@numba.njit(nogil=True)
def simulate(preferences, rates, steps, per_step, seed):
    state = np.uint64(seed)
    users, agents = preferences.shape
    for _ in range(steps * per_step):
        state += WEYL
        row = preferences[np.uint64(uniform(state) * users)]
        best = np.uint64(0)
        for agent in range(1, agents):
            best = np.uint64(agent) if row[agent] > row[best] else best
        state += WEYL
        # One number says whether to explore and, if so, whom: below 0.2 it is uniform again.
        u = uniform(state)
        chosen = np.uint64(u * 5.0 * agents) if u < 0.2 else best
        state += WEYL
        signal = 0.1 if uniform(state) < rates[chosen] else -0.1
        row[chosen] = max(0.01, row[chosen] + signal)
        total = 0.0
        for agent in range(agents):
            total += row[agent]
        for agent in range(agents):
            row[agent] /= total


def seconds(users: int, per_step: int, steps: int) -> float:
    """CPU seconds of one run; compile before with a small one."""
    preferences = np.full((users, len(RATES)), 1 / len(RATES))
    start = time.process_time()
    simulate(preferences, np.array(RATES), steps, per_step, 1)
    return time.process_time() - start


if __name__ == "__main__":
    seconds(10, 5, 10)
    for users, per_step, steps in ((1000, 1000, 500), (100_000, 100_000, 20)):
        rate = users and per_step * steps / seconds(users, per_step, steps) / 1e6
        print(f"{users:>8} users, {per_step} a step: {rate:.1f} million interactions a CPU second")
