"""The minimal market of `bare.py` with a log in memory, as a set of agents of mesa-frames.

All users interact once a step, since columns are updated at once.

    python frames.py USERS STEPS     prints its seconds by the clock and of CPU
"""

from __future__ import annotations

import sys
import time

import numpy as np
import polars as pl
from mesa_frames import AgentSetPolars, ModelDF

RATES = np.array((0.1683, 0.6024, 0.4251, 0.1442, 0.2759, 0.2774, 0.1921))
NAMES = [f"p{agent}" for agent in range(7)]


class Users(AgentSetPolars):
    def __init__(self, model, count):
        super().__init__(model)
        columns = {name: np.full(count, 1 / 7) for name in NAMES}
        self.add(pl.DataFrame({"unique_id": np.arange(count), **columns}))

    def step(self):
        frame, rng, count = self.agents, self.model.random, len(self.agents)
        best = frame.select(pl.concat_list(NAMES).list.arg_max()).to_series().to_numpy()
        explored = rng.random(count) < 0.2
        chosen = np.where(explored, rng.integers(0, 7, count), best)
        score = (rng.random(count) < RATES[chosen]).astype(np.float64)
        drawn = pl.DataFrame({"chosen": chosen, "signal": 0.2 * score - 0.1})
        moved = drawn.hstack(frame.select(NAMES)).select(
            pl.when(pl.col("chosen") == agent)
            .then((pl.col(name) + pl.col("signal")).clip(lower_bound=0.01))
            .otherwise(pl.col(name))
            .alias(name)
            for agent, name in enumerate(NAMES)
        )
        total = pl.sum_horizontal(NAMES)
        self.agents = frame.with_columns(moved.select(pl.col(name) / total for name in NAMES))
        self.model.log.append(
            pl.DataFrame(
                {
                    "seed": np.full(count, 1), "step": np.full(count, self.model.now, np.int32),
                    "user": np.arange(count, dtype=np.int32),
                    "question": rng.integers(0, 500, count, dtype=np.int32),
                    "agent": chosen.astype(np.int16), "score": score, "explored": explored,
                }
            )
        )  # fmt: skip


class Market(ModelDF):
    def __init__(self, count):
        super().__init__(seed=1)
        self.log, self.now = [], 0
        self.agents += Users(self, count)

    def step(self):
        self.agents.do("step")
        self.now += 1


def seconds(count: int, steps: int) -> float:
    market = Market(count)
    market.step()
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        market.step()
    return time.perf_counter() - start, time.process_time() - cpu


if __name__ == "__main__":
    print(*seconds(*map(int, sys.argv[1:3])))
