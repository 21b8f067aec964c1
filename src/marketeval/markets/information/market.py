"""The information-access market (marketplace paper, section 3), told as the paper tells it.

Users with preferences over generators ask questions; a generator answers; the outcome is worth
something to the user and changes whom the user will ask next. One `play` is one seeded episode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.information import Answers, Grades
from marketeval.core.log import EventKind, EventLog
from marketeval.core.market import Request, Script
from marketeval.core.streams import Streams
from marketeval.events import information as events
from marketeval.markets.information.population import Population
from marketeval.markets.information.reference import as_in_the_reference
from marketeval.markets.information.scenario import Information, Intervention
from marketeval.markets.information.schedule import Demand, KeyedSchedule
from marketeval.markets.information.supply import Supply
from marketeval.markets.information.wave import BY_USER, TOGETHER, Outcomes, waves

Integers = NDArray[np.int64]
JUDGE = "judge"  # the seat that grades answers in words


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
        columns: dict[str, Any] = {"question": questions, "slot": slots}
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


@dataclass(frozen=True, kw_only=True)
class InformationMarket:
    """The rules of one market, ready to be played once per seed.

    `generators` stand in configuration order; `phases` names stretches of steps as
    (name, start, stop) for the tables of the report.
    """

    spec: Information
    generators: Sequence[Generator]
    questions: Questions
    phases: Sequence[tuple[str, int, int]] = ()
    events: ClassVar[Sequence[EventKind]] = events.KINDS

    def play(self, streams: Streams, log: EventLog) -> Script:
        """One episode: N users, K of them per step, each asks one generator and learns from it."""
        spec = self.spec
        supply, users = self._open(streams, log)
        demand = self._schedule(streams, users, supply)
        exposure = np.zeros(len(self.agents))
        seats = [agent.seat for agent in self.agents]
        draws = [streams.of(seat) for seat in seats]

        for step in range(spec.horizon):
            # The market changes: agents enter or leave, get dearer, slower, better or worse.
            for change in self._changes.get(step, ()):
                self._apply(change, supply, users, log)
            for newcomer in users.arrive(step):
                log.append("user", user=newcomer, segment=users.segment[newcomer], arrived=step)

            # Users come with questions, all at once or in waves.
            asked = demand(step)
            topics = self.questions.topics[asked.questions]
            rows = users.rows_of(asked.users, topics)
            outcomes = Outcomes(asked.users.size)
            available, failing = supply.available(step), supply.failing(step)

            for wave in waves(asked.users, self._stagger):
                # Each chooses a generator from the preferences it holds now.
                chosen, explored = users.choose(
                    asked.users[wave], rows[wave], wave, asked.forced[wave],
                    step=step, available=available, shares=_shares(exposure),
                )  # fmt: skip
                outcomes.choose(wave, chosen, explored)

                # The generators answer, each all of its questions of this wave at once.
                calls = outcomes.calls(wave, chosen, failing)
                actions = yield [
                    Request(
                        seat=seats[agent],
                        decision="answer",
                        action=Answers,
                        step=step,
                        draws=draws[agent],
                        briefing=None if self.questions.texts else self.questions,
                        batch=self.questions.batch(asked.questions[slots], slots),
                    )
                    for agent, slots in calls
                ]
                for (agent, slots), action in zip(calls, actions, strict=True):
                    outcomes.take(agent, slots, action, step=step, supply=supply)

                # What was answered in words is graded by the judge.
                if (slots := outcomes.ungraded()).size:
                    (grades,) = yield [
                        Request(
                            seat=JUDGE,
                            decision="grade",
                            action=Grades,
                            step=step,
                            draws=streams.of(JUDGE),
                            batch=self.questions.to_grade(
                                asked.questions[slots], slots, outcomes.texts(slots)
                            ),
                        )
                    ]
                    outcomes.grade_answers(slots, grades, step=step, supply=supply)

                # The outcome is worth something to the user, who learns from it.
                outcomes.signals(wave, self._signal_of_grade)
                outcomes.signal[wave], outcomes.utility[wave] = users.learn(
                    asked.users[wave], rows[wave], chosen, outcomes.counts[wave],
                    quality=outcomes.score[wave], quality_signal=outcomes.quality_signal[wave],
                    cost=outcomes.cost[wave], latency=outcomes.latency[wave],
                )  # fmt: skip
                exposure += np.bincount(chosen[chosen >= 0], minlength=exposure.size)

            outcomes.write(log, step, asked.users, asked.questions, topics)
            for user in users.leave():
                log.append("user_left", step=step, user=user, utility=users.mood[user])

    @cached_property
    def agents(self) -> Sequence[Generator]:
        """The generators in the order of the state's columns: sorted by seat.

        The reference package sums preferences in order of insertion; its stream brings its order.
        """
        if self.spec.draws == "mersenne":
            return sorted(self.generators, key=lambda one: one.enters)
        return sorted(self.generators, key=lambda one: one.seat)

    def _open(self, streams: Streams, log: EventLog) -> tuple[Supply, Population]:
        """Log what holds for every seed, and make the state of this episode."""
        agents, first_entry = self.agents, self._first_entry
        by_insertion = sorted(self.generators, key=lambda one: first_entry[one.seat])  # stable
        rank = {one.seat: number for number, one in enumerate(by_insertion)}

        supply = Supply(len(agents), [streams[f"{one.seat}/quality"] for one in agents])
        users = Population(
            self.spec,
            streams,
            seats=[one.seat for one in agents],
            tie_rank=np.array([rank[one.seat] for one in agents]),
            topics=len(self.questions.topic_names),
        )
        there = [a for a, one in enumerate(agents) if first_entry[one.seat] == 0]
        supply.present[there] = True
        users.know(there)
        if not log.has_shared("market"):
            self._introduce(log, users)
        return supply, users

    def _schedule(
        self, streams: Streams, users: Population, supply: Supply
    ) -> Callable[[int], Demand]:
        """The demand of a step, from keyed streams or from the reference's own stream."""
        size, per_step = len(self.questions.items), self.spec.users.per_step
        if self.spec.draws == "mersenne":
            return as_in_the_reference(streams.seed, self.spec, users, supply, size)
        keyed = KeyedSchedule(
            streams,
            questions=size,
            per_step=per_step,
            replacement=self.spec.users.replacement,
        )
        return lambda step: keyed.draw(step, users.present(), users.activity)

    @cached_property
    def _first_entry(self) -> Mapping[str, int]:
        """The step of each generator's first entry; 0 for those there from the start."""
        first: dict[str, int] = {}
        for changes in self._changes.values():
            for change in changes:
                if change.kind in ("entry", "exit") and change.agent not in first:
                    first[change.agent] = change.step if change.kind == "entry" else 0
        return {one.seat: first.get(one.seat, 0) for one in self.generators}

    @cached_property
    def _changes(self) -> Mapping[int, Sequence[Intervention]]:
        """The changes of each step, in step order; within a step the entries come first, in the
        order of the state's columns: two priors at one step must not hang on the configuration."""
        place = {one.seat: number for number, one in enumerate(self.agents)}
        entries = [
            Intervention(step=one.enters, agent=one.seat, kind="entry")
            for one in self.generators
            if one.enters
        ]
        by_step: dict[int, list[Intervention]] = {}
        for change in sorted(
            (*entries, *self.spec.interventions),
            key=lambda one: (one.step, one.kind != "entry", place[one.agent]),
        ):
            by_step.setdefault(change.step, []).append(change)
        return by_step

    @cached_property
    def _signal_of_grade(self) -> NDArray[np.float64]:
        """The quality signal of each grade; NaN where the scenario's map has none."""
        given = {str(grade): signal for grade, signal in self.spec.signals.items()}
        return np.array([given.get(name, np.nan) for name in events.GRADES])

    @cached_property
    def _stagger(self) -> int:
        """How interactions of a step are grouped; see `wave.waves`."""
        if self.spec.timing == "synchronous":
            return TOGETHER
        kinds = self.spec.kinds_of_user()
        users_see_each_other = any(one.choice and one.choice.popularity for one in kinds)
        return (self.spec.stagger or 1) if users_see_each_other else BY_USER

    def _apply(
        self, change: Intervention, supply: Supply, users: Population, log: EventLog
    ) -> None:
        """Carry out one intervention and log it."""
        agent = [one.seat for one in self.agents].index(change.agent)
        value = np.nan
        if change.kind == "entry":
            supply.present[agent] = True
            users.meet(agent)
        elif change.kind == "exit":
            supply.present[agent] = False
            users.lose(agent)
        elif change.kind == "price":
            value = supply.price[agent] = change.factor or 0.0
        elif change.kind == "latency":
            value = supply.latency[agent] = change.factor or 0.0
        elif change.kind == "quality":
            value = supply.quality[agent] = change.change or 0.0
        else:
            until = supply.hidden_until if change.mode == "hidden" else supply.failing_until
            value = until[agent] = change.step + (change.steps or 0)
        log.append(
            "intervention",
            step=change.step,
            agent=agent,
            change=events.CHANGES.index(change.kind),
            value=float(value),
        )

    def _introduce(self, log: EventLog, users: Population) -> None:
        """The facts that hold for every seed."""
        spec, agents, count = self.spec, self.agents, np.arange(len(self.generators))
        place = {one.seat: number for number, one in enumerate(self.generators)}
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
            entry_step=[self._first_entry[one.seat] for one in agents],
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
        names = list(self.questions.topic_names)
        log.shared("topic", topic=np.arange(len(names)), name=names)
        log.shared(
            "question",
            question=np.arange(len(self.questions.items)),
            item=list(self.questions.items),
            topic=self.questions.topics,
        )
        log.shared(
            "segment",
            segment=np.arange(len(users.kinds)),
            name=[kind.name for kind in users.kinds],
            weight=[kind.weight for kind in users.kinds],
        )
        if self.phases:
            phases, starts, stops = zip(*self.phases, strict=True)
            log.shared("phase", name=phases, start=starts, stop=stops)
        log.shared(
            "user",
            user=np.arange(users.size),
            segment=users.segment[: users.size],
            arrived=0,
        )


def _shares(exposure: NDArray[np.float64]) -> NDArray[np.float64]:
    total = exposure.sum()  # whole numbers: exact in any order
    return exposure / total if total else exposure
