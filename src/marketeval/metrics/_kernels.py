"""Compiled passes over the interactions, in the order in which they happened, part by part.

All take a part's rows as `seed` (int64), `step` and `user` (int32) and `agent` (int16); `seeds` is
ascending, and `places` gives the column of each agent's number. Rows of one seed stand together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import inline, kernel
from marketeval.core.streams import draw_uniform

Values = NDArray[Any]  # any: kernels are compiled for the types they are called with
INTERACTIONS, EVERYTHING = range(2)
COUNT, FIRST, HITS, LAST, LATE = 0, 0, 1, 2, 3  # of a user; of a user and an agent


@inline
def _place_of(seeds: Values, seed: int) -> int:
    place = int(np.searchsorted(seeds, seed))
    return place if place < seeds.size and seeds[place] == seed else -1


@kernel
def count_steps(
    seed: Values, step: Values, agent: Values, seeds: Values, places: Values, out: Values
) -> None:
    """Add the interactions of each seed, step and agent to `out`, of that shape."""
    current, place = np.int64(-1), -1
    for row in range(seed.size):
        if seed[row] != current or row == 0:
            current = seed[row]
            place = _place_of(seeds, current)
        if place >= 0 and step[row] < out.shape[1]:
            out[place, step[row], places[agent[row]]] += 1


@kernel
def add_up(
    seed: Values,
    step: Values,
    agent: Values,
    values: Values,
    seeds: Values,
    places: Values,
    bins: Values,
    sums: Values,
    counts: Values,
) -> None:
    """Add values (float64; NaN is none) to `sums` by seed, bin of the step and agent.

    `bins` gives each step's bin, -1 for none; `counts[0]` counts values, `counts[1]` those above 0.
    """
    current, place = np.int64(-1), -1
    for row in range(seed.size):
        if seed[row] != current or row == 0:
            current = seed[row]
            place = _place_of(seeds, current)
        value = values[row]
        if place < 0 or step[row] >= bins.size or value != value:
            continue
        at = bins[step[row]]
        if at >= 0:
            who = places[agent[row]]
            sums[place, at, who] += value
            counts[0, place, at, who] += 1
            counts[1, place, at, who] += value > 0


@kernel
def count_switches(
    seed: Values,
    step: Values,
    user: Values,
    agent: Values,
    seeds: Values,
    places: Values,
    last: Values,
    state: Values,
    pairs: Values,
    switches: Values,
) -> None:
    """Add pairs of a user's consecutive interactions, and those with two agents.

    `pairs` and `switches` are by seed, step of the second and agent of the first interaction;
    `last` is each user's last agent or -1; `state` holds the seed that is under way.
    """
    current, place = state[0], _place_of(seeds, state[0])
    for row in range(seed.size):
        if seed[row] != current:
            current = seed[row]
            place = _place_of(seeds, current)
            last[:] = -1
        if place < 0:
            continue
        who, now = user[row], places[agent[row]]
        before = last[who]
        last[who] = now
        if before >= 0 and step[row] < pairs.shape[1]:
            pairs[place, step[row], before] += 1
            switches[place, step[row], before] += before != now
    state[0] = current


@kernel
def follow(
    seed: Values,
    step: Values,
    user: Values,
    agent: Values,
    seeds: Values,
    places: Values,
    m: int,
    reading: int,
    since: int,
    start: int,
    stop: int,
    came: Values,
    known: Values,
    state: Values,
    counts: Values,
    retained: Values,
) -> None:
    """Follow every user after the first interaction with each agent, from step `since` to `stop`.

    `came` (users,) counts a user's interactions; `known` (users, agents, 4) holds the number of
    the first with the agent (-1: none), how many later ones are its too (of the next m, or of
    all), the number of the last with it, and whether the first came before `start`. `settle` adds
    up an episode when it has ended; `state` holds the seed that is under way.
    """
    current, place = state[0], _place_of(seeds, state[0])
    for row in range(seed.size):
        if seed[row] != current:
            settle(place, m, reading, came, known, counts, retained)
            current = seed[row]
            place = _place_of(seeds, current)
        if place < 0 or step[row] >= stop or step[row] < since:
            continue
        who, one = user[row], places[agent[row]]
        now = came[who]
        came[who] = now + 1
        mine = known[who, one]
        if mine[FIRST] < 0:
            mine[FIRST], mine[HITS], mine[LATE] = now, 0, step[row] < start
        elif reading == EVERYTHING or now - mine[FIRST] <= m:
            mine[HITS] += 1
        mine[LAST] = now
    state[0] = current


@kernel
def settle(
    place: int, m: int, reading: int, came: Values, known: Values, counts: Values, retained: Values
) -> None:
    """Add up an episode that has ended, and forget its users.

    `counts` (3, seeds, agents): users whose first interaction with the agent came at `start` or
    later; those of them observed for long enough; how many of these had no interaction with the
    agent among their last m. `retained` (seeds, agents): the sum of the observed users' retention.
    """
    for who in range(came.size):
        if not came[who]:
            continue
        for one in range(known.shape[1]):
            mine = known[who, one]
            if place >= 0 and mine[FIRST] >= 0 and not mine[LATE]:
                counts[0, place, one] += 1
                later = came[who] - 1 - mine[FIRST]
                if reading == INTERACTIONS:
                    enough, length = later >= m, m
                else:
                    enough, length = later > 0, later
                if enough:
                    counts[1, place, one] += 1
                    retained[place, one] += mine[HITS] / length
                    if mine[LAST] < came[who] - m:
                        counts[2, place, one] += 1
            mine[FIRST] = -1
        came[who] = 0


@kernel
def follow_steps(
    seed: Values,
    user: Values,
    step: Values,
    agent: Values,
    seeds: int,
    agents: int,
    m: int,
    start: int,
    stop: int,
) -> tuple[Values, Values]:
    """As `follow` in time steps, over rows sorted by seed, user and step, one of a step at most.

    Returns counts (3, seeds, agents), of which the last is unused, and retained (seeds, agents).
    """
    counts = np.zeros((3, seeds, agents), np.int64)
    retained = np.zeros((seeds, agents))
    first = np.full(agents, -1, np.int64)
    hits = np.zeros(agents, np.int64)
    tried = np.zeros(agents, np.int64)
    begin = 0
    while begin < seed.size:
        end, count = begin, 0
        while end < seed.size and seed[end] == seed[begin] and user[end] == user[begin]:
            one = agent[end]
            if first[one] < 0:
                first[one], hits[one] = end, 0
                tried[count] = one
                count += 1
            elif step[end] - step[first[one]] <= m:
                hits[one] += 1
            end += 1
        episode = seed[begin]
        for place in range(count):
            one = tried[place]
            at = first[one]
            first[one] = -1
            if step[at] < start:
                continue
            counts[0, episode, one] += 1
            if step[at] + m < stop:
                counts[1, episode, one] += 1
                retained[episode, one] += hits[one] / m
        begin = end
    return counts, retained


@kernel
def draw_seeds(code: np.uint64, first: int, counts: Values) -> None:
    """Count how often each of some seeds is drawn in resamples `first`, `first` + 1, ...

    `counts` is of shape (resamples, seeds); a resample draws as many seeds as there are.
    """
    resamples, seeds = counts.shape
    drawn = np.empty(seeds, np.int64)
    for place in range(resamples):
        for index in range(seeds):
            drawn[index] = int(draw_uniform(code, first + place, index) * seeds)
        for index in range(seeds):
            counts[place, drawn[index]] += 1
