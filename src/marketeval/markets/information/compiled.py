"""The compiled engine: plays a market whose agents are all tables, and writes the same log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.information import NO_OUTCOME, AnswerTable, SuccessRate
from marketeval.choice.rules import BUILT_IN
from marketeval.core.drive import lockstep
from marketeval.core.log import EventKind, EventLog
from marketeval.core.market import Script
from marketeval.core.streams import Streams
from marketeval.events import information as events
from marketeval.markets.information import fused, plain, plainly
from marketeval.markets.information.market import InformationMarket
from marketeval.markets.information.population import Population
from marketeval.markets.information.supply import Supply
from marketeval.markets.information.wave import BY_USER

Integers = NDArray[np.int64]
Values = NDArray[Any]  # any: columns of every type
Table = AnswerTable | SuccessRate


def can_compile(market: InformationMarket) -> bool:
    """Whether the market's rules have kernels: all shipped ones, drawn from keyed streams.

    Users who are agents have none: they have to be asked.
    """
    rules = {kind.choice.rule for kind in market.spec.kinds_of_user() if kind.choice}
    spec = market.spec
    if spec.draws != "keyed" or spec.on_missing == "stop" or spec.user_seats:
        return False
    return rules <= set(BUILT_IN)


@dataclass(frozen=True, kw_only=True)
class CompiledMarket:
    """A market together with its agents' tables, by seat; it asks nobody when played."""

    market: InformationMarket
    tables: Mapping[str, Table]

    @property
    def events(self) -> Sequence[EventKind]:
        """The kinds of event it may write."""
        return self.market.events

    def play(self, streams: Streams, log: EventLog) -> Script:
        """One episode in one compiled call."""
        if self.plan is None:
            self._play_fused(streams, log)
        else:
            plainly.play_one(self.market, self.plan, streams.seed, log)
        yield from ()  # a script that never asks

    def play_seeds(self, seeds: Sequence[int], log: EventLog) -> None:
        """Play the episodes of several seeds, side by side where the market is plain."""
        if self.plan is None or (self.plan.at_once() == 1 and log.hashed):
            for seed in seeds:
                lockstep(self, {}, seed=seed, log=log)
        else:
            plainly.play_many(self.market, self.plan, seeds, log)

    @cached_property
    def plan(self) -> plain.Plan | None:
        """How a plain market is played; None for any other."""
        return plain.plan_of(self.market, self.tables)

    def finish(self, streams: Streams, log: EventLog) -> Population:
        """Play one episode and return the users as it left them."""
        if self.plan is None:
            return self._play_fused(streams, log)
        return plainly.finish(self.market, self.plan, streams, log)

    def _play_fused(self, streams: Streams, log: EventLog) -> Population:
        market, spec = self.market, self.market.spec
        supply, users = market.open(streams, log)
        state = _state(users, supply)
        out = _columns(spec.horizon, spec.users.per_step, state.active.size)
        size = fused.play(
            self._rules, self._tables, self._draws(streams, users), state, users.size, out
        )
        self._write(log, users, out, size)
        users.size = int(size)
        return users

    @cached_property
    def _rules(self) -> fused.Rules:
        market, spec = self.market, self.market.spec
        users = Population(
            spec,
            Streams(0),
            seats=[one.seat for one in market.agents],
            tie_rank=market.tie_rank,
            topics=len(market.questions.topic_names),
        )
        block = 1 if market.stagger == BY_USER else market.stagger
        codes = {
            "entry": fused.ENTRY,
            "exit": fused.EXIT,
            "price": fused.PRICE,
            "latency": fused.LATENCY,
            "quality": fused.QUALITY,
        }
        place = {one.seat: number for number, one in enumerate(market.agents)}
        changes, values = [], []
        for step in sorted(market.changes):
            for change in market.changes[step]:
                kind = codes.get(
                    change.kind,
                    fused.OUTAGE_HIDDEN if change.mode == "hidden" else fused.OUTAGE_FAILS,
                )
                changes.append((step, place[change.agent], kind, step + (change.steps or 0)))
                values.append(change.change if change.kind == "quality" else change.factor)
        return fused.Rules(
            horizon=spec.horizon,
            per_step=spec.users.per_step,
            topics=len(market.questions.topic_names),
            per_topic=users.per_topic,
            block=block,
            replacement=spec.users.replacement,
            keyed_ties=spec.ties == "random",
            arrivals=spec.users.arrivals,
            leavers=users.may_leave,
            missing_score=np.nan if isinstance(spec.on_missing, str) else spec.on_missing,
            characters=users.characters,
            signal_of_grade=market.signal_of_grade,
            question_topic=np.asarray(market.questions.topics, np.int64),
            tie_rank=market.tie_rank,
            changes=np.array(changes, np.int64).reshape(-1, 4),
            change_values=np.array([one or 0.0 for one in values], np.float64),
        )

    @cached_property
    def _tables(self) -> fused.Tables:
        questions = len(self.market.questions.items)
        ordered = [self.tables[one.seat] for one in self.market.agents]
        recorded = [one for one in ordered if isinstance(one, AnswerTable)]
        mode, offset, starts, rows = [], [], [np.zeros(0, np.int64)], 0
        for one in ordered:
            offset.append(sum(part.size for part in starts))
            if isinstance(one, AnswerTable):
                mode.append(fused.RECORDED)
                starts.append(one.starts + rows)
                rows += one.score.size
            else:
                mode.append(fused.FIXED if one.fixed else fused.REDRAWN)
        rates = [one if isinstance(one, SuccessRate) else SuccessRate(rate=0.0) for one in ordered]
        assert all(one.starts.size == questions + 1 for one in recorded)  # laid out by item
        return fused.Tables(
            mode=np.array(mode, np.int64),
            rate=np.array([one.rate for one in rates]),
            cost=_or_nan([one.cost_usd for one in rates]),
            latency=_or_nan([one.latency_s for one in rates]),
            offset=np.array(offset, np.int64),
            starts=np.concatenate(starts),
            score=_joined([one.score for one in recorded]),
            grade=np.concatenate(
                [
                    np.zeros(0, np.int8),
                    *(
                        np.full(one.score.size, events.UNGRADED, np.int8)
                        if one.grade is None
                        else one.grade
                        for one in recorded
                    ),
                ]
            ),
            costs=_joined([_column(one.cost_usd, one.score.size) for one in recorded]),
            latencies=_joined([_column(one.latency_s, one.score.size) for one in recorded]),
        )

    def _draws(self, streams: Streams, users: Population) -> fused.Draws:
        seats = [one.seat for one in self.market.agents]
        return fused.Draws(
            users=streams["users"].code,
            questions=streams["questions"].code,
            arrivals=streams["arrivals"].code,
            user=users.user_codes,
            choice=users.agent_codes,
            outcome=streams.codes("agent/outcome", seats),
            knows=streams.codes("agent/knows", seats),
            sample=streams.codes("agent/sample", seats),
            quality=streams.codes("quality", seats),
        )

    def _write(self, log: EventLog, users: Population, out: fused.Columns, size: int) -> None:
        """The events in the order, and with the turns, in which the general engine appends them."""
        market, horizon = self.market, self.market.spec.horizon
        rows = int(out.rows.sum())
        step, agent, status = out.step[:rows], out.agent[:rows], out.status[:rows]
        kinds = {
            "unserved": np.flatnonzero(agent < 0),
            "interaction": np.flatnonzero(agent >= 0),
            "missing": np.flatnonzero(status == events.MISSING),
        }
        here = {kind: np.bincount(step[at], minlength=horizon) > 0 for kind, at in kinds.items()}
        changes = np.bincount(self._rules.changes[:, 0], minlength=horizon)
        parts = [changes, out.newcomers, *here.values(), out.leavers]
        begins = np.cumsum(np.sum(parts, axis=0)) - np.sum(parts, axis=0)
        turn = begins.copy()

        rows_of_changes = plainly.change_events(market)
        if rows_of_changes["step"].size:
            steps = rows_of_changes["step"]
            log.extend("intervention", turn[steps] + _within(changes), **rows_of_changes)
        turn += changes
        newcomers = np.repeat(np.arange(horizon), out.newcomers)
        first_user = size - int(out.newcomers.sum())
        new = np.arange(first_user, size)
        if new.size:
            log.extend(
                "user",
                turn[newcomers] + _within(out.newcomers),
                user=new,
                segment=users.segment[new],
                arrived=newcomers,
            )
        turn += out.newcomers
        for kind, at in kinds.items():
            if at.size:
                log.extend(kind, turn[step[at]], **self._row(kind, out, at))
            turn += here[kind]
        leaving = np.repeat(np.arange(horizon), out.leavers)
        if leaving.size:
            log.extend(
                "user_left",
                turn[leaving] + _within(out.leavers),
                step=leaving,
                user=out.left[: leaving.size],
                utility=out.left_mood[: leaving.size],
            )
        log.pass_turns(int(np.sum(parts)))

    def _row(self, kind: str, out: fused.Columns, at: Integers) -> dict[str, Values]:
        """The columns of some rows of a kind."""
        rows: Integers | slice = slice(None) if at.size == out.step.size else at
        place = {"step": out.step[rows], "slot": out.slot[rows]}
        if kind == "missing":
            reason = np.full(at.size, NO_OUTCOME, object)
            return {**place, "agent": out.agent[rows], "reason": reason}
        asked = {**place, "user": out.user[rows], "question": out.question[rows]}
        if kind == "unserved":
            return asked
        return {
            **asked,
            "topic": self._rules.question_topic[asked["question"]],
            "agent": out.agent[rows],
            "explored": out.explored[rows],
            "score": out.score[rows],
            "grade": out.grade[rows],
            "cost_usd": out.cost[rows],
            "latency_s": out.latency[rows],
            "signal": out.signal[rows],
            "utility": out.utility[rows],
            "status": out.status[rows],
        }


