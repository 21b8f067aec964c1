"""How fast the supply chain plays: many small economies, and one large one.

python benchmarks/retailers.py default 1000      # episodes of the default economy
python benchmarks/retailers.py large 50          # 500 retailers, 200 items, 100,000 shoppers
python benchmarks/retailers.py large 5 profile   # the same with a profile
"""

from __future__ import annotations

import cProfile
import pstats
import resource
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
    print(f"{world}: {amount} in {seconds:.1f} s ({worked:.1f} s of CPU), peak {peak:.0f} MB")
    if profile:
        pstats.Stats(watch).sort_stats("tottime").print_stats(12)


def _play(market, seats, seeds) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(market.events, sink=PartSink(Path(folder), 0))
        for seed in seeds:
            lockstep(market, seats, seed=seed, log=log)
        log.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), profile="profile" in sys.argv[3:])
