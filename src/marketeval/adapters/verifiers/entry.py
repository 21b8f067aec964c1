"""marketplace-entry-eval: the evaluated model enters a market of recorded rivals.

Users ask generators and come back to those that served them well. The model enters when the rivals
are known already; each question is one interaction with it, and its answer serves all who ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import verifiers.v1 as vf
from pydantic import Field, field_validator

from marketeval.actions.information import Answers, Grades
from marketeval.adapters.verifiers.table import Json, MarketData, MarketTask, Rewards, Table
from marketeval.agents.wording import Prompt, prompt
from marketeval.core.errors import RunError, UsageError
from marketeval.core.log import EventLog
from marketeval.core.market import Agent, Request
from marketeval.core.streams import Streams
from marketeval.events.information import NOT_ATTEMPTED
from marketeval.experiments.assembly import assemble
from marketeval.experiments.pool import SHIPPED, read_csv, shipped_file
from marketeval.experiments.scenario import check
from marketeval.markets.information.market import JUDGE, InformationMarket
from marketeval.metrics.base import Metric, evaluate
from marketeval.metrics.dynamics import LongitudinalUtility
from marketeval.metrics.retention import Retention
from marketeval.metrics.share import FairShare, MarketShare
from marketeval.metrics.static import accuracy, f_score

ENTRANT = "entrant"
QUESTIONS, RIVALS = "shipped:easy-questions.csv", "shipped:easy-rivals.csv"


class EntryTasksetConfig(vf.TasksetConfig):
    """The market that is entered."""

    seeds: list[int] = [1, 2, 3, 4, 5]
    """Seeds of the users' draws, one task each."""
    questions: str = QUESTIONS
    """CSV with item_id, question and answer (accepted answers, between bars)."""
    rivals: str = RIVALS
    """Table of recorded answers: item_id, model, score."""
    prompt: str = "question-v1"
    """The prompt of a question: a shipped name, or a .txt file with the place {question}."""
    horizon: int = Field(60, ge=4)
    """Steps of the market."""
    enters: int = Field(15, ge=0)
    """The step at which the model enters, before the second half."""
    users: int = Field(20, ge=1)
    """Users, of whom half ask in each step."""
    fair: Literal["static", "equal"] = "static"
    """The fair share: in proportion to static F-scores, as the paper has it, or equal for all."""

    @field_validator("enters")
    @classmethod
    def _before_the_half(cls, step: int, info: object) -> int:
        horizon = getattr(info, "data", {}).get("horizon", 60)
        if step > horizon // 2:
            raise ValueError(f"expected at most step {horizon // 2}, where the last half begins")
        return step

    @field_validator("prompt")
    @classmethod
    def _there(cls, name: str) -> str:
        try:
            prompt(name, places=("question",))
        except UsageError as error:
            raise ValueError(str(error)) from None
        return name


class EntryTaskset(vf.Taskset[MarketTask, EntryTasksetConfig]):
    """One task per seed."""

    def load(self) -> Iterable[MarketTask]:
        """One task per episode."""
        for seed in self.config.seeds:
            data = MarketData(
                name=f"entry/seed-{seed}", cell="entry", seed=seed, market=_tree(self.config)
            )
            yield MarketTask(data, self.config.task)


class EntryEnvConfig(vf.EnvConfig):
    """Who enters: the role `agent`."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    max_concurrent_agents: int | None = Field(8, ge=1)


class EntryEnv(vf.Env[EntryEnvConfig]):
    """One episode: the static benchmark of the entrant, then the market over the same answers."""

    async def run(self, task: MarketTask, agents: vf.Agents) -> None:
        """Ask all questions, play, write the rewards onto every question's trace."""
        config = self.taskset.config
        tree = task.data.market
        experiment = assemble(check({**tree, "outcomes": [str(_file(tree["outcomes"][0]))]}))
        market = experiment.market
        assert isinstance(market, InformationMarket)  # the scenario's family
        names = ("mp", "mp_share", "mp_fair_share", "mp_retention", "mp_utility", "mp_accuracy")
        async with Table(task, names) as table:
            entrant = Entrant(table, agents.agent, prompt(config.prompt, places=("question",)))
            market = await with_static_score(market, entrant, experiment.seats[JUDGE])
            log = await table.play(
                market, {**experiment.seats, ENTRANT: entrant}, seed=task.data.seed
            )
            rewards, info = _scores(log, task.data, market, config)
            table.record(dict.fromkeys(table.seats, rewards), key="market_entry", info=info)


