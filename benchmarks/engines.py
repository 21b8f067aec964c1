"""How much faster the compiled engine is than the general one, on the same work in one run.

Each pair plays the same seeds of the same market in turn; the ratio is that of the CPU times of a
pair, and the median over the pairs is printed. The logs are compared, so the work is the same.
"""

from __future__ import annotations

import statistics
import time

from marketeval.core.drive import lockstep
from marketeval.core.log import EventLog
from marketeval.experiments.assembly import assemble
from marketeval.experiments.engines import playable
from marketeval.experiments.scenario import check, read_tree, with_overrides

CASES = {
    "late-entry-qwen3, as in the paper": ("late-entry-qwen3", {}, range(40)),
    "1,000 users, 1,000 a step": (
        "late-entry-qwen3",
        {"market.users.population": 1000, "market.users.per_step": 1000},
        range(2),
    ),
    "four segments, 10,000 users, 2,000 a step": ("segments-large", {}, range(1)),
}
PAIRS = 5


def main() -> None:
    print(f"{'market':45}{'general s':>12}{'compiled s':>12}{'ratio':>8}")
    for label, (name, changes, seeds) in CASES.items():
        experiment = assemble(check(with_overrides({**read_tree(name), "controls": {}}, changes)))
        times: dict[str, list[float]] = {"general": [], "compiled": []}
        digests = {}
        for place in range(PAIRS + 1):  # the first pair compiles and is not counted
            for engine in ("general", "compiled"):
                market, seats = playable(experiment, engine)
                log = EventLog(market.events)
                start = time.process_time()
                for seed in seeds:
                    lockstep(market, seats, seed=seed, log=log)
                if place:
                    times[engine].append(time.process_time() - start)
                digests[engine] = log.digest()
        assert digests["general"] == digests["compiled"]
        general, compiled = times["general"], times["compiled"]
        ratio = statistics.median(a / b for a, b in zip(general, compiled, strict=True))
        middle = statistics.median(general), statistics.median(compiled)
        print(f"{label:45}{middle[0]:12.3f}{middle[1]:12.3f}{ratio:8.1f}")


if __name__ == "__main__":
    main()
