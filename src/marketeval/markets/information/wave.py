"""Waves of interactions, and what becomes of each: from choice to outcome to event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.information import Answers, Grades
from marketeval.core.compiled import kernel
from marketeval.core.errors import RunError
from marketeval.core.log import EventLog
from marketeval.core.market import Action, Failure
from marketeval.events import information as events
from marketeval.markets.information.supply import Supply

Integers = NDArray[np.int64]


TOGETHER, BY_USER = 0, -1
_LARGEST = float(np.finfo(np.float64).max)


def waves(users: Integers, stagger: int) -> Iterator[Integers]:
    """The slots of a step in the groups that choose from the same state.

    TOGETHER (synchronous): all at once. Otherwise interaction k sees the earlier ones of its step:
    where users share nothing (BY_USER), wave r holds every user's r-th interaction, which is the
    same as one at a time; where they see each other, blocks of `stagger` slots choose together.
    """
    slots = np.arange(users.size)
    if stagger == TOGETHER:
        yield slots
    elif stagger == BY_USER:
        turn = _occurrences(users)
        for one in range(turn.max(initial=-1) + 1):
            yield slots[turn == one]
    else:
        for start in range(0, users.size, stagger):
            yield slots[start : start + stagger]


class Outcomes:
    """What became of the interactions of one step; arrays in slot order."""

    def __init__(self, slots: int, *, on_missing: Literal["skip", "stop"] | float = "skip") -> None:
        self._on_missing = on_missing
        numbers = np.full((6, slots), np.nan)
        self.score, self.cost, self.latency = numbers[0], numbers[1], numbers[2]
        self.quality_signal, self.signal, self.utility = numbers[3], numbers[4], numbers[5]
        self.agent = np.full(slots, -1)
        self.explored = np.zeros(slots, bool)
        self.counts = np.zeros(slots, bool)
        self.status = np.zeros(slots, np.int8)
        self.grade = np.full(slots, events.UNGRADED, np.int8)
        self._missing: list[tuple[Integers, Sequence[str]]] = []
        self._judged: list[tuple[Integers, Grades]] = []  # by panels
        self._texts: dict[int, str] = {}  # answers that wait for their grade, by slot

    def choose(self, wave: Integers, chosen: Integers, explored: NDArray[np.bool_]) -> None:
        """Note whom the users of a wave ask."""
        self.agent[wave] = chosen
        self.explored[wave] = explored

    def calls(
        self, wave: Integers, chosen: Integers, failing: NDArray[np.bool_]
    ) -> list[tuple[int, Integers]]:
        """Which agent has to answer which slots; those in an outage fail theirs here."""
        order, starts = _group(chosen, failing.size)
        calls = []
        for agent in np.flatnonzero(np.diff(starts)):
            slots = wave[order[starts[agent] : starts[agent + 1]]]
            if failing[agent]:  # no answer, no bill, no wait: what users mind stays known
                self.score[slots] = self.cost[slots] = self.latency[slots] = 0.0
                self.counts[slots] = True
                self.status[slots] = events.OUTAGE
            else:
                calls.append((int(agent), slots))
        return calls

    def take(
        self, agent: int, slots: Integers, action: Action, *, step: int, supply: Supply
    ) -> None:
        """Take an agent's answers as far as they are valid; the rest is missing, with a reason."""
        reason = _fault(action, slots.size)
        if reason or not isinstance(action, Answers):
            self._miss(slots, reason)
            return
        score = np.array(action.score, np.float64)
        grade = np.full(slots.size, events.UNGRADED, np.int8)
        if action.grade is not None:
            grade[:] = action.grade  # a copy: the action may be the agent's own table
        supply.alter(agent, step, slots, score, grade)
        there = score == score
        self.score[slots] = score
        self.grade[slots] = grade
        self.counts[slots] = there
        if action.cost_usd is not None:
            self.cost[slots] = action.cost_usd * supply.price[agent]
        if action.latency_s is not None:
            self.latency[slots] = action.latency_s * supply.latency[agent]
        if not there.all():
            for row in np.flatnonzero(~there).tolist():
                if action.text is not None and action.text[row]:
                    self._texts[int(slots[row])] = action.text[row]
                    there[row] = True
            self._miss(slots[~there], _reasons(action.reason, ~there))

    def ungraded(self) -> Integers:
        """The slots whose answers wait for their grade, ascending."""
        return np.array(sorted(self._texts), np.int64)

    def texts(self, slots: Integers) -> list[str]:
        """The answers that wait for their grade."""
        return [self._texts[slot] for slot in slots.tolist()]

    def grade_answers(self, slots: Integers, action: Action, *, step: int, supply: Supply) -> None:
        """Take the judge's grades as far as they are valid; the rest is missing, with a reason."""
        self._texts.clear()
        reason = _fault_of_grades(action, slots.size)
        if reason or not isinstance(action, Grades):
            self._miss(slots, f"judge: {reason}")
            return
        if action.judges:
            self._judged.append((slots, action))
        score = np.array(action.score, np.float64)
        grade = np.full(slots.size, events.UNGRADED, np.int8)
        if action.grade is not None:
            grade[:] = action.grade
        for agent in np.unique(self.agent[slots]):
            rows = np.flatnonzero(self.agent[slots] == agent)
            own_score, own_grade = score[rows], grade[rows]
            supply.alter(int(agent), step, slots[rows], own_score, own_grade)
            score[rows], grade[rows] = own_score, own_grade
        there = score == score
        self.score[slots] = score
        self.grade[slots] = grade
        self.counts[slots] = there
        if not there.all():
            reasons = _reasons(action.reason or "no grade", ~there)
            self._miss(slots[~there], [f"judge: {one}" for one in reasons])

    def signals(self, wave: Integers, of_grade: NDArray[np.float64]) -> None:
        """The quality signal: what its map gives for the grade, or 2q - 1 without a grade."""
        signal = of_grade[self.grade[wave]]
        plain = 2.0 * self.score[wave] - 1.0
        self.quality_signal[wave] = np.where(signal == signal, signal, plain)

    def write(
        self, log: EventLog, step: int, users: Integers, questions: Integers, topics: Integers
    ) -> None:
        """Append the events of the step in slot order."""
        slots = np.arange(users.size)
        served: Integers | slice = slice(None)
        if self.agent.min(initial=0) < 0:
            alone, served = np.flatnonzero(self.agent < 0), np.flatnonzero(self.agent >= 0)
            log.append(
                "unserved", step=step, slot=alone, user=users[alone], question=questions[alone]
            )
        if slots[served].size:
            log.append(
                "interaction",
                step=step,
                slot=slots[served],
                user=users[served],
                question=questions[served],
                topic=topics[served],
                agent=self.agent[served],
                explored=self.explored[served],
                score=self.score[served],
                grade=self.grade[served],
                cost_usd=self.cost[served],
                latency_s=self.latency[served],
                signal=self.signal[served],
                utility=self.utility[served],
                status=self.status[served],
            )
        for slots, action in self._judged:
            for number, judge in enumerate(action.judges):
                scores, grades = action.scores, action.grades
                log.append(
                    "judgement",
                    step=step,
                    slot=slots,
                    judge=judge,
                    score=np.nan if scores is None else scores[number],
                    grade=events.UNGRADED if grades is None else grades[number],
                )
        if self._missing:
            slots = np.concatenate([one for one, _ in self._missing])
            order = np.argsort(slots)
            reasons = np.concatenate([np.array(one, object) for _, one in self._missing])
            log.append(
                "missing",
                step=step,
                slot=slots[order],
                agent=self.agent[slots[order]],
                reason=reasons[order],
            )

    def _miss(self, slots: Integers, reasons: str | Sequence[str]) -> None:
        """Interactions without an outcome; see `Information.on_missing`."""
        if not slots.size:
            return
        told = _reasons(reasons, np.ones(slots.size, bool))
        if self._on_missing == "stop":
            raise RunError(f"an outcome is missing ({told[0]}), and on_missing is stop")
        self.status[slots] = events.MISSING
        self._missing.append((slots, told))
        if self._on_missing != "skip":
            self.score[slots] = self._on_missing
            self.cost[slots] = np.nan_to_num(self.cost[slots])
            self.latency[slots] = np.nan_to_num(self.latency[slots])
            self.counts[slots] = True


