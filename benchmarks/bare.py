"""The yardstick: the minimal market as a hand-written kernel, without log, streams or choices.

N users, seven agents, epsilon-greedy (0.2), additive drift (0.1, floor 0.01), Bernoulli answers,
users drawn with replacement; a row of preferences per user, numba's own generator, one thread.
"""

from __future__ import annotations

import time

import numba
import numpy as np

RATES = (0.1683, 0.6024, 0.4251, 0.1442, 0.2759, 0.2774, 0.1921)


@numba.njit(nogil=True)
def simulate(preferences, rates, steps, per_step, seed):
    np.random.seed(seed)
    users, agents = preferences.shape
    for _ in range(steps * per_step):
        row = preferences[np.random.randint(users)]
        chosen = 0
        if np.random.random() < 0.2:
            chosen = np.random.randint(agents)
        else:
            for agent in range(1, agents):
                if row[agent] > row[chosen]:
                    chosen = agent
        signal = 0.1 if np.random.random() < rates[chosen] else -0.1
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
