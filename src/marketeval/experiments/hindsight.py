"""What a retailer could have earned: the best response in hindsight, from a menu of strategies.

Every other seat does again what the log says it did: its bids, prices and slogans, step by step.
The seat in question plays each strategy of a menu instead, with the slogans it used: it bids a
multiple of the base price for a bundle that its funds (or a part of them) buy, and sells at a
multiple of the base price. The best of the menu and of what it really did is the benchmark; it is a
lower bound of the true best response, which a larger menu raises. Where shoppers accept any price
there is no best response, and the value is null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import polars as pl

from marketeval.actions.supply_chain import Bid, Briefing, Offer
from marketeval.agents.heuristic.base import Integers, bundle, listed
from marketeval.core.drive import lockstep
from marketeval.core.errors import UsageError
from marketeval.core.log import EventLog, LogReader
from marketeval.core.market import Agent, Market, Request
from marketeval.experiments.assembly import assemble
from marketeval.experiments.run_directory import RunDirectory
from marketeval.metrics.base import TIDY, evaluate
from marketeval.metrics.profit import Profit

BIDS = (1.0, 1.02, 1.1, 1.25)  # times the base price, rounded up
PARTS = (0.5, 1.0)  # of the funds
PRICES = (1.25, 1.5, 2.0, 3.0)  # times the base price, cut to what shoppers accept
UNBOUNDED = "shoppers accept any price, so no best response exists"


@dataclass(frozen=True, slots=True)
class Strategy:
    """Bids `bid` times base with a `part` of the funds; sells at `price` times base."""

    bid: float
    part: float
    price: float


MENU = tuple(Strategy(*one) for one in product(BIDS, PARTS, PRICES))


@dataclass(frozen=True)
class Again:
    """A seat that does what the log says it did; with a strategy, only its slogans are kept."""

    items: Sequence[str]
    bids: Mapping[tuple[int, int], tuple[Integers, Integers]]
    prices: Mapping[int, Integers]
    slogans: Mapping[int, str]
    strategy: Strategy | None = None
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = field(default=False)

    async def act(self, request: Request) -> Bid | Offer:
        """The recorded answer, or the strategy's."""
        briefing: Briefing = request.briefing
        nothing = np.zeros(len(self.items), np.int64)
        if request.decision == "bid":
            if self.strategy is not None:
                price = np.ceil(briefing.base_price * self.strategy.bid - 1e-9)
                return bundle(briefing, price, briefing.funds * self.strategy.part)
            quantity, unit = self.bids.get((request.step, briefing.round), (nothing, nothing))
            return Bid(quantity=quantity, price=unit)
        slogan = self.slogans.get(request.step, "")
        if self.strategy is not None:
            wanted = briefing.base_price * self.strategy.price
            return Offer(price=listed(briefing, wanted), slogan=slogan)
        return Offer(price=self.prices.get(request.step, nothing), slogan=slogan)


def best_responses(
    run: RunDirectory,
    *,
    seeds: Sequence[int] | None = None,
    menu: Sequence[Strategy] = MENU,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> pl.DataFrame:
    """Tidy rows per seed and seat: BestResponse (money) and ShareOfPossible (Profit over it).

    The share is null where even the best response earns nothing.
    """
    if run.manifest.family != "supply_chain":
        raise UsageError(
            f"best responses are of supply-chain runs; {run.path} is of another family"
        )
    experiment = assemble(run.scenario)
    wanted = run.seeds() if seeds is None else list(seeds)
    actual = {
        (seed, seat): value
        for seed, seat, value in evaluate(run, [Profit()])
        .select("seed", "subject", "value")
        .iter_rows()
    }
    names = [name for name in run.scenario.seats if (wanted[0], name) in actual]
    bounded = run.scenario.market.max_markup is not None
    rows: list[tuple[int, str, str, None, str, float | None, str | None]] = []
    total, done = len(wanted) * len(names), 0
    for seed in wanted:
        recorded = dict(_recorded(run, seed))
        for name in names:
            best = (
                _best(experiment.market, {**experiment.seats, **recorded}, seed, name, menu)
                if bounded
                else None
            )
            if best is not None:
                best = max(best, actual[seed, name])
            rows += _told(seed, name, actual[seed, name], best)
            done += 1
            progress(done, total)
    return pl.DataFrame(rows, schema=TIDY, orient="row")


def best_response(
    market: Market,
    services: Mapping[str, Agent],
    log: LogReader,
    *,
    seed: int,
    seat: str,
    menu: Sequence[Strategy] = MENU,
) -> float:
    """The most that a seat could have earned in an episode of a log, by the menu or as it played.

    `services` are the seats that do not compete.
    """
    others = {**services, **dict(_recorded(log, seed))}
    return max(_profit(log, seat, seed), _best(market, others, seed, seat, menu))


def _best(
    market: Market, seats: Mapping[str, Agent], seed: int, name: str, menu: Sequence[Strategy]
) -> float:
    """The best of the menu for a seat, where all do again what they did; -inf of an empty menu."""
    mine = seats[name]
    assert isinstance(mine, Again)  # every seat that competes has been recorded
    profits = []
    for strategy in menu:
        log = EventLog(market.events)
        playing = {**seats, name: Again(mine.items, {}, {}, mine.slogans, strategy)}
        lockstep(market, playing, seed=seed, log=log)
        profits.append(_profit(log, name, seed))
    return max(profits, default=-math.inf)


def _told(
    seed: int, seat: str, actual: float, best: float | None
) -> Iterator[tuple[int, str, str, None, str, float | None, str | None]]:
    note = UNBOUNDED if best is None else None
    yield seed, "BestResponse", "all", None, seat, best, note
    share = actual / best if best is not None and best > 0 else None
    if best is not None and share is None:
        note = "even the best response of the menu earns nothing"
    yield seed, "ShareOfPossible", "all", None, seat, share, note


def _profit(log: LogReader, seat: str, seed: int) -> float:
    mine = (pl.col("subject") == seat) & (pl.col("seed") == seed)
    rows = evaluate(log, [Profit()]).filter(mine)
    return float(rows["value"][0])


def _recorded(log: LogReader, seed: int) -> Iterator[tuple[str, Again]]:
    """What every seat did in an episode."""
    items = log.scan("item").unique("item", keep="first").sort("item").collect()["name"].to_list()
    seats = log.scan("retailer").unique("agent", keep="first").sort("agent").collect()["seat"]
    own = pl.col("seed") == seed
    lines, prices, slogans = (
        log.scan(kind).filter(own).collect() for kind in ("bid_line", "listing", "slogan")
    )
    for agent, seat in enumerate(seats):
        mine = pl.col("agent") == agent
        bids: dict[tuple[int, int], tuple[Integers, Integers]] = {}
        for (step, round_), part in lines.filter(mine).group_by("step", "round"):
            quantity, unit = np.zeros(len(items), np.int64), np.zeros(len(items), np.int64)
            place = part["item"].to_numpy()
            quantity[place], unit[place] = part["quantity"].to_numpy(), part["price"].to_numpy()
            bids[int(str(step)), int(str(round_))] = (quantity, unit)
        listings: dict[int, Integers] = {}
        for (step,), part in prices.filter(mine).group_by("step"):
            listing = np.zeros(len(items), np.int64)
            listing[part["item"].to_numpy()] = part["price"].to_numpy()
            listings[int(str(step))] = listing
        words = dict(slogans.filter(mine).select("step", "text").iter_rows())
        yield seat, Again(items, bids, listings, words)
