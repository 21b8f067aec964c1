"""How much faster a sweep of 200 cells is with two processes of one kernel thread than with one.

    python benchmarks/executors.py [--cells 200] [--seeds 50] [--runs 3]

The executors take turns in each round, so that they meet the same machine: this process on one
thread, one worker process, two of them, and Ray with two workers where it is installed. Wall
seconds of whole sweeps, the start of worker processes included; Ray is started before. Beside
them stands the share of the work that nobody can divide: CPU seconds of this process.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from pathlib import Path

from marketeval.core.threads import limited
from marketeval.experiments.executors import EXECUTORS, Executor, Processes, Serial
from marketeval.experiments.scenario import read_tree
from marketeval.experiments.sweep import sweep

POPULATIONS = (10, 20, 50, 100)


def seconds(executor: Executor, cells: int, seeds: int) -> tuple[float, float]:
    """Wall seconds of a sweep into a folder of its own, and CPU seconds of this process."""
    grid = {
        "market.choice.epsilon": [round(0.01 + 0.01 * n, 2) for n in range(cells // 4)],
        "market.users.population": POPULATIONS,
    }
    tree = read_tree("late-entry-qwen3")
    with tempfile.TemporaryDirectory() as folder, limited(1):
        start, cpu = time.perf_counter(), time.process_time()
        sweep(tree, grid, Path(folder) / "sweep", seeds=range(1, seeds + 1), executor=executor)
        return time.perf_counter() - start, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    who: dict[str, Executor] = {
        "serial": Serial(),
        "one process": Processes(1, threads=1),
        "two processes": Processes(2, threads=1),
    }
    if importlib.util.find_spec("ray"):
        import ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        who["ray, two workers"] = EXECUTORS["ray"]()
    else:
        print("ray left out: it needs pip install 'marketeval[ray]'")
    for executor in who.values():  # compiles, and starts Ray's workers
        seconds(executor, 8, 2)
    walls: dict[str, list[float]] = {name: [] for name in who}
    cpus: dict[str, list[float]] = {name: [] for name in who}
    for _ in range(given.runs):
        for name, executor in who.items():
            wall, cpu = seconds(executor, given.cells, given.seeds)
            walls[name].append(wall)
            cpus[name].append(cpu)
            print(f"  {name}: {wall:.1f} s", flush=True)
    print(f"{given.cells} cells of {given.seeds} seeds and a control, medians of {given.runs}")
    print(f"{'':20}{'wall s':>10}{'own cpu s':>12}{'one process / it':>20}{'it / two':>12}")
    for name, values in walls.items():
        faster = [a / b for a, b in zip(walls["one process"], values, strict=True)]
        slower = [a / b for a, b in zip(values, walls["two processes"], strict=True)]
        print(
            f"{name:20}{statistics.median(values):10.1f}{statistics.median(cpus[name]):12.1f}"
            f"{statistics.median(faster):20.2f}{statistics.median(slower):12.2f}"
        )


if __name__ == "__main__":
    main()
