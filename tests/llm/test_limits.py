"""Limits and budgets, on a clock that only moves when told to."""

from __future__ import annotations

import asyncio
import time

import pytest

from marketeval.llm.client import Completion, StopError, TransientError
from marketeval.llm.cost import Price, Prices
from marketeval.llm.limits import Budget, Limiter, Limits, Row
from marketeval.llm.openai_compatible import endpoint_model, provider_model


async def nothing():
    return Completion(text="x", input_tokens=10, output_tokens=2)


def test_no_more_run_at_once_than_the_limit():
    running, most = 0, 0

    async def one():
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return Completion(text="x")

    async def all_of_them():
        limiter = Limiter(Limits(concurrency=7))
        await asyncio.gather(*(limiter.attempts(one) for _ in range(200)))
        assert limiter.running == limiter.waiting == 0

    asyncio.run(all_of_them())
    assert most == 7


def starts(limits, calls, tokens=0.0):
    """When each of some calls may start, in seconds, if nothing but the limits holds them."""
    limiter, now, seen = Limiter(limits, clock=lambda: now), 0.0, []
    for _ in range(calls):
        now += limiter._delay(now, tokens)
        limiter._done(limiter._take(now, tokens), tokens)
        seen.append(now)
    return seen


def test_requests_of_any_minute_stay_within_their_limit():
    assert starts(Limits(requests_per_minute=3), 7) == [0, 0, 0, 60, 60, 60, 120]


def test_tokens_of_any_minute_stay_within_their_limit_and_one_large_call_still_goes():
    assert starts(Limits(tokens_per_minute=100), 5, tokens=40) == [0, 0, 60, 60, 120]
    assert starts(Limits(tokens_per_minute=100), 3, tokens=400) == [0, 60, 120]


def test_retry_after_holds_every_call_to_the_endpoint():
    times = []

    async def refused_once():
        times.append(time.monotonic())
        if len(times) == 1:
            raise TransientError("HTTP 429", retry_after_s=0.2)
        return Completion(text="x")

    async def two():
        limiter = Limiter(Limits(concurrency=1, backoff_s=0.001))
        return await asyncio.gather(*(limiter.attempts(refused_once) for _ in range(2)))

    first, second = asyncio.run(two())
    assert (first.attempts, second.attempts) == (2, 1)
    assert first.failures == ("HTTP 429",)
    assert min(times[1:]) - times[0] >= 0.2


def test_a_wait_longer_than_the_longest_is_a_failure():
    async def refused():
        raise TransientError("HTTP 429", retry_after_s=3600)

    tried = asyncio.run(Limiter(Limits(longest_wait_s=60)).attempts(refused))
    assert (tried.attempts, tried.completion) == (1, None)


def test_waits_double_up_to_the_longest_with_full_jitter():
    limiter = Limiter(Limits(backoff_s=1.0, longest_wait_s=8.0, attempts=9))
    limiter._jitter.random = lambda: 1.0
    waits = [limiter._wait(TransientError("x"), failed) for failed in range(1, 10)]
    assert waits == [1, 2, 4, 8, 8, 8, 8, 8, None]


def test_ten_thousand_can_wait_and_a_stop_tells_them_all():
    async def wait():
        limiter, open_call = Limiter(Limits(concurrency=1)), asyncio.Event()

        async def slow():
            await open_call.wait()
            return Completion(text="x")

        tasks = [asyncio.create_task(limiter.attempts(slow)) for _ in range(10_000)]
        await asyncio.sleep(0)
        assert limiter.waiting == 9_999
        limiter.stop(StopError("enough"))
        open_call.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    done = asyncio.run(wait())
    assert done[0].completion == Completion(text="x")
    assert {str(one) for one in done[1:]} == {"enough"}


def test_a_budget_waits_for_open_reservations_and_stops_where_none_would_help():
    async def spend():
        budget = Budget(max_cost=1.0)
        await budget.reserve(0.6)
        second = asyncio.create_task(budget.reserve(0.6))
        await asyncio.sleep(0)
        assert not second.done()
        budget.settle(0.6, 0.1)
        await second
        budget.settle(0.6, 0.6)
        with pytest.raises(StopError, match=r"stopped at \$0.7000.*\$0.6000.*--max-cost is \$1"):
            await budget.reserve(0.6)
        await budget.reserve(0.3)

    asyncio.run(spend())


def test_prices_come_from_the_usage_and_an_unknown_model_is_unpriced():
    done = Completion(text="x", input_tokens=1_000_000, output_tokens=100_000)
    prices = Prices({"mine": Price(0.5, 2.0)})
    assert Prices().cost(provider_model("openai", "gpt-4o"), done) == 2.5 + 1.0  # list price
    assert Prices().cost(provider_model("openai", "gpt-nonsense"), done) is None
    assert Prices().cost(endpoint_model("http://h/v1#gpt-4o"), done) is None
    assert prices.cost(endpoint_model("http://h/v1#mine"), done) == 0.5 + 0.2
    assert prices.cost(endpoint_model("http://h/v1#mine"), Completion(text="x")) is None


def test_an_answer_asked_for_before_the_failures_does_not_end_their_row():
    row = Row()
    row.succeeded(3)
    assert row.failed(5, "a") == ("a",)
    row.succeeded(4)  # overtaken by the failure
    assert row.failed(6, "b") == ("a", "b")
    row.succeeded(7)
    assert row.failed(2, "c") == ()  # it started before the last success
    assert row.failed(8, "d") == ("d",)
