"""Who and what a market consists of, and how the log is told before the first step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marketeval.core.log import EventLog
from marketeval.events import information as events
from marketeval.markets.information.scenario import Information, Intervention, Segment

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """A competitor: its seat, its label, when it enters, and its static benchmark result."""

    seat: str
    label: str
    enters: int = 0
    privileged: bool = False
    items: int = 0
    correct: float = np.nan
    attempted: float = np.nan
    accuracy: float = np.nan
    f_score: float = np.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The pool: ids in the data's order, the topic of each, and the names of the topics.

    Where seats answer in words, `texts` holds the questions and `golds` the accepted answers to
    each (none where a judge does without).
    """

    items: Sequence[str]
    topics: Integers
    topic_names: Sequence[str] = ("all",)
    texts: Sequence[str] | None = None
    golds: Sequence[Sequence[str]] | None = None

    def batch(self, questions: Integers, slots: Integers) -> dict[str, Any]:
        """What a seat is told of some questions, in columns (any: arrays and texts)."""
        columns: dict[str, Any] = {"question": questions, "slot": slots.copy()}
        if self.texts is not None:
            columns["asked"] = [self.texts[question] for question in questions]
        return columns

    def to_grade(
        self, questions: Integers, slots: Integers, texts: Sequence[str]
    ) -> dict[str, Any]:
        """What a judge is told of some answers, in columns (any: as above)."""
        golds = self.golds
        return {
            **self.batch(questions, slots),
            "text": texts,
            "gold": [() if golds is None else golds[question] for question in questions],
        }


@dataclass(frozen=True, slots=True)
class Facts:
    """What holds for every seed; `agents` are the generators in the order of the state."""

    spec: Information
    generators: Sequence[Generator]
    agents: Sequence[Generator]
    first_entry: Mapping[str, int]
    questions: Questions
    phases: Sequence[tuple[str, int, int]]


class Users(Protocol):
    """What the log is told of the users: their kinds, how many there are, the kind of each."""

    @property
    def kinds(self) -> Sequence[Segment]: ...
    @property
    def size(self) -> int: ...
    @property
    def segment(self) -> Integers: ...


def introduce(facts: Facts, users: Users, log: EventLog) -> None:
    """The facts that hold for every seed."""
    spec, agents, count = facts.spec, facts.agents, np.arange(len(facts.agents))
    place = {one.seat: number for number, one in enumerate(facts.generators)}
    log.shared(
        "market",
        horizon=spec.horizon,
        users=spec.users.population,
        users_per_step=spec.users.per_step,
    )
    log.shared(
        "generator",
        agent=count,
        seat=[one.seat for one in agents],
        label=[one.label for one in agents],
        position=[place[one.seat] for one in agents],
        entry_step=[facts.first_entry[one.seat] for one in agents],
        privileged=[one.privileged for one in agents],
    )
    log.shared(
        "static_score",
        agent=count,
        items=[one.items for one in agents],
        correct=np.array([one.correct for one in agents]),
        attempted=np.array([one.attempted for one in agents]),
        accuracy=np.array([one.accuracy for one in agents]),
        f_score=np.array([one.f_score for one in agents]),
    )
    names = list(facts.questions.topic_names)
    log.shared("topic", topic=np.arange(len(names)), name=names)
    log.shared(
        "question",
        question=np.arange(len(facts.questions.items)),
        item=list(facts.questions.items),
        topic=facts.questions.topics,
    )
    log.shared(
        "segment",
        segment=np.arange(len(users.kinds)),
        name=[kind.name for kind in users.kinds],
        weight=[kind.weight for kind in users.kinds],
        seat=[kind.agent or "" for kind in users.kinds],
    )
    if facts.phases:
        phases, starts, stops = zip(*facts.phases, strict=True)
        log.shared("phase", name=phases, start=starts, stop=stops)
    log.shared(
        "user",
        user=np.arange(users.size),
        segment=users.segment[: users.size],
        arrived=0,
    )


def as_event(change: Intervention, agent: int) -> dict[str, int | float]:
    """An intervention as a row of the log."""
    value = change.change if change.kind == "quality" else change.factor
    if change.kind == "outage":
        value = change.step + (change.steps or 0)
    return {
        "step": change.step,
        "agent": agent,
        "change": events.CHANGES.index(change.kind),
        "value": np.nan if value is None else float(value),
    }
