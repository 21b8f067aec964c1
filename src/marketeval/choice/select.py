"""Which agent a user asks: the one compiled path from state and keyed draws to a choice.

In this order: a pick made elsewhere (`forced`), inertia, exploration, the rule's scores with the
popularity term added to each worth, the portfolio, and ties. Agents stand in sorted-id order; the
order of the configuration (`tie_rank`) decides ties only, unless ties are keyed.
"""

from __future__ import annotations

import types
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from marketeval.choice import character as c
from marketeval.choice import epsilon_greedy, logit, proportional, thompson, ucb1
from marketeval.choice.preference import evidence, worth
from marketeval.choice.rules import EPSILON_GREEDY, LOGIT, PROPORTIONAL, THOMPSON, UCB1
from marketeval.core.compiled import inline, kernel
from marketeval.core.streams import draw_uniform

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = NDArray[np.uint64]
Truths = NDArray[np.bool_]

NOBODY = -1  # no agent is available
NOT_FORCED, EXPLOIT = -1, -2  # values of `forced` besides an agent


@inline
def score_of(
    rule: int,
    worth_: float,
    count: float,
    total: float,
    theta: float,
    code: np.uint64,
    step: int,
    slot: int,
) -> float:
    """The score of one agent under a built-in rule: one line per rule."""
    if rule == EPSILON_GREEDY:
        return epsilon_greedy.score(worth_, count, total, theta, code, step, slot)
    if rule == PROPORTIONAL:
        return proportional.score(worth_, count, total, theta, code, step, slot)
    if rule == LOGIT:
        return logit.score(worth_, count, total, theta, code, step, slot)
    if rule == UCB1:
        return ucb1.score(worth_, count, total, theta, code, step, slot)
    if rule == THOMPSON:
        return thompson.score(worth_, count, total, theta, code, step, slot)
    return np.nan


@inline
def best(scores: Floats, tie_rank: Integers, open_to: Truths) -> int:
    """The open agent with the highest score; equal scores by the lower tie rank."""
    winner = NOBODY
    for agent in range(scores.size):
        if not open_to[agent]:
            continue
        if (
            winner == NOBODY
            or scores[agent] > scores[winner]
            or (scores[agent] == scores[winner] and tie_rank[agent] < tie_rank[winner])
        ):
            winner = agent
    return winner


@inline
def choose_one(
    character: Floats,
    first: Floats,
    second: Floats,
    last: int,
    forced: int,
    available: Truths,
    shares: Floats,
    tie_rank: Integers,
    keyed_ties: bool,
    agent_codes: Codes,
    user_codes: Codes,
    step: int,
    slot: int,
    scores: Floats,
    ranks: Integers,
    open_to: Truths,
) -> tuple[int, bool]:
    """One user's choice and whether it was exploration; the last three arrays are work space.

    `agent_codes` are the agents' streams of choice and of ties, shape (2, agents); `user_codes`
    those for inertia, exploration and portfolio, shape (3,).
    """
    agents = first.size
    known = 0
    for agent in range(agents):
        open_to[agent] = available[agent] and first[agent] == first[agent]
        known += open_to[agent]
    if known == 0:  # nobody I know is there: anybody who is
        for agent in range(agents):
            open_to[agent] = available[agent]
            known += open_to[agent]
        if known == 0:
            return NOBODY, False
    if forced >= 0:
        return forced, True
    if (
        character[c.INERTIA] > 0.0
        and last >= 0
        and open_to[last]
        and draw_uniform(user_codes[0], step, slot) < character[c.INERTIA]
    ):
        return last, False

    for agent in range(agents):
        ranks[agent] = tie_rank[agent]
        if keyed_ties:
            ranks[agent] = np.int64(draw_uniform(agent_codes[1, agent], step, slot) * 2.0**53)
    rule, theta = int(character[c.RULE]), character[c.THETA]
    if (
        rule == EPSILON_GREEDY
        and forced == NOT_FORCED
        and draw_uniform(user_codes[1], step, slot) < theta
    ):
        for agent in range(agents):
            scores[agent] = draw_uniform(agent_codes[0, agent], step, slot)
        return best(scores, ranks, open_to), True

    kind = int(character[c.LEARNING])
    total = 0.0
    for agent in range(agents):
        if open_to[agent] and first[agent] == first[agent]:
            total += evidence(kind, first[agent], second[agent])
    for agent in range(agents):
        if not open_to[agent]:
            continue
        value, count = 0.0, 0.0
        if first[agent] == first[agent]:
            value = worth(kind, first[agent], second[agent])
            count = evidence(kind, first[agent], second[agent])
        bonus = character[c.POPULARITY] * shares[agent]
        if rule != THOMPSON:  # its worth is drawn: the term is added to the draw
            value += bonus
        scores[agent] = score_of(
            rule, value, count, total, theta, agent_codes[0, agent], step, slot
        )
        if rule == THOMPSON:
            scores[agent] += bonus

    places = min(int(character[c.PORTFOLIO]), known)
    skip = int(draw_uniform(user_codes[2], step, slot) * places) if places > 1 else 0
    for _ in range(skip):
        open_to[best(scores, ranks, open_to)] = False
    return best(scores, ranks, open_to), False


@kernel
def choose(
    characters: Floats,
    segments: Integers,
    users: Integers,
    rows: Integers,
    slots: Integers,
    forced: Integers,
    first: Floats,
    second: Floats,
    last: Integers,
    available: Truths,
    shares: Floats,
    tie_rank: Integers,
    keyed_ties: bool,
    agent_codes: Codes,
    user_codes: Codes,
    step: int,
) -> tuple[Integers, Truths]:
    """The choices of a wave of users, all from the state as it is now.

    `users`, `rows` (of the state), `slots` and `forced` have one entry per interaction; `first`
    and `second` are (rows, agents); `segments` and `last` have one entry per user of the market.
    Returns the agent (or NOBODY) and whether it was exploration, per interaction.
    """
    agents = first.shape[1]
    scores = np.empty(agents)
    ranks = np.empty(agents, np.int64)
    open_to = np.empty(agents, np.bool_)
    chosen = np.empty(users.size, np.int64)
    explored = np.empty(users.size, np.bool_)
    for place in range(users.size):
        user, row = users[place], rows[place]
        chosen[place], explored[place] = choose_one(
            characters[segments[user]],
            first[row],
            second[row],
            last[user],
            forced[place],
            available,
            shares,
            tie_rank,
            keyed_ties,
            agent_codes,
            user_codes,
            step,
            slots[place],
            scores,
            ranks,
            open_to,
        )
    return chosen, explored


def choose_with(score: Callable[..., float]) -> Callable[..., tuple[Integers, Truths]]:
    """The kernel above with the score of a rule from outside this package.

    It is compiled in each process that uses it, since only shipped kernels are cached.
    """
    import numba

    def with_score(function: Callable[..., object], **names: object) -> Callable[..., object]:
        body = function.py_func  # type: ignore[attr-defined]  # numba's handle on the source
        copied = types.FunctionType(body.__code__, {**body.__globals__, **names}, body.__name__)
        return numba.njit(nogil=True, error_model="numpy")(copied)

    jitted = numba.njit(nogil=True, error_model="numpy")(score)

    def of(rule, worth_, count, total, theta, code, step, slot):  # type: ignore[no-untyped-def]
        return jitted(worth_, count, total, theta, code, step, slot)

    dispatch = numba.njit(nogil=True, error_model="numpy")(of)
    one = with_score(choose_one, score_of=dispatch)
    return with_score(choose, choose_one=one)  # type: ignore[return-value]
