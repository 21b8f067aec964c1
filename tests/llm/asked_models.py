"""A small market of model seats, played over a cassette; also a program, to be killed and resumed.

python asked_models.py CASSETTE URL [SEEDS]    prints the digest of each seed's log
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import numpy as np

from marketeval.agents.kept import keeping
from marketeval.agents.registry import make_agent
from marketeval.core.drive import lockstep_async
from marketeval.core.log import EventLog
from marketeval.llm.calls import Calls, all_of
from marketeval.llm.cassette import Cassette
from marketeval.llm.limits import Budget, Limits
from marketeval.markets.information.facts import Generator, Questions
from marketeval.markets.information.market import InformationMarket
from marketeval.markets.information.scenario import Information

QUICK = Limits(concurrency=8, attempts=4, backoff_s=0.005, longest_wait_s=2.0)
SEATS = ("anna", "bert", "cleo")
POOL = 40


def a_market(horizon: int = 10) -> InformationMarket:
    """Three generators that answer in words; the accepted answer to question i is the digit i%10,
    which a reply in hexadecimal holds often enough."""
    return InformationMarket(
        spec=Information(horizon=horizon, users={"population": 5, "per_step": 8}),
        generators=[Generator(seat=seat, label=seat) for seat in SEATS],
        questions=Questions(
            items=[f"q{number}" for number in range(POOL)],
            topics=np.zeros(POOL, np.int64),
            texts=[f"What is the digit of {number}?" for number in range(POOL)],
            golds=[(f"{number % 10}",) for number in range(POOL)],
        ),
    )


def is_lucky(answer: str, golds: object) -> float:
    """Right if the first digit of the answer is even: half of the replies are."""
    return float(int(answer[0], 16) % 2 == 0)


class Lucky:
    """A judge by that rule."""

    immediate = deterministic = True
    privileged = False

    async def act(self, request):
        from marketeval.actions.information import Grades

        return Grades(score=np.array([is_lucky(text, ()) for text in request.batch["text"]]))


async def play(
    calls: Calls,
    url: str,
    *,
    seeds: range = range(1, 3),
    judge: object = None,
    options: dict | None = None,
    horizon: int = 10,
    logs: list | None = None,
) -> list[str]:
    """Play all seeds at once in one event loop; their digests."""
    market = a_market(horizon)
    agents = {
        seat: make_agent(
            f"{url}#fake",
            seat=seat,
            options={"system": f"You are {seat}.", "max_tokens": 16, **(options or {})},
            calls=calls,
        )
        for seat in SEATS
    }
    seats = keeping({**agents, "judge": judge or Lucky()}, calls.cassette)

    async def one(seed: int) -> str:
        log = EventLog(market.events)
        if logs is not None:
            logs.append(log)
        return await lockstep_async(market, seats, seed=seed, log=log)

    return await all_of([one(seed) for seed in seeds])


async def run(
    path: Path | None,
    url: str,
    *,
    mode: str = "record",
    limits: Limits = QUICK,
    budget: Budget | None = None,
    retry_missing: bool = False,
    **how: object,
) -> list[str]:
    """Play over a cassette."""
    cassette = Cassette(path, mode=mode, scenario="digits", name="digits")
    calls = Calls(
        cassette=cassette,
        default_limits=limits,
        budget=budget or Budget(),
        retry_missing=retry_missing,
    )
    async with calls:
        return await play(calls, url, **how)


if __name__ == "__main__":
    _, where, address, *rest = sys.argv
    count = int(rest[0]) if rest else 2
    print(*asyncio.run(run(Path(where), address, seeds=range(1, count + 1))))