def _state(users: Population, supply: Supply) -> fused.State:
    return fused.State(
        segment=users.segment,
        active=users.active,
        activity=np.zeros(0) if users.activity is None else users.activity,
        last=users.last,
        mood=users.mood,
        discontent=users.discontent,
        first=users.first,
        second=users.second,
        successes=users.successes,
        trials=users.trials,
        present=supply.present,
        hidden_until=supply.hidden_until,
        failing_until=supply.failing_until,
        price=supply.price,
        latency=supply.latency,
        quality=supply.quality,
    )


def _columns(horizon: int, per_step: int, users: int) -> fused.Columns:
    rows = horizon * per_step
    return fused.Columns(
        step=np.empty(rows, np.int32),
        slot=np.empty(rows, np.int32),
        user=np.empty(rows, np.int32),
        question=np.empty(rows, np.int32),
        agent=np.empty(rows, np.int16),
        explored=np.empty(rows, np.bool_),
        score=np.empty(rows),
        grade=np.empty(rows, np.int8),
        cost=np.empty(rows),
        latency=np.empty(rows),
        signal=np.empty(rows),
        utility=np.empty(rows),
        status=np.empty(rows, np.int8),
        rows=np.zeros(horizon, np.int64),
        newcomers=np.zeros(horizon, np.int64),
        leavers=np.zeros(horizon, np.int64),
        left=np.empty(users, np.int64),
        left_mood=np.empty(users),
    )


def _within(counts: Integers) -> Integers:
    """0, 1, ... within each group of the given sizes."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _or_nan(values: Sequence[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if one is None else one for one in values], np.float64)


def _column(values: NDArray[np.float64] | None, rows: int) -> NDArray[np.float64]:
    return np.full(rows, np.nan) if values is None else values


def _joined(parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate([np.zeros(0), *parts])
