"""Seconds of whole two-sided markets, and the search rules' queries per second, in one process.

    python benchmarks/two_sided.py [CUSTOMERS...]       the default is 100 1000; 10000 takes minutes

Each market has three businesses per customer, careful buyers, honest menus and lexical search: it
is generated, indexed, played and analysed. Beside the seconds of the play stand those that its
processor spent, the figure to trust on a busy machine; the last column is the latter over that of a
loop of ten million additions in plain Python, which travels better than seconds do. The reference
platform needs 49 to 165 s for its 100/300 run of the same rule.
"""

from __future__ import annotations

import resource
import sys
import time

from marketeval.agents.registry import make_agent
from marketeval.core.drive import lockstep
from marketeval.core.log import EventLog
from marketeval.markets.two_sided.family import build, cast
from marketeval.markets.two_sided.generator import Generated, generate
from marketeval.markets.two_sided.scenario import TwoSided
from marketeval.mechanisms.search import Catalogue, Listing, Wanted
from marketeval.metrics.analytics import analytics


def loop() -> float:
    """Processor seconds of ten million additions."""
    start = time.process_time()
    total = 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - start


def market(customers: int) -> tuple[float, float, float, float, int]:
    """Seconds to make, to play, of its processor, and to analyse; actions."""
    start = time.perf_counter()
    people = generate(Generated(customers=customers, seed=1))
    made = time.perf_counter() - start
    whole = build(TwoSided(search="lexical"), (), population=people)
    agents = {
        "customers": make_agent("heuristic:careful-buyer", seat="customers"),
        "businesses": make_agent("heuristic:menu-honest", seat="businesses"),
    }
    seats = {place: agents[name] for place, name in cast(whole, agents).items()}
    log = EventLog(whole.events)
    start, spent = time.perf_counter(), time.process_time()
    lockstep(whole, seats, seed=1, log=log)
    played, spent = time.perf_counter() - start, time.process_time() - spent
    start = time.perf_counter()
    found = analytics(log, 1)
    analysed = time.perf_counter() - start
    return made, played, spent, analysed, found["total_actions_executed"]


def searches(businesses: int) -> dict[str, float]:
    """Queries per second of each rule, the first ten results."""
    people = generate(Generated(customers=businesses // 3, seed=1))
    catalogue = Catalogue(
        [
            Listing(one.name, one.description, one.rating, tuple(one.menu_features), frozenset())
            for one in people.businesses
        ]
    )
    wishes = [
        Wanted(query=one.request, items=tuple(one.menu_features)) for one in people.customers[:200]
    ]
    rates = {}
    for rule in ("simple", "filtered", "lexical", "optimal", "bm25", "hybrid"):
        catalogue.search(rule, wishes[0], limit=10, page=1)  # builds the index
        start = time.perf_counter()
        for one in wishes:
            catalogue.search(rule, one, limit=10, page=1)
        rates[rule] = len(wishes) / (time.perf_counter() - start)
    return rates


def main(sizes: list[int]) -> None:
    """Print both tables."""
    market(3)  # compiles
    unit = loop()
    titles = ("made s", "played s", "of it cpu s", "analysed s", "actions", "peak GB", "cpu/loop")
    print(f"{'customers/businesses':>21}", *(f"{title:>12}" for title in titles))
    for size in sizes:
        made, played, spent, analysed, actions = market(size)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"{f'{size}/{3 * size}':>21} {made:12.2f} {played:12.2f} {spent:12.2f} "
            f"{analysed:12.2f} {actions:12,} {peak:12.2f} {spent / unit:12.2f}"
        )
    for businesses in (300, 3000):
        rates = ", ".join(f"{rule} {rate:,.0f}" for rule, rate in searches(businesses).items())
        print(f"\nsearch over {businesses} businesses, queries per second: {rates}")


if __name__ == "__main__":
    main([int(one) for one in sys.argv[1:]] or [100, 1000])
