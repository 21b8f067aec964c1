"""The information-access market (marketplace paper, section 3), told as the paper tells it.

Users with preferences over generators ask questions; a generator answers; the outcome is worth
something to the user and changes whom the user will ask next. One `play` is one seeded episode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.information import Answers, Grades
from marketeval.core.log import EventKind, EventLog
from marketeval.core.market import Request, Script
from marketeval.core.streams import Streams
from marketeval.events import information as events
from marketeval.markets.information.choosers import Choosers
from marketeval.markets.information.facts import Facts, Generator, Questions, as_event, introduce
from marketeval.markets.information.population import Population
from marketeval.markets.information.reference import as_in_the_reference
from marketeval.markets.information.scenario import JUDGE as JUDGE  # others find it here
from marketeval.markets.information.scenario import Information, Intervention
from marketeval.markets.information.schedule import Demand, KeyedSchedule
from marketeval.markets.information.supply import Supply
from marketeval.markets.information.wave import BY_USER, TOGETHER, Outcomes, waves

Integers = NDArray[np.int64]


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
        supply, users = self.open(streams, log)
        demand = self._schedule(streams, users, supply)
        choosers = Choosers(users, streams, agents=self.agents, questions=self.questions)
        exposure = np.zeros(len(self.agents))
        seats = [agent.seat for agent in self.agents]
        draws = [streams.of(f"{seat}/agent") for seat in seats]

        for step in range(spec.horizon):
            # The market changes: agents enter or leave, get dearer, slower, better or worse.
            for change in self.changes.get(step, ()):
                self._apply(change, supply, users, choosers, log)
            for newcomer in users.arrive(step):
                log.append("user", user=newcomer, segment=users.segment[newcomer], arrived=step)

            # Users come with questions, all at once or in waves.
            asked = demand(step)
            topics = self.questions.topics[asked.questions]
            rows = users.rows_of(asked.users, topics)
            outcomes = Outcomes(asked.users.size, on_missing=spec.on_missing)
            available, failing = supply.available(step), supply.failing(step)

            for wave in waves(asked.users, self.stagger):
                # Each chooses a generator from the preferences it holds now.
                chosen, explored = users.choose(
                    asked.users[wave], rows[wave], wave, asked.forced[wave],
                    step=step, available=available, shares=_shares(exposure),
                )  # fmt: skip

                # Users who are agents say themselves whom they ask.
                if requests := choosers.ask(
                    wave, rows[wave], chosen, asked, step=step, available=available
                ):
                    choices = yield requests
                    choosers.take(choices, wave, chosen, explored, asked, step=step, log=log)
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
                            draws=streams.of(f"{JUDGE}/agent"),
                            batch=self.questions.to_grade(
                                asked.questions[slots], slots, outcomes.texts(slots)
                            ),
                        )
                    ]
                    outcomes.grade_answers(slots, grades, step=step, supply=supply)

                # The outcome is worth something to the user, who learns from it.
                outcomes.signals(wave, self.signal_of_grade)
                outcomes.signal[wave], outcomes.utility[wave] = users.learn(
                    asked.users[wave], rows[wave], chosen, outcomes.counts[wave],
                    quality=outcomes.score[wave], quality_signal=outcomes.quality_signal[wave],
                    cost=outcomes.cost[wave], latency=outcomes.latency[wave],
                )  # fmt: skip
                choosers.remember(
                    asked.users[wave], chosen, outcomes.counts[wave], outcomes.score[wave]
                )
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

    def open(self, streams: Streams, log: EventLog) -> tuple[Supply, Population]:
        """Log what holds for every seed, and make the state of this episode."""
        agents = self.agents
        supply = Supply(len(agents), [streams[f"{one.seat}/quality"] for one in agents])
        users = Population(
            self.spec,
            streams,
            seats=[one.seat for one in agents],
            tie_rank=self.tie_rank,
            topics=len(self.questions.topic_names),
        )
        there = [a for a, one in enumerate(agents) if self.first_entry[one.seat] == 0]
        supply.present[there] = True
        users.know(there)
        if not log.has_shared("market"):
            introduce(self.facts, users, log)
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
    def tie_rank(self) -> Integers:
        """Who wins a tie, the lower first: by first entry, then by the configuration."""
        by_insertion = sorted(self.generators, key=lambda one: self.first_entry[one.seat])  # stable
        rank = {one.seat: number for number, one in enumerate(by_insertion)}
        return np.array([rank[one.seat] for one in self.agents])

    @property
    def facts(self) -> Facts:
        """What the log is told before the first step."""
        return Facts(
            self.spec,
            self.generators,
            self.agents,
            self.first_entry,
            self.questions,
            self.phases,
        )

    @cached_property
    def first_entry(self) -> Mapping[str, int]:
        """The step of each generator's first entry; 0 for those there from the start."""
        first: dict[str, int] = {}
        for changes in self.changes.values():
            for change in changes:
                if change.kind in ("entry", "exit") and change.agent not in first:
                    first[change.agent] = change.step if change.kind == "entry" else 0
        return {one.seat: first.get(one.seat, 0) for one in self.generators}

    @cached_property
    def changes(self) -> Mapping[int, Sequence[Intervention]]:
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
    def signal_of_grade(self) -> NDArray[np.float64]:
        """The quality signal of each grade; NaN where the scenario's map has none."""
        given = {str(grade): signal for grade, signal in self.spec.signals.items()}
        return np.array([given.get(name, np.nan) for name in events.GRADES])

    @cached_property
    def stagger(self) -> int:
        """How interactions of a step are grouped; see `wave.waves`."""
        if self.spec.timing == "synchronous":
            return TOGETHER
        kinds = self.spec.kinds_of_user()
        users_see_each_other = any(one.choice and one.choice.popularity for one in kinds)
        return (self.spec.stagger or 1) if users_see_each_other else BY_USER

    def _apply(
        self,
        change: Intervention,
        supply: Supply,
        users: Population,
        choosers: Choosers,
        log: EventLog,
    ) -> None:
        """Carry out one intervention and log it."""
        agent = [one.seat for one in self.agents].index(change.agent)
        if change.kind == "entry":
            supply.present[agent] = True
            users.meet(agent)
        elif change.kind == "exit":
            supply.present[agent] = False
            users.lose(agent)
            choosers.lose(agent)
        elif change.kind == "price":
            supply.price[agent] = change.factor
        elif change.kind == "latency":
            supply.latency[agent] = change.factor
        elif change.kind == "quality":
            supply.quality[agent] = change.change
        else:
            until = supply.hidden_until if change.mode == "hidden" else supply.failing_until
            until[agent] = change.step + (change.steps or 0)
        log.append("intervention", **as_event(change, agent))


def _shares(exposure: NDArray[np.float64]) -> NDArray[np.float64]:
    total = exposure.sum()  # whole numbers: exact in any order
    return exposure / total if total else exposure
