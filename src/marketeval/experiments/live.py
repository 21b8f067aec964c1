"""Runs in which somebody is asked: models, endpoints, programs, people.

All episodes of such a run share one event loop, one cassette and the limits of each endpoint. What
was called or done is on disk before it is used, so the run can be stopped anywhere, continued, and
played again without asking anybody.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from marketeval.actions.information import Grades
from marketeval.agents.chat import Chat
from marketeval.agents.embedder import EmbedderSeat
from marketeval.agents.kept import drained, keeping
from marketeval.agents.model_seat import ModelSeat
from marketeval.agents.remote import Remote
from marketeval.core.drive import lockstep_async
from marketeval.core.errors import UsageError
from marketeval.core.log import EventKind, EventLog
from marketeval.core.market import Agent, Market, Request, Script
from marketeval.core.streams import Streams
from marketeval.events.information import NOT_ATTEMPTED
from marketeval.experiments.asking import Asking, Stage
from marketeval.experiments.assembly import assemble
from marketeval.experiments.experiment import Experiment
from marketeval.experiments.run_directory import CALLS, scenario_text
from marketeval.experiments.scenario import Scenario
from marketeval.llm.calls import Calls, all_of
from marketeval.llm.cassette import Cassette
from marketeval.llm.client import CallError, Model
from marketeval.llm.cost import Price, Prices
from marketeval.llm.limits import Budget, Limits
from marketeval.markets.information.market import JUDGE, InformationMarket
from marketeval.metrics.static import accuracy, f_score

Work = TypeVar("Work")


@dataclass(frozen=True, slots=True)
class Arm:
    """An experiment, and its seats as they are played: with what they do kept."""

    experiment: Experiment
    seats: Mapping[str, Agent]
    cassette: Cassette
    bare: Mapping[str, Agent]


@asynccontextmanager
async def opened(
    path: Path, scenarios: Mapping[str, Scenario], asking: Asking
) -> AsyncIterator[Mapping[str, Arm]]:
    """The arms of a run, their seats at the run's cassette; every endpoint has answered once.

    Raises
    ------
    UsageError : an endpoint does not answer, a key is missing, or the cassette is another's
    """
    main = scenarios[""]
    identity = hashlib.sha256(scenario_text(main).encode()).hexdigest()
    cassette = Cassette(path / CALLS, mode=asking.mode, scenario=identity, name=main.name)
    calls = Calls(
        cassette=cassette,
        budget=Budget(max_calls=asking.max_calls, max_cost=asking.max_cost),
        prices=Prices(own={name: Price(p.input, p.output) for name, p in main.prices.items()}),
        limits={name: Limits(**one.model_dump()) for name, one in main.endpoints.items()},
        retry_missing=asking.retry_missing,
        told=asking.told,
        note=asking.note,
        tallies=asking.tallies,
    )
    async with calls:
        made = {name: assemble(scenario, calls=calls) for name, scenario in scenarios.items()}
        agents = [agent for one in made.values() for agent in one.seats.values()]
        lines = [line for agent in agents for line in _chats(agent)]
        if asking.max_cost is not None:
            _check_priced([line.model for line in lines], calls.prices)
        await calls.preflight((line.model, line.parameters.headers) for line in lines)
        if asking.mode != "replay-only":
            for one in agents:
                if isinstance(one, (EmbedderSeat, Remote)):
                    await asyncio.to_thread(one.check)
        stage = asking.stage
        seated = {name: stage.seats(one) if stage else one.seats for name, one in made.items()}
        arms = {
            name: Arm(
                one,
                keeping(seated[name], cassette, arm=name, retry_missing=asking.retry_missing),
                cassette,
                seated[name],
            )
            for name, one in made.items()
        }
        try:
            yield arms
        finally:
            if stage is not None:
                stage.close()
            await drained(agent for arm in arms.values() for agent in arm.seats.values())


def play(
    path: Path,
    scenarios: Mapping[str, Scenario],
    asking: Asking,
    *,
    work: Sequence[tuple[str, Work]],
    begin: Callable[[], None],
    log_of: Callable[[Work], tuple[EventLog, Sequence[int]]],
    finished: Callable[[Work, EventLog], None],
    stepped: Callable[[Work, int, int], None] = lambda work, seed, step: None,
) -> None:
    """Play pieces of work, each of one arm, all at once in one event loop.

    `begin` is called once every endpoint has answered; `log_of` gives a piece its log and seeds;
    `finished` takes each log when its last episode has ended; `stepped` is told each turn's seed
    and step.
    """

    async def one(market: Market, arm: Arm, piece: Work) -> None:
        log, seeds = log_of(piece)
        for seed in seeds:
            async with _staged(market, arm, asking.stage) as there:
                watched = _Watched(there, partial(stepped, piece, seed))
                await lockstep_async(watched, arm.seats, seed=seed, log=log)
        log.close()
        finished(piece, log)

    async def everything() -> None:
        async with opened(path, scenarios, asking) as arms:
            begin()
            await next(iter(arms.values())).cassette.sign()
            markets = {name: await _market(arm) for name, arm in arms.items()}
            await all_of(one(markets[name], arms[name], piece) for name, piece in work)

    asyncio.run(everything())


@asynccontextmanager
async def _staged(market: Market, arm: Arm, stage: Stage | None) -> AsyncIterator[Market]:
    """The market of one episode, wherever it is."""
    if stage is None:
        yield market
        return
    async with stage.market(market, arm.bare) as there:
        yield there


@dataclass(frozen=True, slots=True)
class _Watched:
    """A market whose turns somebody is told of."""

    market: Market
    told: Callable[[int], None]

    @property
    def events(self) -> Sequence[EventKind]:
        return self.market.events

    def play(self, streams: Streams, log: EventLog) -> Script:
        script = self.market.play(streams, log)
        requests = next(script, None)
        while requests is not None:
            if requests:
                self.told(requests[0].step)
            actions = yield requests
            try:
                requests = script.send(actions)
            except StopIteration:
                return


async def _market(arm: Arm) -> Market:
    """The market, with the static results of those who answer in words where it wants them."""
    market, wanted = arm.experiment.market, arm.experiment.scenario.static
    if wanted and isinstance(market, InformationMarket):
        return await with_static_scores(market, arm.seats, fresh=wanted == "fresh")
    return market


async def with_static_scores(
    market: InformationMarket, seats: Mapping[str, Agent], *, fresh: bool = False
) -> InformationMarket:
    """The market with the static result of every generator that answers in words.

    Each is asked every question once per member of its pool, and graded by the same judge: the
    very calls that the market makes, so that none is paid for twice; or calls of its own (`fresh`).
    """
    generators = []
    for one in market.generators:
        agent = seats[one.seat]
        if isinstance(agent, ModelSeat):
            items, correct, attempted = await _static(market, agent, seats[JUDGE], fresh=fresh)
            generators.append(
                replace(
                    one,
                    items=items,
                    correct=correct,
                    attempted=attempted,
                    accuracy=accuracy(correct, items),
                    f_score=f_score(correct, attempted, items),
                )
            )
        else:
            generators.append(one)
    return replace(market, generators=generators)


async def _static(
    market: InformationMarket, agent: ModelSeat, judge: Agent, *, fresh: bool
) -> tuple[int, float, float]:
    """Items with an outcome, and the sums of correct and attempted, samples averaged."""
    texts = market.questions.texts or ()
    samples = agent.generator.samples
    totals = np.zeros((3, len(texts)))  # outcomes, correct, attempted

    async def answer(text: str, sample: int) -> str:
        member = f"static/{sample}" if fresh else str(sample)
        try:
            return (await agent.generator.answer(text, sample=member)).completion.text
        except CallError:
            return ""

    for sample in range(samples):
        answers = await all_of(answer(text, sample) for text in texts)
        slots = np.array([place for place, said in enumerate(answers) if said], np.int64)
        if not slots.size:
            continue
        grades = await judge.act(
            Request(
                seat=JUDGE,
                decision="grade",
                action=Grades,
                step=sample,
                draws=Streams(0).of("static"),
                batch=market.questions.to_grade(slots, slots, [answers[slot] for slot in slots]),
            )
        )
        if not isinstance(grades, Grades):
            continue
        there = ~np.isnan(grades.score)
        tried = there if grades.grade is None else there & (grades.grade != NOT_ATTEMPTED)
        totals[0, slots] += there
        totals[1, slots] += np.where(there, grades.score, 0.0)
        totals[2, slots] += tried
    asked = totals[0] > 0
    means = totals[1:, asked] / totals[0, asked]
    return int(asked.sum()), float(means[0].sum()), float(means[1].sum())


def _check_priced(models: Sequence[Model], prices: Prices) -> None:
    for model in models:
        if prices.at_most(model, input_tokens=1, output_tokens=1) is None:
            raise UsageError(
                f"--max-cost needs a price, and {model.endpoint}#{model.name} has none; give one "
                "under 'prices', or use --max-calls"
            )


def _chats(agent: Agent) -> Iterator[Chat]:
    """The lines to models behind a seat: its own, or those of a panel's judges."""
    chat = getattr(agent, "chat", None)
    if chat is not None:
        yield chat
    for judge in getattr(agent, "judges", {}).values():
        yield from _chats(judge)
