"""How fast the supply chain plays: many small economies, and one large one.

python benchmarks/retailers.py                   # both, 100 episodes and 5 steps
python benchmarks/retailers.py default 1000      # episodes of the default economy
python benchmarks/retailers.py large 50          # steps of a large one
python benchmarks/retailers.py large 5 profile   # the same with a profile

The large world has 500 retailers, 200 items and 100,000 shoppers. The last columns are CPU time
in loops, each ten million additions in plain Python on the same machine (about half a second on
an idle core of a server of 2024), which travel better than seconds, and what 1,000 episodes or 50
steps take at this rate. One process; the large world's shoppers are drawn on a thread per core.
A third of its CPU time is `choice.consideration`, 50 million keyed draws per step; then come the
scripts' own arithmetic (`agents.heuristic.base.bundle`), the log's copies (`core.log`) and the
shops (`mechanisms.posted_price`).
"""

from __future__ import annotations

import cProfile
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from marketeval.agents.registry import make_agent
from marketeval.core.drive import lockstep
from marketeval.core.log import EventLog
from marketeval.experiments.run_directory import PartSink
from marketeval.markets.supply_chain.family import build
from marketeval.markets.supply_chain.scenario import SupplyChain

ZOO = ("reserve", "markup", "undercut", "marginal-value", "pacing", "newsvendor", "slogan-matcher")
WORLDS = {
    "default": ({}, 20),
    "large": ({"items": 200, "demand": {"buyers": 100_000, "ratio": 5.0}}, 500),
}


def main(world: str, amount: int, *, profile: bool) -> None:
    """Play, and print seconds and memory."""
    changes, retailers = WORLDS[world]
    spec = SupplyChain.model_validate(
        {**changes, "horizon": amount} if world == "large" else changes
    )
    names = [f"r{place:03d}" for place in range(retailers)]
    seats = {
        name: make_agent(f"heuristic:{ZOO[place % len(ZOO)]}", seat=name)
        for place, name in enumerate(names)
    }
    seats["embedder"] = make_agent("embedder:lexical", seat="embedder")
    market = build(spec, [(name, name) for name in names])
    _play(build(spec.model_copy(update={"horizon": 1}), market.retailers), seats, [0])  # compile
    start, cpu, watch = time.perf_counter(), time.process_time(), cProfile.Profile()
    if profile:
        watch.enable()
    _play(market, seats, range(1, 2 if world == "large" else amount + 1))
    watch.disable()
    seconds, worked = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    loops, whole = worked / loop(), {"default": 1000, "large": 50}[world]
    print(
        f"{world}: {amount} in {seconds:.1f} s ({worked:.1f} s of CPU), peak {peak:.0f} MB; "
        f"{loops:.1f} loops, {loops / amount * whole:.0f} for {whole:,}"
    )
    if profile:
        pstats.Stats(watch).sort_stats("tottime").print_stats(12)


def loop() -> float:
    """Seconds of CPU of ten million additions."""
    start, total = time.process_time(), 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - start


def _play(market, seats, seeds) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(market.events, sink=PartSink(Path(folder), 0))
        for seed in seeds:
            lockstep(market, seats, seed=seed, log=log)
        log.close()


if __name__ == "__main__":
    if len(sys.argv) == 1:  # each in a process of its own, for its own peak of memory
        for order in (["default", "100"], ["large", "5"]):
            subprocess.run([sys.executable, __file__, *order], check=True)
        sys.exit()
    main(sys.argv[1], int(sys.argv[2]), profile="profile" in sys.argv[3:])
