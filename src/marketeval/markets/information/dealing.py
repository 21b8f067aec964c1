"""Who interacts in a plain market, and what about: users and questions drawn for many steps.

Large episodes are dealt to blocks of users, many small ones to blocks of episodes, so that one
block after the other, or several on threads, can be followed through all these steps (`drift`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import kernel
from marketeval.core.streams import draw_order, draw_uniform

Integers = NDArray[np.int64]
Codes = NDArray[np.uint64]

HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)  # of a place: the slot, and the row


class Dealt(NamedTuple):
    """Who interacts, step by step in the order of the blocks: the slot and the row of the state
    in one number, of shape (steps, interactions), and where each block begins, of shape
    (steps, blocks + 1)."""

    place: Codes
    begins: Integers


@kernel
def deal_users(
    code: np.uint64, begin: int, end: int, since: int, users: int, shift: np.uint32,
    replacement: bool, who: NDArray[np.int32], places: Codes, begins: Integers,
) -> None:  # fmt: skip
    """Draw the users of steps `begin` to `end` of one episode, and sort their slots by blocks."""
    order = np.arange(0 if replacement else users)
    at = np.empty(begins.shape[1], np.int64)
    for step in range(begin, end):
        drawn, here = who[step], begins[step]
        count = drawn.size
        if replacement:
            for place in range(count):
                drawn[place] = int(draw_uniform(code, since + step, place) * users)
        else:
            for place in range(users):
                order[place] = place
            draw_order(code, since + step, order, count)
            for place in range(count):
                drawn[place] = order[place]
        here[:] = 0
        for place in range(count):
            here[np.uint64(np.uint32(drawn[place]) >> shift) + np.uint64(1)] += 1
        for block in range(here.size - 1):
            here[block + 1] += here[block]
        at[:] = here
        for place in range(count):
            mine = np.uint64(np.uint32(drawn[place]) >> shift)
            to = np.uint64(at[mine])
            at[mine] += 1
            places[step, to] = (np.uint64(place) << HALF) | np.uint64(drawn[place])


@kernel
def deal_episodes(
    codes: Codes, begin: int, end: int, since: int, users: int, replacement: bool,
    who: NDArray[np.int32], places: Codes,
) -> None:  # fmt: skip
    """Draw the users of some steps of episodes `begin` to `end`; shapes as in `Dealt`."""
    _, steps, count = who.shape
    order = np.arange(users)
    for step in range(steps):
        for episode in range(begin, end):
            drawn = who[episode, step]
            if replacement:
                for place in range(count):
                    u = draw_uniform(codes[episode], since + step, place)
                    drawn[place] = int(u * users)
            else:
                for place in range(users):
                    order[place] = place
                draw_order(codes[episode], since + step, order, count)
                for place in range(count):
                    drawn[place] = order[place]
            for place in range(count):
                to = episode * count + place
                row = np.uint64(episode * users + drawn[place])
                places[step, to] = (np.uint64(place) << HALF) | row


@kernel
def ask(codes: Codes, start: int, questions: int, out: NDArray[np.int32]) -> None:
    """The questions of the interactions from number `start` on; `out` is (episodes, rows)."""
    pool, u = np.empty(questions, np.int32), np.empty(questions)
    for episode in range(out.shape[0]):
        done, rows = 0, out.shape[1]
        while done < rows:
            turn = (start + done) // questions
            first = start + done - turn * questions
            last = min(questions, first + rows - done)
            for place in range(last):
                u[place] = draw_uniform(codes[episode], turn, place)
            for place in range(questions):
                pool[place] = place
            for place in range(last):  # as `draw_order`
                other = place + int(u[place] * (questions - place))
                pool[place], pool[other] = pool[other], pool[place]
            for place in range(first, last):
                out[episode, done] = pool[place]
                done += 1