def _reasons(given: str | Sequence[str], rows: NDArray[np.bool_]) -> Sequence[str]:
    """The reasons of some rows, given one for all or one per row."""
    if isinstance(given, str):
        return [given] * int(rows.sum())
    return [given[row] for row in np.flatnonzero(rows).tolist()]


def _fault(action: Action, rows: int) -> str:
    """Why an action does not count, or ''."""
    reason = _fault_of_grades(action, rows)
    if reason:
        return reason
    if action.text is not None and (isinstance(action.text, str) or len(action.text) != rows):
        return f"expected {rows} values in 'text'"
    if not isinstance(action.reason, str) and len(action.reason) != rows:
        return f"expected {rows} values in 'reason'"
    if action.cost_usd is not None and not _between(action.cost_usd, -_LARGEST, _LARGEST):
        return "an infinite cost"
    if action.latency_s is not None and not _between(action.latency_s, 0.0, _LARGEST):
        return "a negative or infinite latency"
    return ""


def _fault_of_grades(action: Action, rows: int) -> str:
    """Why scores and grades do not count, or ''."""
    if isinstance(action, Failure):
        return action.reason
    for name in ("score", "grade", "cost_usd", "latency_s"):
        values = getattr(action, name, None)
        if values is None:
            continue
        if not isinstance(values, np.ndarray) or values.shape != (rows,):
            return f"expected {rows} values in '{name}'"
        if values.dtype.kind not in ("iu" if name == "grade" else "fiu"):
            return f"expected numbers in '{name}', got {values.dtype}"
    if not _between(action.score, 0.0, 1.0):
        return "a score outside [0, 1]"
    if action.grade is not None and not _between(action.grade, 0, events.UNGRADED):
        return "an unknown grade"
    reasons = action.reason
    if isinstance(action, Grades) and reasons and len(reasons) != rows:
        return f"expected {rows} values in 'reason'"
    for name in ("scores", "grades"):
        table = getattr(action, name, None)
        if table is not None and table.shape != (len(action.judges), rows):
            return f"expected {rows} values per judge in '{name}'"
    return ""


@kernel
def _between(values: NDArray[np.float64], low: float, high: float) -> bool:
    for value in values:  # noqa: SIM110 - a compiled loop
        if value < low or value > high:
            return False
    return True


@kernel
def _occurrences(users: Integers) -> Integers:
    seen = np.zeros(users.max() + 1 if users.size else 0, np.int64)
    out = np.empty(users.size, np.int64)
    for place in range(users.size):
        out[place] = seen[users[place]]
        seen[users[place]] += 1
    return out


@kernel
def _group(chosen: Integers, agents: int) -> tuple[Integers, Integers]:
    """A stable counting sort by agent: the order, and where each agent's part starts."""
    starts = np.zeros(agents + 1, np.int64)
    for agent in chosen:
        if agent >= 0:
            starts[agent + 1] += 1
    for agent in range(agents):
        starts[agent + 1] += starts[agent]
    order = np.empty(starts[agents], np.int64)
    at = starts[:-1].copy()
    for place in range(chosen.size):
        agent = chosen[place]
        if agent >= 0:
            order[at[agent]] = place
            at[agent] += 1
    return order, starts
