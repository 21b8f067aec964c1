"""How time grows with users, agents, steps and seeds: exponents of fits over three decades.

CPU seconds, the least of some runs; the market is that of `bare.py` on the compiled engine, on one
thread, without a log. 1 = linear.
"""

from __future__ import annotations

import time

import numpy as np

import speed
from marketeval.core.log import EventLog
from marketeval.core.threads import limited
from marketeval.experiments.assembly import assemble
from marketeval.experiments.engines import play_all, playable
from marketeval.experiments.scenario import check


def seconds(*, users: int = 100, agents: int = 7, steps: int = 100, seeds: int = 1) -> float:
    """CPU seconds of playing some seeds; every user comes once a step, on average."""
    played = speed.market(users, users, steps) if agents == 7 else many(users, agents, steps)
    log, least = EventLog(played.events, hashed=False), np.inf
    with limited(1):
        play_all(played, {}, [0], log)  # which also tells the log what holds for every seed
        for place in range(3):
            first = 1 + place * seeds
            start = time.process_time()
            play_all(played, {}, range(first, first + seeds), log)
            least = min(least, time.process_time() - start)
    return float(least)


def many(users: int, agents: int, steps: int) -> object:
    """As `speed.market`, with more agents."""
    seats = {f"agent-{n:04}": f"bernoulli:{0.2 + 0.5 * n / agents}" for n in range(agents)}
    sizes = {"population": users, "per_step": users}
    spec = {"horizon": steps, "users": sizes, "questions": 500}
    tree = {"name": "minimal", "family": "information", "seats": seats, "market": spec}
    return playable(assemble(check(tree)), "compiled")[0]


GRIDS = {
    "users": [{"users": n, "steps": 10} for n in (1_000, 10_000, 100_000, 1_000_000)],
    "steps": [{"users": 1000, "steps": n} for n in (10, 100, 1_000, 10_000)],
    "seeds": [{"users": 10, "seeds": n} for n in (10, 100, 1_000, 10_000)],
    "agents": [{"users": 1000, "agents": n} for n in (2, 16, 128, 1_024)],
}


def main() -> None:
    seconds(users=10, steps=2)
    for name, cases in GRIDS.items():
        sizes = [case[name] for case in cases]
        times = [seconds(**case) for case in cases]
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        shown = ", ".join(f"{n}: {t:.3f} s" for n, t in zip(sizes, times, strict=True))
        print(f"{name:8} exponent {slope:.2f}   ({shown})", flush=True)


if __name__ == "__main__":
    main()
