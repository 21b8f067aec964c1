"""The demand of a step as the reference package draws it (see `mersenne`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from marketeval.choice.select import EXPLOIT
from marketeval.markets.information.mersenne import MersenneSchedule
from marketeval.markets.information.population import Population
from marketeval.markets.information.scenario import Information
from marketeval.markets.information.schedule import Demand
from marketeval.markets.information.supply import Supply


def as_in_the_reference(
    seed: int, spec: Information, users: Population, supply: Supply, questions: int
) -> Callable[[int], Demand]:
    """A function from step to demand, with exploration decided by the Mersenne stream.

    The state's columns stand in order of insertion, so the reference's pick counts them.
    """
    schedule = MersenneSchedule(
        seed,
        spec.users.population,
        None,
        questions,
        spec.users.per_step,
        epsilon=spec.choice.theta,
    )

    def draw(step: int) -> Demand:
        available = supply.available(step)

        def candidates(user: int) -> NDArray[np.int64]:
            known = np.flatnonzero(available & ~np.isnan(users.first[user]))
            return known if known.size else np.flatnonzero(available)

        slots = schedule.step(step, lambda user: candidates(user).size)
        forced = np.full(slots.users.size, EXPLOIT, np.int64)
        for slot in np.flatnonzero(slots.explored):
            forced[slot] = candidates(int(slots.users[slot]))[slots.pick[slot]]
        return Demand(slots.users, slots.questions, forced)

    return draw
