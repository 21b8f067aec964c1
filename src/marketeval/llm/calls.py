"""Every call of a run goes through here: cassette, one call per key, limits, budget, tallies.

    async with Calls(cassette, budget=Budget(max_calls=100)) as calls:
        call = await calls.complete(model, messages, seat="qwen", sample="0")

Leaving the block starts nothing more and waits for the calls that are open, so that each is
recorded, also after an error or an interrupt.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeVar

from marketeval.core.errors import ReplayError, UsageError
from marketeval.llm.cassette import Cassette, Entry, call_key, canonical
from marketeval.llm.client import (
    DEFAULTS,
    Completion,
    FinalError,
    Message,
    Model,
    OverlongError,
    Parameters,
    RefusedFormatError,
    Schema,
    StopError,
)
from marketeval.llm.cost import Prices
from marketeval.llm.limits import Budget, Limiter, Limits, Row, Tried

T = TypeVar("T")
PREFLIGHT = (Message("user", "Reply with OK."),)
_TEMPLATE_TOKENS = 16  # what chat templates add per message, at most
_FRAME_TOKENS = 64  # and per request


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A completed call; cost is None where unpriced, `served` says that the cassette had it."""

    completion: Completion
    cost_usd: float | None
    latency_s: float
    attempts: int
    served: bool


@dataclass(slots=True)
class Tally:
    """What one seat has used so far in this process, for a live view."""

    calls: int = 0
    served: int = 0
    failures: int = 0
    refused: int = 0  # forms that the endpoint did not take
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    latency_s: float = 0.0


