"""Ratios of speed on the minimal market of `bare.py`: bare kernel, this package, and its peers.

    python benchmarks/speed.py [--peers PYTHON] [--runs 5]

All run in turn, so that they meet the same machine; medians of the runs by the clock, and of CPU;
start-up and compilation are left out. Both sides keep a log in memory with the columns of `LOGGED`.
This package may use every core, as do those of its peers that can (mesa-frames); a line tells what
it does on one thread. PYTHON belongs to an environment of its own with mesa, agentpy, mesa-frames
and marketplace-eval; what it lacks is left out.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import bare

from marketeval.core.log import EventLog
from marketeval.core.threads import limited
from marketeval.experiments.assembly import assemble
from marketeval.experiments.engines import play_all, playable
from marketeval.experiments.scenario import check

HERE = Path(__file__).parent / "peers"
LOGGED = ("seed", "step", "user", "question", "agent", "score", "explored")
KEPT = ("question",)  # the others are in our log as it is; questions are drawn when wanted
OURS = "marketeval"
Spent = tuple[float, float]  # seconds by the clock, and of CPU
SIZES = ((1_000, 1_000, 8_000), (100_000, 100_000, 80))


def market(users: int, per_step: int, steps: int) -> Any:
    """The market of `bare.py`, for the compiled engine."""
    seats = {f"agent-{n}": f"bernoulli:{rate}" for n, rate in enumerate(bare.RATES)}
    sizes = {"population": users, "per_step": per_step}
    spec = {"horizon": steps, "users": sizes, "questions": 500}
    tree = {"name": "minimal", "family": "information", "seats": seats, "market": spec}
    return playable(assemble(check(tree)), "compiled")[0]


def ours(
    users: int, per_step: int, steps: int, *, log: Sequence[str] = KEPT, threads: int = 0
) -> Callable[[], Spent]:
    """A run on so many threads (0 = all cores), with some columns of its log as arrays."""
    played = market(users, per_step, steps)

    def run() -> Spent:
        kept = EventLog(played.events, hashed=False)
        with limited(threads):
            start, cpu = time.perf_counter(), time.process_time()
            play_all(played, {}, [1], kept)
            rows = list(kept.batches("interaction", log)) if log else []
            spent = time.perf_counter() - start, time.process_time() - cpu
        assert not log or sum(one["question"].size for one in rows) == per_step * steps
        return spent

    return run


def bare_kernel(users: int, per_step: int, steps: int) -> Spent:
    start = time.perf_counter()
    cpu = bare.seconds(users, per_step, steps)
    return time.perf_counter() - start, cpu


def peer(python: str, script: str, *words: object) -> Callable[[], Spent]:
    """A run in another environment, which prints its seconds by the clock and of CPU."""

    def run() -> Spent:
        command = [python, str(HERE / script), *map(str, words)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        wall, cpu = done.stdout.split()[-2:]
        return float(wall), float(cpu)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()

    for users, per_step, steps in SIZES:
        size = (users, per_step, steps)
        rows: dict[str, tuple[int, Callable[[], Spent]]] = {
            "bare kernel, no log": (steps, partial(bare_kernel, *size)),
            "marketeval, no log, one thread": (steps, ours(*size, log=(), threads=1)),
            "marketeval, no log": (steps, ours(*size, log=())),
            "marketeval, one thread": (steps, ours(*size, threads=1)),
            "marketeval, log read as arrays": (steps, ours(*size, log=LOGGED)),
            OURS: (steps, ours(*size)),
        }
        if given.peers:
            few = max(1, 20_000 // per_step)
            for name in ("mesa", "agentpy"):
                rows[name] = few, peer(given.peers, "objects.py", name, users, per_step, few)
            rows["mesa-frames"] = 10, peer(given.peers, "frames.py", users, 10)
            two = max(1, 2_000 // per_step)
            rows["marketplace-eval"] = two, peer(given.peers, "reference.py", users, per_step, two)
        rates: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
        for place in range(given.runs + 1):  # the first compiles and is not counted
            for name, (done, run) in rows.items():
                try:
                    spent = run()
                except subprocess.CalledProcessError as error:
                    print(f"{name} left out: {error.stderr.strip().splitlines()[-1]}")
                    rates.pop(name, None)
                    continue
                if place:
                    wall, cpu = (done * per_step / one / 1e6 for one in spent)
                    rates[name].append((wall, cpu))
            rows = {name: row for name, row in rows.items() if name in rates}
        print(f"{users} users, {per_step} interactions a step; million a second")
        print(f"  {'':32}{'clock':>10}{'CPU':>10}  {OURS} over it, by the clock")
        for name, values in rates.items():
            ratios = [a[0] / b[0] for a, b in zip(rates[OURS], values, strict=True)]
            wall, cpu = (median(column) for column in zip(*values, strict=True))
            print(f"  {name:32}{wall:10.3f}{cpu:10.3f}{median(ratios):10.2f}", flush=True)


if __name__ == "__main__":
    main()
