"""What cassette, limits and bookkeeping cost, against the bare SDK on the same loopback server.

Each figure is a ratio within one run, so that the machine cancels out:

    calls per second against the bare SDK at 1, 16 and 64 concurrent calls   expected >= 0.8
    the ideal rate with answers that take 200 ms, at 64 and 256 concurrent   expected >= 0.8
      (the best of several rounds: whatever else the machine does can only lower it)
    memory with 10,000 seats waiting behind a limit of 64                    expected < 500 MB

    python benchmarks/llm_overhead.py [--quick]
"""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from marketeval.llm.calls import Calls, all_of
from marketeval.llm.cassette import Cassette
from marketeval.llm.client import Message, Parameters
from marketeval.llm.limits import Limits
from marketeval.llm.openai_compatible import endpoint_model
from marketeval.testing.fake_endpoint import FakeEndpoint

PROMPT = "Who wrote the play that opened on this day, and where was it first staged? " * 4


def serve(delay: float, port: Connection) -> None:
    """A fake endpoint in a process of its own."""
    fake = FakeEndpoint(delay=delay, keep=False)
    asyncio.run(fake.serve(lambda: port.send(fake.port)))


class Server:
    """Starts and stops it."""

    def __init__(self, delay: float = 0.0) -> None:
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        self._process = multiprocessing.get_context("spawn").Process(
            target=serve, args=(delay, theirs), daemon=True
        )
        self._process.start()
        self.url = f"http://127.0.0.1:{ours.recv()}/v1"

    def __enter__(self) -> str:
        return self.url

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()


async def in_workers(count: int, workers: int, one: object) -> float:
    """Seconds for `count` calls by so many workers, each one call at a time."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await one(number)  # type: ignore[operator]  # a coroutine function

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(workers)))
    return time.perf_counter() - began


async def bare(url: str, count: int, workers: int) -> float:
    """The SDK alone, on the same transport."""
    from openai import AsyncOpenAI, DefaultAioHttpClient

    client = AsyncOpenAI(
        base_url=url, api_key="none", max_retries=0, http_client=DefaultAioHttpClient()
    )

    async def one(number: int) -> None:
        await client.chat.completions.create(
            model="fake",
            messages=[{"role": "user", "content": f"{PROMPT}{number}"}],
            max_tokens=16,
        )

    await in_workers(workers, workers, one)
    seconds = await in_workers(count, workers, one)
    await client.close()
    return seconds


async def ours(url: str, count: int, workers: int, folder: Path) -> float:
    """The same calls through cassette and limits."""
    model = endpoint_model(f"{url}#fake")
    parameters = Parameters(max_tokens=16)
    limits = Limits(concurrency=workers)
    async with Calls(Cassette(folder / "calls.sqlite"), default_limits=limits) as calls:

        async def warm(number: int) -> None:
            await calls.complete(model, [Message("user", f"warm {number}")], seat="a")

        async def one(number: int) -> None:
            await calls.complete(
                model, [Message("user", f"{PROMPT}{number}")], seat="a", parameters=parameters
            )

        await in_workers(workers, workers, warm)
        return await in_workers(count, workers, one)


async def waiting(url: str, seats: int, folder: Path) -> float:
    """Peak memory in MB of so many seats that wait behind a limit of 64."""
    model = endpoint_model(f"{url}#fake")
    limits = Limits(concurrency=64)
    async with Calls(Cassette(folder / "calls.sqlite"), default_limits=limits) as calls:
        await all_of(
            calls.complete(model, [Message("user", f"{PROMPT}{seat}")], seat=f"seat {seat}")
            for seat in range(seats)
        )
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(what: str, value: float, bound: str, fine: bool) -> bool:
    print(f"{what:<58} {value:8.2f}   expected {bound}   {'ok' if fine else 'MISSED'}", flush=True)
    return fine


def main() -> int:
    quick = "--quick" in sys.argv
    rounds, fine = (1 if quick else 5), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Server() as url:
            for workers in (1, 16, 64):
                count, ratios, rate = (200 if quick else 600), [], 0.0
                for turn in range(rounds):
                    place = folder / f"{workers}-{turn}"
                    alone = asyncio.run(bare(url, count, workers))
                    with_us = asyncio.run(ours(url, count, workers, place))
                    ratios.append(alone / with_us)
                    rate = count / with_us
                what = f"of the bare SDK's rate, {workers} at once ({rate:.0f}/s)"
                value = statistics.median(ratios)
                fine.append(report(what, value, ">= 0.8", value >= 0.8))
        with Server(0.2) as url:
            for workers in (64, 256):
                count, best = workers * (10 if quick else 30), 0.0  # start and end count little
                for turn in range(rounds):
                    place = folder / f"slow-{workers}-{turn}"
                    rate = count / asyncio.run(ours(url, count, workers, place))
                    best = max(best, rate)
                value = best / (workers / 0.2)
                what = f"of the ideal rate, answers of 200 ms, {workers} at once"
                fine.append(report(what, value, ">= 0.8", value >= 0.8))
        with Server() as url:
            seats = 2_000 if quick else 10_000
            value = asyncio.run(waiting(url, seats, folder / "waiting"))
            what = f"MB with {seats} seats behind a limit of 64"
            fine.append(report(what, value, "< 500", value < 500))
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
