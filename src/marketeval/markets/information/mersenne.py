"""The reference's one Mersenne Twister stream: who asks, what is asked, and who explores.

This is the named exception to keyed streams: it is a sequence, so every draw has its turn. The
published package `marketplace-eval` seeds one `random.Random` and takes from it, in this order:
a shuffle of the questions; per step one weighted choice of K users, with replacement; then for
each of them in turn a question popped from the pool's end (an empty pool is reshuffled just
before), one uniform number, and one index if that number says to explore. None of it depends on
the answers, so the whole schedule follows from the seed and from how many candidates users have.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Slots(NamedTuple):
    """One step's draws, one entry per slot; shape (users_per_step,) each.

    `pick` is the place in the user's candidates, in the order they became known to that user, of
    an exploring choice; -1 where the user does not explore and so takes the favourite.
    """

    users: Integers
    questions: Integers
    explored: NDArray[np.bool_]
    pick: Integers


class MersenneSchedule:
    """The draws of one seed, step by step from step 0.

    `weights` are the users' chances to be drawn (None: 1/users each); `epsilon` the chance to
    explore, 0.2 in the reference.

    >>> first = MersenneSchedule(42, 10, None, 500, 5).step(0, lambda user: 6)
    >>> first.users.tolist(), first.questions.tolist()
    ([0, 5, 3, 7, 4], [327, 57, 12, 379, 140])
    """

    def __init__(
        self,
        seed: int,
        users: int,
        weights: Sequence[float] | None,
        questions: int,
        users_per_step: int,
        *,
        epsilon: float = 0.2,
    ) -> None:
        if users < 1 or questions < 1 or users_per_step < 1:
            raise ValueError(
                "expected at least one user, one question and one user per step, got "
                f"{users}, {questions} and {users_per_step}"
            )
        if weights is not None and len(weights) != users:
            raise ValueError(f"expected one weight for each of {users} users, got {len(weights)}")
        self._random = random.Random(seed)
        self._users = range(users)
        self._summed = list(accumulate([1.0 / users] * users if weights is None else weights))
        self._questions = questions
        self._users_per_step = users_per_step
        self._epsilon = epsilon
        self._next_step = 0
        self._refill()

    def step(self, step: int, candidates: Callable[[int], int]) -> Slots:
        """The draws of a step; `candidates(user)` is how many agents that user can choose from.

        Steps must be asked for in order, each once: earlier draws decide later ones.
        """
        if step != self._next_step:
            raise ValueError(f"expected step {self._next_step} of the sequence, got step {step}")
        self._next_step += 1
        count = self._users_per_step
        users = self._random.choices(self._users, cum_weights=self._summed, k=count)
        slots = Slots(
            np.array(users, np.int64),
            np.empty(count, np.int64),
            np.zeros(count, np.bool_),
            np.full(count, -1, np.int64),
        )
        for slot, user in enumerate(users):
            if not self._pool:
                self._refill()
            slots.questions[slot] = self._pool.pop()
            if self._random.random() < self._epsilon:
                slots.explored[slot] = True
                slots.pick[slot] = self._random.choice(range(candidates(user)))
        return slots

    def _refill(self) -> None:
        self._pool = list(range(self._questions))
        self._random.shuffle(self._pool)
