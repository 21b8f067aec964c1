"""One whole episode in one compiled call, for markets where every answer is known beforehand.

It tells the same story as `InformationMarket.play`, draws the same keyed numbers and calls the same
compiled formulas, slot by slot instead of array by array; so the log and the bits of the final
state are the same (tests/markets/information/test_engines.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketeval.choice import character as c
from marketeval.choice import preference
from marketeval.choice._math import race
from marketeval.choice.experience import experience_one
from marketeval.choice.select import NOBODY, NOT_FORCED, choose_one
from marketeval.core.compiled import inline, kernel
from marketeval.core.streams import draw_order, draw_uniform
from marketeval.events.information import CORRECT, INCORRECT, MISSING, OK, OUTAGE, UNGRADED

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]
Codes = NDArray[np.uint64]

ENTRY, EXIT, PRICE, LATENCY, QUALITY, OUTAGE_FAILS, OUTAGE_HIDDEN = range(7)
RECORDED, REDRAWN, FIXED = range(3)


class Rules(NamedTuple):
    """The market's specification; `changes` has a row (step, agent, kind, until) per change.

    `block` slots choose from one state; 0 = all of a step. Arrays: characters (segments, SIZE),
    signal_of_grade (grades,), question_topic (questions,), tie_rank (agents,), change_values.
    """

    horizon: int
    per_step: int
    topics: int
    per_topic: bool
    block: int
    replacement: bool
    keyed_ties: bool
    arrivals: float
    leavers: bool
    missing_score: float
    characters: Floats
    signal_of_grade: Floats
    question_topic: Integers
    tie_rank: Integers
    changes: Integers
    change_values: Floats


class Tables(NamedTuple):
    """All agents' answers laid end to end; agent a's rows of question q start at
    starts[offset[a] + q]. Where `mode` is not RECORDED, the rate and the constants count."""

    mode: Integers
    rate: Floats
    cost: Floats
    latency: Floats
    offset: Integers
    starts: Integers
    score: Floats
    grade: NDArray[np.int8]
    costs: Floats
    latencies: Floats


class Draws(NamedTuple):
    """Stream codes; those of agents have shape (agents,), `choice` (2, agents), `user` (3,)."""

    users: np.uint64
    questions: np.uint64
    arrivals: np.uint64
    user: Codes
    choice: Codes
    outcome: Codes
    knows: Codes
    sample: Codes
    quality: Codes


class State(NamedTuple):
    """The users' and agents' state, changed in place; see `Population` and `Supply`."""

    segment: Integers
    active: Truths
    activity: Floats
    last: Integers
    mood: Floats
    discontent: Integers
    first: Floats
    second: Floats
    successes: Floats
    trials: Floats
    present: Truths
    hidden_until: Integers
    failing_until: Integers
    price: Floats
    latency: Floats
    quality: Floats


class Columns(NamedTuple):
    """What happened, a row per slot in step order; agent is NOBODY where nobody could be asked.

    Per step: `rows`, `newcomers` and `leavers` count; `left` and `left_mood` name who left.
    """

    step: NDArray[np.int32]
    slot: NDArray[np.int32]
    user: NDArray[np.int32]
    question: NDArray[np.int32]
    agent: NDArray[np.int16]
    explored: Truths
    score: Floats
    grade: NDArray[np.int8]
    cost: Floats
    latency: Floats
    signal: Floats
    utility: Floats
    status: NDArray[np.int8]
    rows: Integers
    newcomers: Integers
    leavers: Integers
    left: Integers
    left_mood: Floats


@kernel
def play(rules: Rules, tables: Tables, draws: Draws, state: State, users: int, out: Columns) -> int:
    """Play one episode: fill `out`, change `state`, return the number of users at the end."""
    agents = state.first.shape[1]
    available = np.empty(agents, np.bool_)
    exposure = np.zeros(agents)
    shares = np.zeros(agents)
    scores, ranks, open_to = (
        np.empty(agents),
        np.empty(agents, np.int64),
        np.empty(agents, np.bool_),
    )
    pool = np.empty(0, np.int64)
    questions, rounds, asked = rules.question_topic.size, 0, 0
    active = np.flatnonzero(state.active)
    weights = state.activity[active] if state.activity.size else state.activity
    change, row, gone = 0, 0, 0

    for step in range(rules.horizon):
        while change < rules.changes.shape[0] and rules.changes[change, 0] == step:
            _apply(rules, state, change)
            change += 1
        before = users
        if rules.arrivals > 0.0:
            whole = int(np.floor(rules.arrivals))
            extra = draw_uniform(draws.arrivals, step, 0) < rules.arrivals - whole
            for newcomer in range(users, users + whole + int(extra)):
                state.active[newcomer] = True
            users += whole + int(extra)
        out.newcomers[step] = users - before
        if users > before:
            active = np.flatnonzero(state.active)
            weights = state.activity[active] if state.activity.size else state.activity

        for agent in range(agents):
            available[agent] = state.present[agent] and state.hidden_until[agent] <= step
        chosen_users = _draw_users(rules, draws.users, step, active, weights)
        count = chosen_users.size
        out.rows[step] = count
        for slot in range(count):
            if asked == pool.size:
                pool = np.arange(questions)
                draw_order(draws.questions, rounds, pool, questions)
                rounds += 1
                asked = 0
            out.step[row + slot], out.slot[row + slot] = step, slot
            out.user[row + slot], out.question[row + slot] = chosen_users[slot], pool[asked]
            asked += 1

        block = max(count, 1) if rules.block == 0 else rules.block
        for start in range(0, count, block):
            stop = min(count, start + block)
            for slot in range(start, stop):
                user, question = chosen_users[slot], out.question[row + slot]
                place = _row_of(rules, user, question)
                out.agent[row + slot], out.explored[row + slot] = choose_one(
                    rules.characters[state.segment[user]], state.first[place],
                    state.second[place], state.last[user], NOT_FORCED, available, shares,
                    rules.tie_rank, rules.keyed_ties, draws.choice, draws.user, step, slot,
                    scores, ranks, open_to,
                )  # fmt: skip
            for slot in range(start, stop):
                at, agent, user = row + slot, int(out.agent[row + slot]), chosen_users[slot]
                out.signal[at] = out.utility[at] = out.score[at] = np.nan
                out.cost[at] = out.latency[at] = np.nan
                out.grade[at], out.status[at] = UNGRADED, OK
                if agent == NOBODY:
                    continue
                state.last[user] = agent
                exposure[agent] += 1.0
                if state.failing_until[agent] > step:
                    out.score[at] = out.cost[at] = out.latency[at] = 0.0
                    out.status[at] = OUTAGE
                else:
                    score, grade, cost, latency = _answer(
                        tables, draws, agent, out.question[at], step, slot, state.quality[agent]
                    )
                    out.score[at], out.grade[at] = score, grade
                    out.cost[at] = cost * state.price[agent]
                    out.latency[at] = latency * state.latency[agent]
                    if score != score:
                        out.status[at], out.score[at] = MISSING, rules.missing_score
                        if out.score[at] == out.score[at]:
                            out.cost[at] = out.cost[at] if out.cost[at] == out.cost[at] else 0.0
                            felt = out.latency[at] == out.latency[at]
                            out.latency[at] = out.latency[at] if felt else 0.0
                if out.score[at] != out.score[at]:
                    continue
                signal = rules.signal_of_grade[out.grade[at]]
                if signal != signal:
                    signal = 2.0 * out.score[at] - 1.0
                place = _row_of(rules, user, out.question[at])
                out.signal[at], out.utility[at] = experience_one(
                    rules.characters[state.segment[user]], user, agent, out.score[at], signal,
                    out.cost[at], out.latency[at], state.first[place], state.second[place],
                    state.successes, state.trials, state.mood, state.discontent,
                )  # fmt: skip
            total = exposure.sum()
            for agent in range(agents):
                shares[agent] = exposure[agent] / total if total else 0.0
        row += count

        out.leavers[step] = 0
        if rules.leavers:
            for user in active:
                patience = rules.characters[state.segment[user], c.PATIENCE]
                if state.discontent[user] >= patience:
                    state.active[user] = False
                    out.left[gone], out.left_mood[gone] = user, state.mood[user]
                    gone += 1
                    out.leavers[step] += 1
            if out.leavers[step]:
                active = np.flatnonzero(state.active)
                weights = state.activity[active] if state.activity.size else state.activity
    return users


@inline
def _row_of(rules: Rules, user: int, question: int) -> int:
    return user * rules.topics + rules.question_topic[question] if rules.per_topic else user


@inline
def _draw_users(
    rules: Rules, code: np.uint64, step: int, active: Integers, weights: Floats
) -> Integers:
    if active.size == 0:
        return active
    if rules.replacement:
        drawn = np.empty(rules.per_step, np.int64)
        if weights.size == 0:
            for slot in range(rules.per_step):
                drawn[slot] = active[int(draw_uniform(code, step, slot) * active.size)]
            return drawn
        upto = np.cumsum(weights)
        for slot in range(rules.per_step):
            u = draw_uniform(code, step, slot) * upto[-1]
            drawn[slot] = active[min(np.searchsorted(upto, u, side="right"), active.size - 1)]
        return drawn
    count = min(rules.per_step, active.size)
    if weights.size == 0:
        order = np.arange(active.size)
        draw_order(code, step, order, count)
        return active[order[:count]]
    u = np.empty(active.size)
    for place in range(active.size):
        u[place] = draw_uniform(code, step, active[place])
    return active[np.argsort(race(u, weights), kind="mergesort")[:count]]


@inline
def _apply(rules: Rules, state: State, change: int) -> None:
    agent, kind, until = (
        rules.changes[change, 1],
        rules.changes[change, 2],
        rules.changes[change, 3],
    )
    value = rules.change_values[change]
    if kind in (ENTRY, EXIT):
        state.present[agent] = kind == ENTRY
        rows = state.segment.size * (rules.topics if rules.per_topic else 1)
        kinds, priors = np.empty(rows, np.int64), np.empty(rows)
        for row in range(rows):
            user = row // rules.topics if rules.per_topic else row
            kinds[row] = int(rules.characters[state.segment[user], c.LEARNING])
            priors[row] = rules.characters[state.segment[user], c.PRIOR]
        if kind == ENTRY:
            preference.enter(kinds, state.first, state.second, agent, priors)
        else:
            preference.leave(kinds, state.first, state.second, agent)
            state.successes[:, agent] = 0.0
            state.trials[:, agent] = 0.0
    elif kind == PRICE:
        state.price[agent] = value
    elif kind == LATENCY:
        state.latency[agent] = value
    elif kind == QUALITY:
        state.quality[agent] = value
    elif kind == OUTAGE_HIDDEN:
        state.hidden_until[agent] = until
    else:
        state.failing_until[agent] = until


@inline
def _answer(
    tables: Tables, draws: Draws, agent: int, question: int, step: int, slot: int, change: float
) -> tuple[float, int, float, float]:
    """Score, grade, cost and latency of one answer; `change` is the change of its quality."""
    grade = UNGRADED
    if tables.mode[agent] == RECORDED:
        first = tables.starts[tables.offset[agent] + question]
        samples = tables.starts[tables.offset[agent] + question + 1] - first
        if samples > 1:
            first += int(draw_uniform(draws.sample[agent], step, slot) * samples)
        score, cost, latency = tables.score[first], tables.costs[first], tables.latencies[first]
        grade = int(tables.grade[first])
    else:
        if tables.mode[agent] == FIXED:
            u = draw_uniform(draws.knows[agent], 0, question)
        else:
            u = draw_uniform(draws.outcome[agent], step, slot)
        score = 1.0 if u < tables.rate[agent] else 0.0
        cost, latency = tables.cost[agent], tables.latency[agent]
    if change != 0.0 and draw_uniform(draws.quality[agent], step, slot) < abs(change):
        if change > 0.0 and score == score:
            score, grade = 1.0, (grade if grade == UNGRADED else CORRECT)
        elif change < 0.0 and score > 0.0:
            score, grade = 0.0, (grade if grade == UNGRADED else INCORRECT)
    return score, grade, cost, latency
