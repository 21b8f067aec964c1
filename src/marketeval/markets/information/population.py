"""The users: persistent, vectorised, each with preferences that change with experience."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from marketeval.choice import character as c
from marketeval.choice import preference, select
from marketeval.choice.experience import experience
from marketeval.choice.rules import BUILT_IN, OUTSIDE, RULES
from marketeval.core.errors import ScenarioError
from marketeval.core.streams import Streams
from marketeval.markets.information.scenario import Information, Segment

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]


class Population:
    """All users of one episode.

    State per row (a user, or a user and topic): `first` and `second`, see `choice.preference`, of
    shape (rows, agents). State per user: segment, last agent asked, running utility (`mood`),
    interactions in discontent, whether still there; where trust counts, successes and trials of
    shape (users, agents). Room for all who may arrive is made at the start.
    """

    def __init__(
        self,
        spec: Information,
        streams: Streams,
        *,
        seats: Sequence[str],
        tie_rank: Integers,
        topics: int,
    ) -> None:
        self.kinds = spec.kinds_of_user()
        self.characters = np.array([character_of(kind) for kind in self.kinds])
        self.size = spec.users.population
        self._arrivals = spec.users.arrivals
        self._draws = streams
        weights = np.array([kind.weight for kind in self.kinds])
        self.per_topic = self.kinds[0].learning is not None and (
            self.kinds[0].learning.per == "topic"
        )
        self._topics = topics if self.per_topic else 1
        room = self.size + math.ceil(self._arrivals) * spec.horizon
        agents = len(seats)

        self.segment = np.empty(room, np.int64)
        self.segment[: self.size] = quotas(weights, self.size)
        self.segment[self.size :] = np.searchsorted(
            np.cumsum(weights)[:-1] / np.cumsum(weights)[-1],
            streams["newcomers"].uniform_at(0, np.arange(self.size, room)),
            side="right",
        )
        self.active = np.zeros(room, bool)
        self.active[: self.size] = True
        self._everybody = np.arange(self.size)
        self.last = np.full(room, select.NOBODY, np.int64)
        self.mood = np.full(room, np.nan)
        self.discontent = np.zeros(room, np.int64)
        self.first = np.full((room * self._topics, agents), np.nan)
        self.second = np.zeros((room * self._topics, agents))
        minds_trust = bool((self.characters[:, c.DELTA] != 0).any())
        self.successes = np.zeros((room if minds_trust else 0, agents))
        self.trials = np.zeros_like(self.successes)
        activity = np.array([kind.activity for kind in self.kinds])
        self.activity = activity[self.segment] if (activity != activity[0]).any() else None

        self._tie_rank = tie_rank
        self._keyed_ties = spec.ties == "random"
        self.agent_codes = np.stack([streams.codes("choice", seats), streams.codes("tie", seats)])
        self.user_codes = np.array(
            [streams[name].code for name in ("inertia", "explore", "portfolio")], np.uint64
        )
        self._choose = _kernel_for(self.kinds)
        self.may_leave = bool(np.isfinite(self.characters[:, c.LEAVES_BELOW]).any())
        self._changing = self.may_leave or self._arrivals > 0
        self._seats = list(seats)

    def present(self) -> Integers:
        """The users who are there, ascending."""
        return np.flatnonzero(self.active) if self._changing else self._everybody

    def know(self, agents: Sequence[int]) -> None:
        """What users know at the start: the agents named by their segment, or all of `agents`."""
        for place, kind in enumerate(self.kinds):
            row = np.full(len(self._seats), np.nan)
            given = {
                a: kind.preferences[s] for a, s in enumerate(self._seats) if s in kind.preferences
            }
            weights = {a: w for a, w in given.items() if a in agents} or dict.fromkeys(agents, 1.0)
            total = 0.0
            for weight in weights.values():
                total += weight
            learning = int(self.characters[place, c.LEARNING])
            for agent, weight in weights.items():
                row[agent] = weight / total
                if learning == preference.BETA:
                    row[agent] = 1.0
                elif learning != preference.DRIFT:
                    row[agent] = self.characters[place, c.PRIOR]
            rows = np.repeat(self.segment == place, self._topics)
            self.first[rows] = row
            self.second[rows] = float(learning == preference.BETA)

    def meet(self, agent: int) -> None:
        """An agent enters the market: every user, there or yet to come, gets to know it."""
        kinds, priors = self._by_row(c.LEARNING).astype(np.int64), self._by_row(c.PRIOR)
        preference.enter(kinds, self.first, self.second, agent, priors)

    def lose(self, agent: int) -> None:
        """An agent leaves the market: every user forgets it, and what made them trust it."""
        kinds = self._by_row(c.LEARNING).astype(np.int64)
        preference.leave(kinds, self.first, self.second, agent)
        self.successes[:, agent] = 0.0
        self.trials[:, agent] = 0.0

    def arrive(self, step: int) -> Integers:
        """New users of a step; they know what a user knew who never interacted."""
        if not self._arrivals:
            return np.empty(0, np.int64)
        whole = math.floor(self._arrivals)
        extra = self._draws["arrivals"].uniform(step, 1)[0] < self._arrivals - whole
        new = np.arange(self.size, self.size + whole + int(extra))
        self.size += new.size
        self.active[new] = True
        return new

    def leave(self) -> Integers:
        """The users whose patience ended in this step; they do not come back."""
        if not self.may_leave:
            return np.empty(0, np.int64)
        patience = self.characters[self.segment[: self.size], c.PATIENCE]
        gone = np.flatnonzero(self.active[: self.size] & (self.discontent[: self.size] >= patience))
        self.active[gone] = False
        return gone

    def rows_of(self, users: Integers, topics: Integers) -> Integers:
        """Where the preferences of users about topics stand in the state."""
        return users * self._topics + topics if self.per_topic else users

    def choose(
        self,
        users: Integers,
        rows: Integers,
        slots: Integers,
        forced: Integers,
        *,
        step: int,
        available: Truths,
        shares: Floats,
    ) -> tuple[Integers, Truths]:
        """The agent each user of a wave asks (or NOBODY), and whether that was exploration."""
        return self._choose(
            self.characters, self.segment, users, rows, slots, forced, self.first, self.second,
            self.last, available, shares, self._tie_rank, self._keyed_ties, self.agent_codes,
            self.user_codes, step,
        )  # fmt: skip

    def learn(
        self,
        users: Integers,
        rows: Integers,
        agents: Integers,
        counts: Truths,
        *,
        quality: Floats,
        quality_signal: Floats,
        cost: Floats,
        latency: Floats,
    ) -> tuple[Floats, Floats]:
        """Learn from the outcomes of a wave; signal and utility, NaN where there is none."""
        return experience(
            self.characters, self.segment, users, rows, agents, counts, quality, quality_signal,
            cost, latency, self.first, self.second, self.last, self.successes, self.trials,
            self.mood, self.discontent,
        )  # fmt: skip

    def _by_row(self, what: int) -> Floats:
        return np.repeat(self.characters[self.segment, what], self._topics)


def quotas(weights: Floats, users: int) -> Integers:
    """The segment of each of the first users: shares by weight, largest remainders first."""
    exact = weights / weights.sum() * users
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: users - counts.sum()]] += 1
    return np.repeat(np.arange(weights.size), counts)


def character_of(kind: Segment) -> Floats:
    """A segment as one row of numbers; see `choice.character`."""
    choice, learning, utility = kind.choice, kind.learning, kind.utility
    assert choice is not None  # the three are filled in by Information.kinds_of_user
    assert learning is not None
    assert utility is not None
    row = np.zeros(c.SIZE)
    row[c.RULE] = BUILT_IN.index(choice.rule) if choice.rule in BUILT_IN else OUTSIDE
    row[c.THETA] = choice.theta
    row[c.INERTIA] = choice.inertia
    row[c.PORTFOLIO] = choice.portfolio
    row[c.POPULARITY] = choice.popularity
    row[c.LEARNING] = preference.KINDS.index(learning.kind)
    row[c.RATE] = learning.rate
    row[c.FLOOR] = learning.floor
    row[c.FORGETTING] = learning.forgetting
    row[c.PRIOR] = learning.prior
    row[c.ALPHA] = utility.quality
    row[c.BETA] = utility.cost
    row[c.GAMMA] = utility.latency
    row[c.DELTA] = utility.trust
    row[c.LEAVES_BELOW] = -np.inf if kind.outside is None else kind.outside.utility
    row[c.PATIENCE] = 1 if kind.outside is None else kind.outside.patience
    row[c.MOOD_RATE] = 0.2 if kind.outside is None else kind.outside.rate
    return row


def _kernel_for(kinds: Sequence[Segment]) -> Callable[..., tuple[Integers, Truths]]:
    outside = {kind.choice.rule for kind in kinds if kind.choice} - set(BUILT_IN)
    if not outside:
        return select.choose
    if len(outside) > 1:
        raise ScenarioError(
            f"expected at most one choice rule from outside this package, got {sorted(outside)}"
        )
    return select.choose_with(RULES[outside.pop()].score)
