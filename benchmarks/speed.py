"""Ratios of speed on the minimal market of `bare.py`: bare kernel, this package, and its peers.

    python benchmarks/speed.py [--peers PYTHON] [--runs 5]

All run in turn, so that they meet the same machine; CPU seconds, medians of the runs; start-up and
compilation are left out. Both sides keep their log in memory. PYTHON belongs to an environment of
its own with mesa, agentpy, mesa-frames and marketplace-eval; what it lacks is left out.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bare

from marketeval.core.log import EventLog
from marketeval.core.threads import limited
from marketeval.experiments.assembly import assemble
from marketeval.experiments.engines import play_all, playable
from marketeval.experiments.scenario import check

HERE = Path(__file__).parent / "peers"
SIZES = ((1_000, 1_000, 500), (100_000, 100_000, 10))


def market(users: int, per_step: int, steps: int) -> Any:
    """The market of `bare.py`, for the compiled engine."""
    seats = {f"agent-{n}": f"bernoulli:{rate}" for n, rate in enumerate(bare.RATES)}
    sizes = {"population": users, "per_step": per_step}
    spec = {"horizon": steps, "users": sizes, "questions": 500}
    tree = {"name": "minimal", "family": "information", "seats": seats, "market": spec}
    return playable(assemble(check(tree)), "compiled")[0]


def ours(users: int, per_step: int, steps: int, *, log: bool = True) -> Callable[[], float]:
    """A run on one thread; its CPU seconds."""
    played = market(users, per_step, steps)

    def run() -> float:
        kept = EventLog(played.events, hashed=False)
        with limited(1):
            start = time.process_time()
            play_all(played, {}, [1], kept)
            if log:
                for part in kept._parts["interaction"]:
                    part.arrays([column.name for column in part.columns])
            return time.process_time() - start

    return run


def peer(python: str, script: str, *words: object) -> Callable[[], float]:
    """A run in another environment, which prints its CPU seconds."""

    def run() -> float:
        command = [python, str(HERE / script), *map(str, words)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return float(done.stdout.split()[-1])

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()

    for users, per_step, steps in SIZES:
        rows: dict[str, tuple[int, Callable[[], float]]] = {
            "bare kernel": (steps, lambda u=users, p=per_step, s=steps: bare.seconds(u, p, s)),
            "marketeval, no log": (steps, ours(users, per_step, steps, log=False)),
            "marketeval, log": (steps, ours(users, per_step, steps)),
        }
        if given.peers:
            few = max(1, 20_000 // per_step)
            for name in ("mesa", "agentpy"):
                rows[name] = few, peer(given.peers, "objects.py", name, users, per_step, few)
            rows["mesa-frames"] = 10, peer(given.peers, "frames.py", users, 10)
            if users <= 1_000:
                words = (users, per_step, 2)
                rows["marketplace-eval"] = 2, peer(given.peers, "reference.py", *words)
        rates: dict[str, list[float]] = {name: [] for name in rows}
        for place in range(given.runs + 1):  # the first compiles and is not counted
            for name, (done, run) in rows.items():
                try:
                    seconds = run()
                except subprocess.CalledProcessError as error:
                    print(f"{name} left out: {error.stderr.strip().splitlines()[-1]}")
                    rates.pop(name, None)
                    continue
                if place:
                    rates[name].append(done * per_step / seconds)
            rows = {name: row for name, row in rows.items() if name in rates}
        print(f"{users} users, {per_step} interactions a step")
        for name, values in rates.items():
            ratios = [a / b for a, b in zip(rates["marketeval, log"], values, strict=True)]
            print(
                f"  {name:20}{statistics.median(values) / 1e6:10.3f} million a CPU second"
                f"{statistics.median(ratios):10.2f} = marketeval with log over it"
            )


if __name__ == "__main__":
    main()
