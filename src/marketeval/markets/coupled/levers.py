"""How an agent sets one of its levers from its own feedback: bandits and a best response."""

from __future__ import annotations

import numpy as np

from marketeval.choice.pick import learn_all, pick
from marketeval.choice.preference import MEAN
from marketeval.choice.rules import BUILT_IN, RULES
from marketeval.core.streams import Streams
from marketeval.markets.coupled.scenario import Adaptation


class Lever:
    """The options of one agent, what it knows of them, and the one it has now (at first the first).

    `best_response` takes the option that paid most when it was last tried; what was never tried
    comes first, in order.
    """

    def __init__(self, name: str, spec: Adaptation, streams: Streams) -> None:
        self.spec = spec
        size = len(spec.options)
        self.chosen = 0
        self.calls = 0  # in the period that runs
        self._first, self._second = np.zeros((1, size)), np.zeros((1, size))
        own = streams.of(f"{name}/lever")
        options = [str(place) for place in range(size)]
        self._codes = np.stack([own.codes("choose", options), own.codes("tie", options)])
        self._own = own["explore"].code

    @property
    def value(self) -> float | str:
        """The option that holds now."""
        return self.spec.options[self.chosen]

    def next(self, payoff: float, period: int) -> float | str:
        """Learn what the period brought and take the option for the next one."""
        size = len(self.spec.options)
        row, zeros = np.zeros(1, np.int64), np.zeros((1, size))
        if self.spec.policy == "best_response":
            self._first[0, self.chosen] = payoff
            self._second[0, self.chosen] = 1.0
            untried = np.flatnonzero(self._second[0] == 0)
            self.chosen = int(untried[0] if untried.size else self._first[0].argmax())
            return self.value
        learn_all(
            MEAN, self._first, self._second, row, np.array([self.chosen]), np.array([payoff]),
            0.0, 0.0, 0.0, 0.0,
        )  # fmt: skip
        rule = RULES[self.spec.policy]
        theta = rule.DEFAULT if self.spec.parameter is None else self.spec.parameter
        if not self._second[0].all():  # whatever was never tried comes first
            self.chosen = int(np.flatnonzero(self._second[0] == 0)[0])
            return self.value
        found, _ = pick(
            BUILT_IN.index(self.spec.policy), float(theta), MEAN, self._first, self._second, zeros,
            row, row, np.ones((1, size), bool), zeros, np.arange(size), False, self._codes,
            self._own, period, 1,
        )  # fmt: skip
        self.chosen = int(found[0, 0])
        return self.value