@dataclass
class Calls:
    """The calls of one run.

    Parameters
    ----------
    cassette : where calls are found and kept; without one nothing is kept
    limits : per endpoint; `default_limits` for the others
    retry_missing : make those calls again that are recorded as failed
    told : gets a line on each call that was made
    note : gets a line where somebody at the terminal should know why it takes a while
    """

    cassette: Cassette = field(default_factory=lambda: Cassette(None))
    budget: Budget = field(default_factory=Budget)
    prices: Prices = field(default_factory=Prices)
    limits: Mapping[str, Limits] = field(default_factory=dict)
    default_limits: Limits = field(default_factory=Limits)
    retry_missing: bool = False
    told: Callable[[str], None] | None = None
    note: Callable[[str], None] | None = None
    tallies: dict[str, Tally] = field(default_factory=dict)
    stopped: StopError | None = None
    _limiters: dict[str, Limiter] = field(default_factory=dict)
    _open: dict[str, asyncio.Task[Call]] = field(default_factory=dict)
    _models: dict[int, Model] = field(default_factory=dict)
    _rows: dict[str, Row] = field(default_factory=lambda: defaultdict(Row))  # by endpoint

    async def complete(
        self,
        model: Model,
        messages: Sequence[Message],
        *,
        seat: str,
        sample: str = "0",
        schema: Schema | None = None,
        parameters: Parameters = DEFAULTS,
    ) -> Call:
        """One call, from the cassette or made now; recorded before it is returned.

        `sample` tells repetitions of one request apart: a member of a pool for answers and
        judgements, `SEED/TURN` for seats that play.

        Raises
        ------
        CallError : it failed for good, or its form was refused, which is recorded too
        StopError : the run has to stop
        ReplayError : replay-only, and it is not recorded
        UsageError : a key is missing, or a price that --max-cost needs
        """
        request = canonical(model, messages, schema, parameters)
        key = call_key(model.endpoint, request, sample)
        task = self._open.get(key)
        if task is None:
            entry = self.cassette.call(key)
            if entry is not None and not (entry.completion is None and self.retry_missing):
                return self._serve(entry, seat)
            if self.cassette.mode == "replay-only":
                raise ReplayError(
                    f"seat '{seat}': a call to {model.endpoint}#{model.name} (sample {sample}) is "
                    f"not in {self.cassette.path}, and replay-only makes none: "
                    f"{_beginning(messages)}"
                )
            if self.stopped is not None:
                raise self.stopped
            task = asyncio.create_task(
                self._make(model, messages, schema, parameters, seat, sample, request, key)
            )
            self._open[key] = task
            task.add_done_callback(lambda done: self._closed(key, done))
        return await asyncio.shield(task)

    async def preflight(self, models: Iterable[tuple[Model, Mapping[str, str]]]) -> None:
        """Ask each model, with the headers it will be sent, once whether it answers; what the
        cassette knows is not asked again.

        Raises
        ------
        UsageError : one does not, or lacks its key
        """
        seen = {
            (model.endpoint, model.name, *headers.items()): (model, headers)
            for model, headers in models
        }
        for model, headers in seen.values():
            parameters = Parameters(max_tokens=16, timeout_s=30.0, headers=headers)
            request = canonical(model, PREFLIGHT, None, parameters)
            key = call_key(model.endpoint, request, "preflight")
            if self.cassette.mode == "replay-only" or self.cassette.call(key) is not None:
                continue
            self._models[id(model)] = model
            limits = self._limiter(model).limits
            tries = min(3, limits.attempts)
            quick = Limits(
                attempts=tries, backoff_s=min(limits.backoff_s, 0.5), longest_wait_s=10.0
            )
            tried = await Limiter(quick).attempts(
                lambda model=model, parameters=parameters: model.complete(  # type: ignore[misc]
                    PREFLIGHT, parameters=parameters
                )
            )
            said = tried.failures[-1] if tried.failures else ""
            if tried.error is not None and tried.error.reason != "empty answer":
                raise UsageError(
                    f"{model.endpoint} does not answer for the model {model.name}: {said}, after "
                    f"{tried.attempts} {'try' if tried.attempts == 1 else 'tries'}; is it running, "
                    "and are the model's name and the key right?"
                )
            done = tried.completion or Completion(text="")
            entry = Entry(
                completion=done,
                cost_usd=self.prices.cost(model, done),
                latency_s=tried.latency_s,
                attempts=tried.attempts,
                failures=tried.failures,
            )
            await self.cassette.keep_call(
                key, entry, model=model, seat="preflight", sample="preflight", request=request
            )

    def stop(self, reason: StopError) -> None:
        """Start no more calls; open ones end and are recorded."""
        if self.stopped is None:
            self.stopped = reason
            for limiter in self._limiters.values():
                limiter.stop(reason)

    async def drain(self) -> None:
        """Wait for the calls that are open."""
        while self._open:
            await asyncio.wait(list(self._open.values()))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop(error if isinstance(error, StopError) else StopError("the run has ended"))
        running = sum(one.running for one in self._limiters.values())
        if error is not None and running and self.note is not None:
            self.note(
                f"stopping: open calls ({running}) end first and are recorded; a further interrupt "
                "leaves them"
            )
        await self.drain()
        for model in self._models.values():
            await model.close()
        self.cassette.close()

    async def _make(
        self,
        model: Model,
        messages: Sequence[Message],
        schema: Schema | None,
        parameters: Parameters,
        seat: str,
        sample: str,
        request: str,
        key: str,
    ) -> Call:
        """Make a call within the limits and the budget, and record how it ended."""
        most_tokens = _prompt_bound(messages, parameters, request if schema else "")
        most = self._most(model, most_tokens, parameters.max_tokens, seat)
        counted = False

        async def before() -> None:
            nonlocal counted
            try:
                if not counted:
                    self.budget.count_call()
                    counted = True
                await self.budget.reserve(most)
                if self.stopped is not None:
                    self.budget.settle(most, 0.0)
                    raise self.stopped
            except StopError as error:
                self.stop(error)
                raise

        def after(completion: Completion | None, billed: bool) -> None:
            cost = self.prices.cost(model, completion) if completion else None
            self.budget.settle(most, cost or (most if billed or completion else 0.0))

        self._models[id(model)] = model
        tried = await self._limiter(model).attempts(
            lambda: model.complete(messages, schema=schema, parameters=parameters),
            tokens=most_tokens / 4 + parameters.max_tokens,
            before=before,
            after=after,
        )
        refused = isinstance(tried.error, RefusedFormatError)
        done = tried.completion
        if done is not None:  # before its record is awaited: what fails meanwhile came later
            self._rows[model.endpoint].succeeded(tried.number)
        entry = Entry(
            completion=done,
            reason=tried.error.reason if tried.error else "",
            cost_usd=self.prices.cost(model, done) if done else None,
            latency_s=tried.latency_s,
            attempts=tried.attempts,
            failures=tried.failures,
            refused=refused,
        )
        spoken = refused or isinstance(tried.error, OverlongError)  # the endpoint is well
        if tried.error and not spoken and await self._is_the_end(model, key, tried):
            raise self.stopped or tried.error
        await self.cassette.keep_call(
            key, entry, model=model, seat=seat, sample=sample, request=request,
            alone=len(self._open) == 1,
        )  # fmt: skip
        self._count(seat, entry)
        if self.told is not None:
            self.told(_line(seat, model, sample, entry))
        return _call(entry, served=False)

    async def _is_the_end(self, model: Model, key: str, tried: Tried) -> bool:
        """Count a failure in a row; at the limit stop, and forget the row: an endpoint that is
        gone is no outcome, so a resumed run asks again."""
        failed = self._rows[model.endpoint].failed(tried.number, key)
        bound = self._limiter(model).limits.failures_in_a_row
        if len(failed) < bound:
            return False
        self.stop(
            StopError(
                f"{model.endpoint}: {len(failed)} calls in a row failed, the last with: "
                f"{tried.failures[-1]}; "
                "what was answered is recorded: go on with --resume once the endpoint is well again"
            )
        )
        await self.cassette.forget_calls(failed)
        return True

    def _serve(self, entry: Entry, seat: str) -> Call:
        self.tallies.setdefault(seat, Tally()).served += 1
        return _call(entry, served=True)

    def _count(self, seat: str, entry: Entry) -> None:
        tally = self.tallies.setdefault(seat, Tally())
        tally.calls += 1
        tally.attempts += entry.attempts
        tally.latency_s += entry.latency_s
        if entry.refused:
            tally.refused += 1
            return
        if entry.completion is None:
            tally.failures += 1
            return
        tally.input_tokens += entry.completion.input_tokens or 0
        tally.output_tokens += entry.completion.output_tokens or 0
        tally.cost_usd += entry.cost_usd or 0.0
        tally.unpriced += entry.cost_usd is None

    def _most(self, model: Model, inputs: int, outputs: int, seat: str) -> float:
        if self.budget.max_cost is None:
            return 0.0
        most = self.prices.at_most(model, input_tokens=inputs, output_tokens=outputs)
        if most is None:
            raise UsageError(
                f"seat '{seat}': --max-cost needs a price, and {model.endpoint}#{model.name} has "
                "none; give one under 'prices', or use --max-calls"
            )
        return most

    def _limiter(self, model: Model) -> Limiter:
        limiter = self._limiters.get(model.endpoint)
        if limiter is None:
            limits = self.limits.get(model.endpoint, self.default_limits)
            limiter = self._limiters[model.endpoint] = Limiter(limits)
        return limiter

    def _closed(self, key: str, task: asyncio.Task[Call]) -> None:
        self._open.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever waited has it; if nobody does, it is not lost news


