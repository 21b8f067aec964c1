"""The minimal market of `bare.py` with a log in memory, as users of Mesa and of AgentPy write it.

python objects.py mesa|agentpy USERS PER_STEP STEPS     prints its seconds by the clock and of CPU
"""

from __future__ import annotations

import random
import sys
import time

RATES = (0.1683, 0.6024, 0.4251, 0.1442, 0.2759, 0.2774, 0.1921)


def interact(user, rng):
    """One user's interaction, as a row; `user` is an agent of either package."""
    preferences = user.preferences
    explored = rng.random() < 0.2
    best = max(range(7), key=preferences.__getitem__)
    chosen = rng.randrange(7) if explored else best
    score = 1.0 if rng.random() < RATES[chosen] else 0.0
    preferences[chosen] = max(0.01, preferences[chosen] + (0.1 if score else -0.1))
    total = sum(preferences)
    user.preferences = [one / total for one in preferences]
    return {"user": user.number, "agent": chosen, "score": score, "explored": explored}


def mesa_seconds(users: int, per_step: int, steps: int) -> tuple[float, float]:
    import mesa

    class User(mesa.Agent):
        def __init__(self, model, number):
            super().__init__(model)
            self.number, self.preferences = number, [1 / 7] * 7

        def step(self):
            row = interact(self, self.random)
            row |= {"seed": 1, "step": self.model.now, "question": self.random.randrange(500)}
            self.model.datacollector.add_table_row("interaction", row)

    class Market(mesa.Model):
        def __init__(self):
            super().__init__(seed=1)
            self.now = 0
            names = ["seed", "step", "user", "question", "agent", "score", "explored"]
            self.datacollector = mesa.DataCollector(tables={"interaction": names})
            self.everybody = [User(self, number) for number in range(users)]

        def step(self):
            for user in self.random.choices(self.everybody, k=per_step):
                user.step()
            self.now += 1

    market = Market()
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        market.step()
    return time.perf_counter() - start, time.process_time() - cpu


def agentpy_seconds(users: int, per_step: int, steps: int) -> tuple[float, float]:
    import agentpy

    class User(agentpy.Agent):
        def setup(self):
            self.number, self.preferences = self.id, [1 / 7] * 7

        def act(self):
            rng = self.model.numbers
            row = interact(self, rng)
            row |= {"seed": 1, "step": self.model.t, "question": rng.randrange(500)}
            for name, value in row.items():  # as its users log: it records attributes of agents
                setattr(self, name, value)
            self.record(list(row))

    class Market(agentpy.Model):
        def setup(self):
            self.numbers = random.Random(1)
            self.everybody = agentpy.AgentList(self, users, User)

        def step(self):
            for user in self.numbers.choices(list(self.everybody), k=per_step):
                user.act()

    market = Market({"steps": steps})
    market.sim_setup()
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        market.sim_step()
    return time.perf_counter() - start, time.process_time() - cpu


if __name__ == "__main__":
    run = {"mesa": mesa_seconds, "agentpy": agentpy_seconds}[sys.argv[1]]
    print(*run(*map(int, sys.argv[2:5])))
