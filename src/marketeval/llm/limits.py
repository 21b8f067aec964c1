"""How much may be asked of an endpoint at once, per minute, again, and in all.

One `Limiter` per endpoint is shared by every seat and episode of the process. It lets calls start
in the order in which they came, within a concurrency and within requests and tokens of any 60
seconds, and tries again what may succeed: after what `Retry-After` asks, else after a random time
up to a doubling bound ("full jitter", Brooker, Exponential backoff and jitter, AWS 2015). A
`Budget` reserves the most that a call can cost before it is made. Waiting is cheap: a seat in the
queue is one future.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from marketeval.llm.client import CallError, Completion, StopError, TransientError

MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one endpoint bears.

    `attempts` counts the first try too; waits double from `backoff_s` up to `longest_wait_s`, and
    an endpoint that asks for a longer wait has failed. After `failures_in_a_row` calls that failed
    for good the run stops.
    """

    concurrency: int = 32
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    attempts: int = 6
    backoff_s: float = 1.0
    longest_wait_s: float = 60.0
    failures_in_a_row: int = 20


@dataclass(slots=True)
class Start:
    """When an attempt started, the tokens it counts with, and how many started before it."""

    at: float
    tokens: float
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The end of a call after all its attempts: a completion or an error."""

    completion: Completion | None
    error: CallError | None
    latency_s: float
    attempts: int
    failures: tuple[str, ...]
    number: int  # of the last attempt, in the order in which they started


class Row:
    """Calls to one endpoint that failed for good, with no success among those started later.

    Answers overtake each other: one that was asked for before an endpoint went away, and comes
    after the first refusals, says nothing of how the endpoint is now.
    """

    def __init__(self) -> None:
        self._failed: dict[str, int] = {}  # the number of its last attempt, by call
        self._well = -1  # the latest start of a success

    def succeeded(self, number: int) -> None:
        """An attempt brought an answer."""
        self._well = max(self._well, number)
        self._failed = {key: at for key, at in self._failed.items() if at > self._well}

    def failed(self, number: int, key: str) -> Sequence[str]:
        """A call failed for good; the calls of the row."""
        if number > self._well:
            self._failed[key] = number
        return tuple(self._failed)


class Limiter:
    """Lets calls to one endpoint start, in order, within its limits."""

    def __init__(self, limits: Limits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.running = 0
        self._clock = clock
        self._waiting: deque[tuple[asyncio.Future[Start], float]] = deque()
        self._sleeping: set[asyncio.Future[None]] = set()
        self._window: deque[Start] = deque()  # starts of the last minute
        self._tokens = 0.0  # of the window
        self._not_before = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._stopped: StopError | None = None
        self._started = 0
        self._jitter = random.Random()

    @property
    def waiting(self) -> int:
        """Calls in the queue."""
        return len(self._waiting)

    async def attempts(
        self,
        once: Callable[[], Awaitable[Completion]],
        *,
        tokens: float = 0.0,
        before: Callable[[], Awaitable[None]] | None = None,
        after: Callable[[Completion | None, bool], None] | None = None,
    ) -> Tried:
        """Make a call, again if need be, until it brings a completion or has failed for good.

        Parameters
        ----------
        tokens : estimate of what one attempt counts with against `tokens_per_minute`
        before : awaited before each attempt (a budget's reservation); may raise `StopError`
        after : told each attempt's completion, or None and whether it may have been billed

        Raises
        ------
        StopError : the run stops; attempts that were under way have been waited for
        """
        failures: list[str] = []
        while True:
            start = await self._admitted(tokens)
            completion, error, used = None, None, tokens
            try:
                if before is not None:
                    await before()
                began = self._clock()
                try:
                    completion = await once()
                except CallError as caught:
                    error = caught
                finally:
                    latency = self._clock() - began
                    if after is not None:
                        after(completion, isinstance(error, TransientError) and error.billed)
                if completion is not None and completion.input_tokens is not None:
                    used = completion.input_tokens + (completion.output_tokens or 0)
            finally:
                self._done(start, used)
            if error is not None:
                failures.append(f"{error.reason}: {error.detail}".rstrip(": "))
                wait = self._wait(error, len(failures))
                if wait is not None:
                    await self._sleep(wait)
                    continue
            return Tried(
                completion=completion,
                error=error,
                latency_s=latency,
                attempts=len(failures) + (error is None),
                failures=tuple(failures),
                number=start.number,
            )

    def stop(self, reason: StopError) -> None:
        """Start nothing more: whoever waits is told, whatever runs goes on."""
        self._stopped = reason
        told: list[asyncio.Future[Any]] = [future for future, _ in self._waiting]
        for future in (*told, *self._sleeping):
            if not future.done() and not future.get_loop().is_closed():
                future.set_exception(reason)
        self._waiting.clear()
        self._sleeping.clear()

    async def _admitted(self, tokens: float) -> Start:
        if self._stopped is not None:
            raise self._stopped
        now = self._clock()
        if not self._waiting and self._delay(now, tokens) == 0.0:
            return self._take(now, tokens)
        future: asyncio.Future[Start] = asyncio.get_running_loop().create_future()
        self._waiting.append((future, tokens))
        self._start_waiting()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._done(future.result(), 0.0)
            raise

    def _start_waiting(self) -> None:
        """Start those at the head of the queue that may, or set an alarm for when they may."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while self._waiting:
            future, tokens = self._waiting[0]
            if future.done() or future.get_loop().is_closed():
                self._waiting.popleft()
                continue
            now = self._clock()
            delay = self._delay(now, tokens)
            if delay > 0.0:
                if delay != float("inf"):
                    loop = future.get_loop()
                    self._alarm = loop.call_later(delay, self._start_waiting)
                return
            self._waiting.popleft()
            future.set_result(self._take(now, tokens))

    def _delay(self, now: float, tokens: float) -> float:
        """Seconds until a call may start; infinite while all slots are taken."""
        limits = self.limits
        if self.running >= limits.concurrency:
            return float("inf")
        while self._window and self._window[0].at <= now - MINUTE:
            self._tokens -= self._window.popleft().tokens
        delay = self._not_before - now
        if limits.requests_per_minute and len(self._window) >= limits.requests_per_minute:
            delay = max(delay, self._window[0].at + MINUTE - now)
        if limits.tokens_per_minute and self._window:
            excess = self._tokens + tokens - limits.tokens_per_minute
            for start in self._window:
                if excess <= 0.0:
                    break
                excess -= start.tokens
                delay = max(delay, start.at + MINUTE - now)
        return max(0.0, delay)

    def _take(self, now: float, tokens: float) -> Start:
        start = Start(now, tokens, self._started)
        self._started += 1
        self.running += 1
        if self.limits.requests_per_minute or self.limits.tokens_per_minute:
            self._window.append(start)
            self._tokens += tokens
        return start

    def _done(self, start: Start, used: float) -> None:
        self.running -= 1
        if self._window and start.at > self._clock() - MINUTE:
            self._tokens += used - start.tokens
            start.tokens = used
        self._start_waiting()

    def _wait(self, error: CallError, failed: int) -> float | None:
        """Seconds before the next attempt; None if there is to be none."""
        if not isinstance(error, TransientError) or failed >= self.limits.attempts:
            return None
        bound = min(self.limits.longest_wait_s, self.limits.backoff_s * 2.0 ** (failed - 1))
        wait = self._jitter.random() * bound
        if error.retry_after_s is None:
            return wait
        if error.retry_after_s > self.limits.longest_wait_s:
            return None
        self._not_before = max(self._not_before, self._clock() + error.retry_after_s)
        return error.retry_after_s + self._jitter.random() * min(bound, error.retry_after_s)

    async def _sleep(self, seconds: float) -> None:
        if self._stopped is not None:
            raise self._stopped
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds, _wake, future)
        self._sleeping.add(future)
        try:
            await future
        finally:
            timer.cancel()
            self._sleeping.discard(future)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Budget:
    """What a run may spend: calls, and dollars reserved before they are spent.

    Where a reservation does not fit because of open calls, it waits for them; where it would not
    fit without them either, the run stops.
    """

    def __init__(self, *, max_calls: int | None = None, max_cost: float | None = None) -> None:
        self.max_calls = max_calls
        self.max_cost = max_cost
        self.calls = 0
        self.spent = 0.0
        self._reserved: list[float] = []
        self._waiting: list[asyncio.Future[None]] = []

    def count_call(self) -> None:
        """Count one call, however many attempts it will take.

        Raises
        ------
        StopError : there are `max_calls` already
        """
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise StopError(
                f"stopped after {self.calls} calls, the limit of --max-calls; what was paid for is "
                "recorded: go on with --resume, which counts anew"
            )
        self.calls += 1

    async def reserve(self, most: float) -> None:
        """Reserve the most that an attempt can cost, in dollars.

        Raises
        ------
        StopError : it could exceed `max_cost`
        """
        if self.max_cost is None:
            return
        while self.spent + sum(self._reserved) + most > self.max_cost:
            if not self._reserved:
                raise StopError(
                    f"stopped at ${self.spent:.4f}: the next call may cost ${most:.4f} and "
                    f"--max-cost is ${self.max_cost:g}; what was paid for is recorded: go on with "
                    "--resume, which counts anew"
                )
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
        self._reserved.append(most)

    def settle(self, most: float, cost: float) -> None:
        """Turn a reservation into what was spent."""
        self.spent += cost
        if self.max_cost is None:
            return
        self._reserved.remove(most)
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            _wake(future)
