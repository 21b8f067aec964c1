"""Who interacts in a plain market, and what about: users and questions drawn for many steps.

Large episodes are dealt to blocks of users, many small ones to blocks of episodes, so that one
block after the other, or several on threads, can be followed through all these steps (`drift`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import inline, kernel
from marketeval.core.streams import draw_order, draw_uniform

Integers = NDArray[np.int64]
Codes = NDArray[np.uint64]

HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)  # of a place: the slot, and the row
ONE = np.uint64(1)


class Dealt(NamedTuple):
    """Who interacts, step by step in the order of the blocks: the slot and the row of the state
    in one number, of shape (steps, interactions), and where each block begins, of shape
    (steps, blocks + 1)."""

    place: Codes
    begins: Integers


@inline
def _draw(
    code: np.uint64, step: int, users: int, replacement: bool, order: Integers,
    drawn: NDArray[np.int32],
) -> None:  # fmt: skip
    """The users of a step; `order` has room for all of them, if none may come twice."""
    if replacement:
        for place in range(drawn.size):
            drawn[place] = int(draw_uniform(code, step, place) * users)
        return
    for place in range(users):
        order[place] = place
    draw_order(code, step, order, drawn.size)
    for place in range(drawn.size):
        drawn[place] = order[place]


@kernel
def deal_users(
    code: np.uint64, begin: int, end: int, since: int, users: int, replacement: bool,
    who: NDArray[np.int32], places: Codes, begins: Integers,
) -> None:  # fmt: skip
    """Draw the users of steps `begin` to `end` of one episode, and sort their slots into piles of
    users, as many as `begins` has."""
    share = np.uint64(((begins.shape[1] - 1) << 32) // users)
    order = np.arange(0 if replacement else users)
    at = np.empty(begins.shape[1], np.uint64)
    for step in range(begin, end):
        drawn, here, its = who[step], begins[step], places[step]
        count = drawn.size
        _draw(code, since + step, users, replacement, order, drawn)
        at[:] = 0
        for place in range(count):
            user = np.uint64(np.uint32(drawn[place]))
            at[(user * share >> HALF) + ONE] += ONE
        for one in range(at.size - 1):
            at[one + 1] += at[one]
        here[:] = at
        for place in range(count):
            user = np.uint64(np.uint32(drawn[place]))
            pile = user * share >> HALF
            its[at[pile]] = (np.uint64(place) << HALF) | user
            at[pile] += ONE


@kernel
def deal_episodes(
    codes: Codes, begin: int, end: int, since: int, users: int, replacement: bool,
    who: NDArray[np.int32], places: Codes,
) -> None:  # fmt: skip
    """Draw the users of some steps of episodes `begin` to `end`; shapes as in `Dealt`."""
    _, steps, count = who.shape
    order = np.arange(0 if replacement else users)
    for step in range(steps):
        for episode in range(begin, end):
            drawn = who[episode, step]
            _draw(codes[episode], since + step, users, replacement, order, drawn)
            for place in range(count):
                to = episode * count + place
                row = np.uint64(episode * users + drawn[place])
                places[step, to] = (np.uint64(place) << HALF) | row


@kernel
def ask(codes: Codes, start: int, questions: int, out: NDArray[np.int32]) -> None:
    """The questions of the interactions from number `start` on; `out` is (episodes, rows)."""
    pool, other = np.empty(questions, np.int32), np.empty(questions, np.uint64)
    for episode in range(out.shape[0]):
        code, row, done = codes[episode], out[episode], 0
        while done < row.size:
            turn = (start + done) // questions
            first = start + done - turn * questions
            last = min(questions, first + row.size - done)
            for place in range(last):  # as `draw_order`, but nobody comes back to a place
                u = draw_uniform(code, turn, place)
                other[place] = place + int(u * (questions - place))
            for place in range(questions):
                pool[place] = place
            for place in range(first):
                pool[other[place]] = pool[place]
            for place in range(first, last):
                at, to = np.uint64(place), np.uint64(done + place - first)
                row[to] = pool[other[at]]
                pool[other[at]] = pool[at]
            done += last - first
