"""Who interacts in a step and what they ask: the demand that is drawn before anybody chooses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketeval.choice._math import race
from marketeval.choice.select import NOT_FORCED
from marketeval.core.streams import Streams

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Demand:
    """One step's interactions in slot order; `forced` is a pick or one of select's marks."""

    users: Integers
    questions: Integers
    forced: Integers


class KeyedSchedule:
    """Draws users and questions from keyed streams.

    Users: `per_step` of the active ones, with or without replacement, in proportion to their
    activity. Questions: without replacement from one pool, reshuffled when it is empty, even in
    the middle of a step.
    """

    def __init__(
        self, streams: Streams, *, questions: int, per_step: int, replacement: bool
    ) -> None:
        self._users = streams["users"]
        self._questions = streams["questions"]
        self._per_step = per_step
        self._replacement = replacement
        self._pool = np.empty(0, np.int64)
        self._size = questions
        self._rounds = 0
        self._asked = 0

    def draw(self, step: int, active: Integers, activity: Floats | None) -> Demand:
        """The demand of a step; `activity` is None where all users are equally active."""
        users = self._draw_users(step, active, activity)
        questions = self._take_questions(users.size)
        return Demand(users, questions, np.full(users.size, NOT_FORCED, np.int64))

    def _draw_users(self, step: int, active: Integers, activity: Floats | None) -> Integers:
        if not active.size:
            return active
        if self._replacement:
            u = self._users.uniform(step, self._per_step)
            if activity is None:
                return active[(u * active.size).astype(np.int64)]
            upto = np.cumsum(activity[active])
            places = np.searchsorted(upto, u * upto[-1], side="right")
            chosen: Integers = active[places.clip(0, active.size - 1)]
            return chosen
        count = min(self._per_step, active.size)
        if activity is None:
            return active[self._users.sample(step, active.size, count)]
        keys = race(self._users.uniform_at(step, active), activity[active])
        return active[np.argsort(keys, kind="stable")[:count]]

    def _take_questions(self, count: int) -> Integers:
        taken = []
        while count:
            if self._asked == self._pool.size:
                self._pool = self._questions.permutation(self._rounds, self._size)
                self._rounds += 1
                self._asked = 0
            some = self._pool[self._asked : self._asked + count]
            self._asked += some.size
            count -= some.size
            taken.append(some)
        if len(taken) == 1:
            return taken[0]
        return np.concatenate(taken) if taken else np.empty(0, np.int64)
