"""Whom an agent selects among its own targets: one or several, with targets closed per row.

The same rules, draws and learning as `select` and `preference`, for choosers that each have their
own few targets (an edge of a governance graph each), where what is open differs from row to row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketeval.choice.preference import evidence, learn, worth
from marketeval.choice.rules import EPSILON_GREEDY, THOMPSON
from marketeval.choice.select import NOBODY, best, score_of
from marketeval.core.compiled import kernel
from marketeval.core.streams import draw_uniform

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]
Codes = NDArray[np.uint64]
GIVEN = 9  # the code of a rule whose scores are computed before (LinUCB)


@kernel
def pick(
    rule: int,
    theta: float,
    kind: int,
    first: Floats,
    second: Floats,
    given: Floats,
    rows: Integers,
    slots: Integers,
    open_to: Truths,
    bonus: Floats,
    tie_rank: Integers,
    keyed_ties: bool,
    codes: Codes,
    own: np.uint64,
    step: int,
    count: int,
) -> tuple[Integers, Truths]:
    """The `count` best distinct targets of each row, best first, NOBODY where there are fewer.

    Parameters
    ----------
    first, second : (state rows, targets), see `choice.preference`
    given : (rows, targets) scores of rule GIVEN, else of any shape
    open_to, bonus : (rows, targets): who may be picked, and what is added to its worth
    codes : (2, targets), the targets' streams of choice and of ties; own : the chooser's own

    Returns the picks, shape (rows, count), and whether each row explored.
    """
    targets = first.shape[1]
    chosen = np.full((rows.size, count), NOBODY, np.int64)
    explored = np.zeros(rows.size, np.bool_)
    scores = np.empty(targets)
    ranks = np.empty(targets, np.int64)
    left = np.empty(targets, np.bool_)
    for place in range(rows.size):
        row, slot = rows[place], slots[place]
        total = 0.0
        for target in range(targets):
            left[target] = open_to[place, target]
            ranks[target] = tie_rank[target]
            if keyed_ties:
                ranks[target] = np.int64(draw_uniform(codes[1, target], step, slot) * 2.0**53)
            if left[target] and rule != GIVEN:
                total += evidence(kind, first[row, target], second[row, target])
        explores = rule == EPSILON_GREEDY and draw_uniform(own, step, slot) < theta
        explored[place] = explores
        for target in range(targets):
            if explores:
                scores[target] = draw_uniform(codes[0, target], step, slot)
            elif rule == GIVEN:
                scores[target] = given[place, target] + bonus[place, target]
            else:
                value = worth(kind, first[row, target], second[row, target])
                tried = evidence(kind, first[row, target], second[row, target])
                more = bonus[place, target]
                if rule != THOMPSON:
                    value += more
                scores[target] = score_of(
                    rule, value, tried, total, theta, codes[0, target], step, slot
                )
                if rule == THOMPSON:
                    scores[target] += more
        for number in range(count):
            winner = best(scores, ranks, left)
            if winner == NOBODY:
                break
            chosen[place, number] = winner
            left[winner] = False
    return chosen, explored


@kernel
def learn_all(
    kind: int,
    first: Floats,
    second: Floats,
    rows: Integers,
    targets: Integers,
    signals: Floats,
    rate: float,
    floor: float,
    forgetting: float,
    prior: float,
) -> None:
    """Let the rows learn from outcomes one after the other; NaN signals teach nothing."""
    for place in range(rows.size):
        if signals[place] == signals[place]:
            learn(
                kind, first[rows[place]], second[rows[place]], targets[place], signals[place],
                rate, floor, forgetting, prior,
            )  # fmt: skip
