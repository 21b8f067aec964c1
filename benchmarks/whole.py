"""Whole runs through the command line and the public API: what a user waits for.

    python benchmarks/whole.py [--runs 5]

Of each: seconds, interactions a second of wall-clock time and the nanoseconds of CPU that each
costs, and the largest resident memory; medians of the runs, after one that is not counted and
compiles. From the rates of the large markets start-up is taken off (that of the same command on a
market of one interaction); whole processes count as a whole.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import bare

from marketeval.core.log import EventLog
from marketeval.experiments.engines import play_all
from marketeval.experiments.scenario import read_tree
from speed import market

MILLION = 1_000_000
PAPER_METRICS = ("MarketShare", "HHI", "Retention(m=10)")


def scenario(folder: Path, users: int, per_step: int, steps: int) -> str:
    """The minimal market as a scenario file (YAML holds JSON); its path."""
    tree = {
        "name": "minimal",
        "seats": {f"agent-{n}": f"bernoulli:{rate}" for n, rate in enumerate(bare.RATES)},
        "market": {
            "horizon": steps,
            "users": {"population": users, "per_step": per_step},
            "questions": 500,
        },
        "metrics": ["MarketShare", "HHI"],
        "seeds": 1,
    }
    path = folder / f"minimal-{users}-{per_step}-{steps}.yaml"
    path.write_text(json.dumps(tree), "utf-8")
    return str(path)


def paper(folder: Path) -> str:
    """The paper's first late entry and its control, with shares, HHI and retention alone."""
    tree = {**read_tree("late-entry-qwen3"), "metrics": list(PAPER_METRICS), "seeds": "1-10000"}
    path = folder / "late-entry.yaml"
    path.write_text(json.dumps(tree), "utf-8")
    return str(path)


def command(words: Sequence[str], folder: Path) -> tuple[float, float, float]:
    """Wall-clock seconds, CPU seconds and the largest memory in MB of one command."""
    out = folder / "out"
    line = [sys.executable, "-m", "marketeval", *words, "--out", str(out), "--force"]
    # Compiled once, as wherever it is installed: a shell may say that nothing is to be kept.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    child = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=kept)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(line)} failed with {child.returncode}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def played(users: int, per_step: int, steps: int, episodes: int) -> tuple[float, float, float]:
    """As `command`, of episodes played by this process one by one, whose events nobody wants."""
    compiled, log = market(users, per_step, steps), EventLog(market(1, 1, 1).events, hashed=False)
    play_all(compiled, {}, [0], log)
    start, cpu = time.perf_counter(), time.process_time()
    for seed in range(1, episodes + 1):
        play_all(compiled, {}, [seed], log)
    spent = time.perf_counter() - start, time.process_time() - cpu
    return *spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs

    def medians(once: object, *arguments: object) -> list[float]:
        assert callable(once)
        rows = [once(*arguments) for _ in range(runs + 1)][1:]
        return [statistics.median(column) for column in zip(*rows, strict=True)]

    def told(name: str, count: int, spent: Sequence[float], idle: Sequence[float]) -> None:
        wall, cpu = spent[0] - idle[0], spent[1] - idle[1]
        print(
            f"{name:44}{spent[0]:8.3f} s{count / wall / 1e6:9.1f} million/s"
            f"{cpu / count * 1e9:8.0f} ns CPU{spent[2]:7.0f} MB",
            flush=True,
        )

    nothing = (0.0, 0.0, 0.0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        large = scenario(folder, MILLION, MILLION, 10)
        for keep in ("log", "metrics"):
            words = ("--keep", keep, "--no-report")
            idle = medians(command, ("run", scenario(folder, 1, 1, 1), *words), folder)
            spent = medians(command, ("run", large, *words), folder)
            told(f"a million users, 10 steps, --keep {keep}", 10 * MILLION, spent, idle)
        for extra in (("--no-report",), ()):
            words = ("run", scenario(folder, 10, 5, 200), *extra)
            told(
                f"10 users, 5 a step, 200 steps, as a process {''.join(extra)}",
                1000,
                medians(command, words, folder),
                nothing,
            )
        told(
            "late entry and control, 10,000 seeds",
            20 * MILLION,
            medians(command, ("run", paper(folder), "--keep", "metrics", "--no-report"), folder),
            nothing,
        )
        # Now, since the memory of a command counts from that of the process that starts it.
        told(
            "a million users, 10 steps, played, no log",
            10 * MILLION,
            medians(played, MILLION, MILLION, 10, 1),
            nothing,
        )
        told(
            "100,000 users, 20 steps, no log",
            2 * MILLION,
            medians(played, 10**5, 10**5, 20, 1),
            nothing,
        )
        told(
            "10 users, 5 a step, 200 steps, no log, 100 times",
            100_000,
            medians(played, 10, 5, 200, 100),
            nothing,
        )


if __name__ == "__main__":
    main()