def _call(entry: Entry, *, served: bool) -> Call:
    if entry.completion is None:
        raise (RefusedFormatError if entry.refused else FinalError)(entry.reason)
    return Call(
        completion=entry.completion,
        cost_usd=entry.cost_usd,
        latency_s=entry.latency_s,
        attempts=entry.attempts,
        served=served,
    )


def _line(seat: str, model: Model, sample: str, entry: Entry) -> str:
    """A call that was made, in one line; failed attempts with what the endpoint said."""
    done = entry.completion
    ended = entry.reason or "ok"
    if entry.refused:
        ended = f"form refused ({ended})"
    tokens = f"{done.input_tokens}+{done.output_tokens} tokens, " if done else ""
    cost = "unpriced" if entry.cost_usd is None else f"${entry.cost_usd:.6f}"
    failed = "".join(f"; attempt {n}: {one}" for n, one in enumerate(entry.failures, 1))
    return (
        f"{seat} -> {model.endpoint}#{model.name} (sample {sample}): {ended}, "
        f"{entry.latency_s:.2f} s, {tokens}{f'{cost}, ' if done else ''}"
        f"{entry.attempts} {'try' if entry.attempts == 1 else 'tries'}{failed}"
    )


def _prompt_bound(messages: Sequence[Message], parameters: Parameters, request: str) -> int:
    """No tokenizer makes more tokens than bytes; the exact count is only known afterwards."""
    text = sum(len(one.text.encode()) + _TEMPLATE_TOKENS for one in messages)
    return text + len(parameters.system.encode()) + len(request.encode()) + _FRAME_TOKENS


def _beginning(messages: Sequence[Message]) -> str:
    text = " ".join(messages[-1].text.split()) if messages else ""
    return repr(text[:60] + ("..." if len(text) > 60 else ""))


async def all_of(work: Iterable[Awaitable[T]]) -> list[T]:
    """Wait for all, then raise the first error in order: nothing paid for is thrown away."""
    done = await asyncio.gather(*work, return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException):
            raise one
    return [one for one in done if not isinstance(one, BaseException)]
