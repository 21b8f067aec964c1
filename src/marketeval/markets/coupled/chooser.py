"""One chooser of the governance graph: a population of users, a router, or a generator.

It holds a worth for each of its admissible targets and for nobody else, so it cannot select outside
the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketeval.choice import linucb
from marketeval.choice.pick import GIVEN, learn_all, pick
from marketeval.choice.preference import BETA, KINDS
from marketeval.choice.rules import BUILT_IN, EPSILON_GREEDY
from marketeval.core.streams import Streams
from marketeval.markets.coupled.scenario import LINUCB, UNIFORM, Choosing

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]
NOTHING = np.zeros((0, 0))


@dataclass(frozen=True, slots=True)
class Taken:
    """Choices of one chooser, one row each; `target` is the agent, `own` its place among targets.

    `depth` are the edges before this one on the path, `spent` what the chooser paid there itself
    (in dollars, filled in once it is known).
    """

    chooser: Chooser
    rows: Integers
    slots: Integers
    own: Integers
    target: Integers
    explored: Truths
    depth: int
    round: int
    topics: Integers


class Chooser:
    """State and rule of one chooser.

    Parameters
    ----------
    targets : numbers of the agents it may select, in sorted order
    members : users that share this state (1 for an agent)
    tie_rank : rank of each target in the configuration
    """

    def __init__(
        self,
        name: str,
        number: int,
        spec: Choosing,
        *,
        targets: Integers,
        names: Sequence[str],
        members: int,
        topics: int,
        tie_rank: Integers,
        keyed_ties: bool,
        streams: Streams,
    ) -> None:
        self.name, self.number, self.spec = name, number, spec
        self.targets, self.members, self.topics = targets, members, topics
        self._tie_rank, self._keyed = tie_rank, keyed_ties
        own = streams.of(name)
        self._codes = np.stack([own.codes("choose", names), own.codes("tie", names)])
        self._own = own["explore"].code
        self._by_topic = topics if spec.per == "topic" else 1
        rows, size = members * self._by_topic, targets.size
        self._kind = KINDS.index(spec.kind)
        start = {"beta": 1.0, "drift": 1.0 / max(size, 1)}.get(spec.kind, spec.prior)
        self.first = np.full((rows, size), start)
        self.second = np.full((rows, size), 1.0 if self._kind == BETA else 0.0)
        self._rule, self._theta = self._rule_of(spec)
        self._models = (
            [linucb.empty(size, topics) for _ in range(members)] if self._rule == GIVEN else []
        )
        self.served = np.ones(size, bool)
        if spec.exclusive:
            self.served = np.array([one in spec.exclusive for one in names])
        self.place = {int(target): place for place, target in enumerate(targets)}
        self.asks = False  # whether a seat of the scenario chooses instead

    def rows(self, members: Integers, topics: Integers) -> Integers:
        """The rows of the state that these members' questions are about."""
        return members * self._by_topic + topics if self._by_topic > 1 else members

    def choose(
        self,
        members: Integers,
        topics: Integers,
        slots: Integers,
        *,
        step: int,
        draw: Integers,
        open_to: Truths,
        count: int = 1,
        bonus: Floats | None = None,
        depth: int,
        round_: int = 0,
    ) -> list[Taken]:
        """Up to `count` targets for each row, the best of all rows first, then the second best.

        `draw` numbers the draws of each row within the step; `open_to` (rows, targets) says who is
        there and can be paid.
        """
        rows = self.rows(members, topics)
        given = NOTHING
        if self._rule == GIVEN:
            given = self._upper_bounds(members, topics)
        chosen, explored = pick(
            self._rule, self._theta, self._kind, self.first, self.second, given, rows, draw,
            open_to & self.served, np.zeros(open_to.shape) if bonus is None else bonus,
            self._tie_rank, self._keyed, self._codes, self._own, step, count,
        )  # fmt: skip
        found = []
        for number in range(count):
            own = chosen[:, number]
            there = own >= 0
            if not there.any():
                break
            found.append(
                Taken(
                    self,
                    rows[there],
                    slots[there],
                    own[there],
                    self.targets[own[there]],
                    explored[there],
                    depth,
                    round_,
                    topics[there],
                )
            )
        return found

    def learn(self, taken: Taken, signals: Floats) -> None:
        """Learn from the credit of some choices, in their order; NaN teaches nothing."""
        if self._rule == GIVEN:
            for row, own, topic, signal in zip(
                taken.rows, taken.own, taken.topics, signals, strict=True
            ):
                if signal == signal:
                    member = int(row) // self._by_topic
                    linucb.learn(*self._models[member], own, topic, 0.5 * (signal + 1.0))
        learn_all(
            self._kind, self.first, self.second, taken.rows, taken.own, signals,
            self.spec.rate, self.spec.floor, self.spec.forgetting, self.spec.prior,
        )  # fmt: skip

    def worth(self) -> Floats:
        """The mean worth of each target over members and topics, in the units of the learning."""
        values = self.first
        if self._kind == BETA:
            values = self.first / (self.first + self.second)
        return np.asarray(values.mean(axis=0))

    def _upper_bounds(self, members: Integers, topics: Integers) -> Floats:
        out = np.empty((members.size, self.targets.size))
        for member in np.unique(members):
            mine = members == member
            inverse, b = self._models[member]
            out[mine] = linucb.scores(inverse, b, topics[mine], self._theta)
        return out

    @staticmethod
    def _rule_of(spec: Choosing) -> tuple[int, float]:
        if spec.policy == LINUCB:
            return GIVEN, spec.theta
        if spec.policy == UNIFORM:
            return EPSILON_GREEDY, 1.0
        return BUILT_IN.index(spec.policy), spec.theta