@dataclass
class Entrant:
    """The model as a generator: an interaction per question, whose answer is kept."""

    table: Table
    player: vf.Agent
    wording: Prompt
    answers: dict[str, str] = field(default_factory=dict)
    immediate: bool = False
    deterministic: bool = False
    privileged: bool = False

    async def act(self, request: Request) -> Answers:
        """The answers to a batch of questions, in words, for the judge to grade."""
        said = await self.answer(request.batch["asked"])
        return Answers(score=np.full(len(said), np.nan), text=said)

    async def answer(self, questions: Sequence[str]) -> list[str]:
        """One answer per question; those not asked before are asked at once.

        Raises
        ------
        SeatLostError : the model does not answer any more
        """
        fresh = [one for one in dict.fromkeys(questions) if one not in self.answers]
        said = await asyncio.gather(
            *(self._ask(one, len(self.answers) + n) for n, one in enumerate(fresh, 1)),
            return_exceptions=True,
        )
        for question, text in zip(fresh, said, strict=True):
            if isinstance(text, BaseException):
                raise text
            self.answers[question] = text
        return [self.answers[one] for one in questions]

    async def _ask(self, question: str, number: int) -> str:
        seat = self.table.seat(f"question-{number}", self.player)
        await seat.sit("")
        return await seat.reply(self.wording.fill(question=question))


async def with_static_score(
    market: InformationMarket, entrant: Entrant, judge: Agent
) -> InformationMarket:
    """The market with the entrant's static result: every question once, graded by its judge."""
    texts = market.questions.texts or ()
    slots = np.arange(len(texts))
    answers = await entrant.answer(texts)
    grades = await judge.act(
        Request(
            seat=JUDGE,
            decision="grade",
            action=Grades,
            step=0,
            draws=Streams(0).of("static"),
            batch=market.questions.to_grade(slots, slots, answers),
        )
    )
    if not isinstance(grades, Grades):
        raise RunError(f"the judge gave no grades: {grades}")
    tried = len(texts) if grades.grade is None else int((grades.grade != NOT_ATTEMPTED).sum())
    correct = float(np.nansum(grades.score))
    known = [
        replace(
            one,
            items=len(texts),
            correct=correct,
            attempted=float(tried),
            accuracy=accuracy(correct, len(texts)),
            f_score=f_score(correct, tried, len(texts)),
        )
        if one.seat == ENTRANT
        else one
        for one in market.generators
    ]
    return replace(market, generators=known)


def _tree(config: EntryTasksetConfig) -> Json:
    """The scenario; the entrant's own text names a model that nobody calls."""
    return {
        "name": "marketplace-entry",
        "seats": {
            **{name: {"agent": "recorded"} for name in _rivals(config.rivals)},
            ENTRANT: {"agent": "http://127.0.0.1/v1#entrant", "enters": config.enters},
            JUDGE: {"agent": "judge:match"},
        },
        "outcomes": [config.rivals],
        "items": config.questions,
        "market": {
            "horizon": config.horizon,
            "users": {"population": config.users, "per_step": max(1, config.users // 2)},
        },
    }


def _file(name: str) -> Path:
    return shipped_file(name) if name.startswith(SHIPPED) else Path(name)


def _rivals(name: str) -> list[str]:
    """The models of a table of recorded answers, in its order."""
    return list(dict.fromkeys(str(one) for one in read_csv(_file(name))["model"]))


def _scores(
    log: EventLog, data: MarketData, market: InformationMarket, config: EntryTasksetConfig
) -> tuple[Rewards, Json]:
    """Share over the last half minus the fair share, and what stands beside it."""
    half = config.horizon // 2
    wanted: dict[str, Metric] = {
        "mp_share": MarketShare(start=half, stop=config.horizon),
        "mp_fair_share": FairShare(start=half, stop=config.horizon),
        "mp_retention": Retention(m=10),
        "mp_utility": LongitudinalUtility(),
    }
    values: dict[str, float | None] = {}
    notes: dict[str, str] = {}
    for name, one in wanted.items():
        rows = evaluate(log, [one]).filter(pl.col("subject") == ENTRANT)
        values[name] = rows["value"][0] if rows.height else None
        if values[name] is None:
            notes[name] = str(rows["note"][0]) if rows.height else "nobody asked it"
    if config.fair == "equal":
        values["mp_fair_share"] = 1 / len(market.generators)
    (mine,) = [one for one in market.generators if one.seat == ENTRANT]
    values["mp_accuracy"] = mine.accuracy
    share, fair = values["mp_share"], values["mp_fair_share"]
    reward = None if share is None or fair is None else max(-1.0, min(1.0, share - fair))
    rewards = {"mp": (reward, 1.0), **{name: (value, 0.0) for name, value in values.items()}}
    info = {
        "cell": data.cell,
        "seed": data.seed,
        "rewards": {"mp": reward, **values},
        "undefined": notes,
        "log_digest": log.digests[data.seed],
    }
    return rewards, info
