"""The kernels of the plainest market: epsilon-greedy users whose preferences drift, and coins.

Nobody in it sees anybody else, so users can be followed in blocks through many steps, and episodes
of many seeds side by side, in whatever order suits the memory: each keyed draw and each formula is
that of the general path (tests/markets/information/test_plain.py). Interactions of some steps lie
in arrays of shape (episodes, steps, slots) in the order of the log. The state has a row per user,
episode by episode, and `width` columns, a multiple of eight: 0 stands for an agent that is not in
the market, and adds nothing to a sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import inline, kernel
from marketeval.core.streams import draw_order, draw_uniform

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = NDArray[np.uint64]
Places = NDArray[np.uint32]
Truths = NDArray[np.bool_]

FEW = 16  # interactions below which it does not pay to draw for all of them at once
LANES = 8  # numbers that one line of memory holds
EXPLORED, RIGHT = 14, 15  # bits of what is noted of an interaction, above those of the agent
MASK = (1 << EXPLORED) - 1


class Rule(NamedTuple):
    """What decides in these steps; `columns` are the agents in the market, ties first.

    By agent, of shape (width,): `rate` of success and whether answers are `fixed`; what a wrong
    and a right answer teach (rate of learning times signal) and are worth, of shape (2, width).
    """

    epsilon: float
    floor: float
    mood_rate: float
    columns: Places
    rate: Floats
    fixed: Truths
    teaches: Floats
    worth: Floats


class Draws(NamedTuple):
    """Codes of the streams, of shape (episodes,), or (episodes, width) of those of agents."""

    users: Codes
    questions: Codes
    explore: Codes
    choice: Codes
    outcome: Codes
    knows: Codes


class Dealt(NamedTuple):
    """Who interacts, step by step in the order of the blocks: `slot` and `row` of the state, of
    shape (steps, interactions), and where each block begins, of shape (steps, blocks + 1)."""

    slot: Places
    row: Places
    begins: Integers


@kernel
def deal_block(
    code: np.uint64, step: int, users: int, shift: np.uint32, replacement: bool,
    who: NDArray[np.int32], slot: Places, row: Places, begins: Integers,
) -> None:  # fmt: skip
    """Draw the users of one step of one episode, and sort their slots by blocks of users."""
    count = who.size
    if replacement:
        for place in range(count):
            who[place] = int(draw_uniform(code, step, place) * users)
    else:
        order = np.arange(users)
        draw_order(code, step, order, count)
        for place in range(count):
            who[place] = order[place]
    begins[:] = 0
    for place in range(count):
        begins[np.uint64(np.uint32(who[place]) >> shift) + np.uint64(1)] += 1
    for block in range(begins.size - 1):
        begins[block + 1] += begins[block]
    at = begins.copy()
    for place in range(count):
        mine = np.uint64(np.uint32(who[place]) >> shift)
        to = np.uint64(at[mine])
        at[mine] += 1
        slot[to], row[to] = place, who[place]


@kernel
def deal_episodes(
    codes: Codes, begin: int, end: int, since: int, users: int, replacement: bool,
    who: NDArray[np.int32], slot: Places, row: Places,
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
                slot[step, to], row[step, to] = place, episode * users + drawn[place]


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


@kernel
def live(
    since: int, together: bool, rule: Rule, draws: Draws, dealt: Dealt,
    episode_of: Places, first: Floats, mood: Floats, last: NDArray[np.int16],
    turns: NDArray[np.int32], question: NDArray[np.int32], note: NDArray[np.uint16], block: int,
) -> None:  # fmt: skip
    """Let the users of one block live through some steps; `note` gets what became of each.

    `together`: all choices of a step come before what is learned in it; otherwise each user's
    next choice comes after. `episode_of` names the episode of each row of the state (empty if
    there is one); `turns` is work space, zeros of a number per row; `question` is empty where no
    answer is fixed. `note`: agent + 2**EXPLORED if explored + 2**RIGHT if right; NaN mood = never
    there.
    """
    steps = dealt.slot.shape[0]
    most = 0
    for step in range(steps):
        most = max(most, dealt.begins[step, block + 1] - dealt.begins[step, block])
    slot, row = np.empty(most, np.uint32), np.empty(most, np.uint32)
    episode = np.zeros(most, np.uint32)
    u, code, key = np.empty(most), np.empty(most, np.uint64), np.empty(most, np.int64)
    when = np.empty(most, np.int64)
    agent, explored = np.empty(most, np.uint16), np.empty(most, np.bool_)
    who, slot_of, best = np.empty(most, np.uint32), np.empty(most, np.uint32), np.empty(most)
    picked, episode_at = np.empty(most, np.uint16), np.zeros(most, np.uint32)
    waves = np.empty(most + 2, np.int64)
    lone = episode_of.size == 0
    some_fixed = question.size > 0
    per_step = note.shape[2]
    noted, asked = note.reshape(-1), question.reshape(-1)
    columns, width = rule.columns, first.shape[1]

    for step in range(steps):
        begin, end = dealt.begins[step, block], dealt.begins[step, block + 1]
        now = since + step
        waves[0], groups = 0, 1
        waves[1] = end - begin
        slots, rows = dealt.slot[step, begin:end], dealt.row[step, begin:end]
        if not together:
            groups = _waves(slots, rows, turns, waves, slot, row)
            slots, rows = slot[: end - begin], row[: end - begin]
        for group in range(groups):
            start, count = waves[group], waves[group + 1] - waves[group]
            slot_, row_ = slots[start : start + count], rows[start : start + count]
            if not lone:
                for place in range(count):
                    episode[place] = episode_of[np.uint64(row_[place])]

            # Whom each asks, by what it holds to be best now, or to explore.
            if count < FEW:
                for place in range(count):
                    mine, one = np.uint64(row_[place]), np.uint64(episode[place])
                    code[0] = draws.explore[one]
                    explored[place] = draw_uniform(code[0], now, slot_[place]) < rule.epsilon
                    if explored[place]:
                        agent[place] = _drawn(draws.choice[one], columns, now, slot_[place])
                    else:
                        agent[place] = _best(first[mine], columns)
            else:
                if lone:
                    for place in range(count):
                        u[place] = draw_uniform(draws.explore[0], now, slot_[place])
                else:
                    for place in range(count):
                        code[place] = draws.explore[np.uint64(episode[place])]
                    for place in range(count):
                        u[place] = draw_uniform(code[place], now, slot_[place])
                exploring = 0
                for place in range(count):
                    explored[place] = u[place] < rule.epsilon
                    who[exploring], slot_of[exploring] = place, slot_[place]
                    episode_at[exploring] = episode[place]
                    best[exploring] = -1.0
                    exploring += explored[place]
                for place in range(count):
                    agent[place] = _best(first[np.uint64(row_[place])], columns)
                for column in columns:  # as `_drawn`, for all explorers at once
                    for place in range(exploring):
                        at = np.uint64(episode_at[place])
                        code[place] = draws.choice[at, np.uint64(column)]
                    for place in range(exploring):
                        drawn = draw_uniform(code[place], now, slot_of[place])
                        higher = drawn > best[place]
                        best[place] = drawn if higher else best[place]
                        picked[place] = column if higher else picked[place]
                for place in range(exploring):
                    agent[np.uint64(who[place])] = picked[place]

            # Answers: right or wrong by a keyed draw.
            for place in range(count):
                code[place] = draws.outcome[np.uint64(episode[place]), np.uint64(agent[place])]
            if some_fixed:
                for place in range(count):
                    key[place], when[place] = slot_[place], now
                    if rule.fixed[np.uint64(agent[place])]:
                        at = (episode[place] * steps + step) * per_step + slot_[place]
                        key[place], when[place] = asked[np.uint64(at)], 0
                        code[place] = draws.knows[
                            np.uint64(episode[place]), np.uint64(agent[place])
                        ]
                for place in range(count):
                    u[place] = draw_uniform(code[place], when[place], key[place])
            else:
                for place in range(count):
                    u[place] = draw_uniform(code[place], now, slot_[place])

            # What was right draws the user nearer, what was wrong drives them away.
            for place in range(count):
                mine, one = np.uint64(row_[place]), np.uint64(agent[place])
                right = np.uint64(u[place] < rule.rate[one])
                value = first[mine, one] + rule.teaches[right, one]
                first[mine, one] = value if value > rule.floor else rule.floor
                total = 0.0
                for lane in range(0, width, LANES):
                    for offset in range(LANES):
                        total += first[mine, lane + offset]
                if total > 0.0:
                    for lane in range(0, width, LANES):
                        for offset in range(LANES):
                            first[mine, lane + offset] = first[mine, lane + offset] / total
                else:
                    for column in columns:
                        first[mine, np.uint64(column)] = 1.0 / columns.size
                worth, feeling = rule.worth[right, one], mood[mine]
                if feeling == feeling:
                    mood[mine] = feeling + rule.mood_rate * (worth - feeling)
                else:
                    mood[mine] = worth
                last[mine] = one
                explored_, right_ = np.uint64(explored[place]), right
                code[place] = one | (explored_ << EXPLORED) | (right_ << RIGHT)
            if lone:
                for place in range(count):
                    noted[np.uint64(step * per_step + slot_[place])] = code[place]
            else:
                for place in range(count):
                    at = (episode[place] * steps + step) * per_step + slot_[place]
                    noted[np.uint64(at)] = code[place]


@inline
def _best(values: Floats, columns: Places) -> np.uint32:
    """The agent with the highest preference, the first of `columns` if there are several."""
    highest, chosen = -1.0, np.uint32(columns[0])
    for column in columns:
        value = values[np.uint64(column)]
        higher = value > highest
        highest = value if higher else highest
        chosen = column if higher else chosen
    return chosen


@inline
def _drawn(codes: Codes, columns: Places, step: int, slot: int) -> np.uint32:
    """The agent with the highest number of its own: any of them, for whoever explores."""
    highest, chosen = -1.0, np.uint32(columns[0])
    for column in columns:
        drawn = draw_uniform(codes[np.uint64(column)], step, slot)
        higher = drawn > highest
        highest = drawn if higher else highest
        chosen = column if higher else chosen
    return chosen


@inline
def _waves(
    slots: Places, rows: Places, turns: NDArray[np.int32], waves: Integers,
    slot: Places, row: Places,
) -> int:  # fmt: skip
    """Sort by how often a user has come in this step; the number of waves, and their ends."""
    groups = 0
    waves[:] = 0
    for place in range(rows.size):
        turn = turns[np.uint64(rows[place])]
        turns[np.uint64(rows[place])] = turn + 1
        waves[turn + 1] += 1
        groups = max(groups, turn + 1)
    for group in range(groups):
        waves[group + 1] += waves[group]
    for place in range(rows.size - 1, -1, -1):  # from the end, so that slots stay in order
        turn = turns[np.uint64(rows[place])] - 1
        turns[np.uint64(rows[place])] = turn
        waves[turn + 1] -= 1
        at = waves[turn + 1]
        slot[at], row[at] = slots[place], rows[place]
    for group in range(1, groups):
        waves[group] = waves[group + 1]
    waves[groups] = rows.size
    return groups


@kernel
def fill(
    known: Floats, first: Floats, mood: Floats, last: NDArray[np.int16], begin: int, end: int
) -> None:
    """The state of some users who have seen nothing yet; `known` is a row of `first`."""
    for row in range(begin, end):
        for column in range(known.size):
            first[row, column] = known[column]
        mood[row], last[row] = np.nan, -1


@kernel
def enter(first: Floats, agent: int, columns: Places) -> None:
    """An agent enters: as `preference.enter`, where all users know just those in `columns`."""
    known = columns.size
    for row in range(first.shape[0]):
        for column in columns:
            first[row, column] *= known / (known + 1)
        first[row, agent] = 1.0 / (known + 1)


@kernel
def leave(first: Floats, agent: int, columns: Places) -> None:
    """An agent leaves: as `preference.leave`; `columns` are those that stay."""
    for row in range(first.shape[0]):
        first[row, agent] = 0.0
        total = 0.0
        for column in range(first.shape[1]):
            total += first[row, column]
        for column in columns:
            if total > 0.0:
                first[row, column] = first[row, column] / total
            else:
                first[row, column] = 1.0 / columns.size


@kernel
def read(
    note: NDArray[np.uint16], rule: Rule, signals: Floats, agent: NDArray[np.int16],
    explored: Truths, score: Floats, signal: Floats, utility: Floats,
) -> None:  # fmt: skip
    """What was noted, in columns of shape (rows,); `signals` is (2, width) as `Rule.worth`."""
    for place in range(note.size):
        one, right = np.uint64(note[place] & MASK), np.uint64(note[place] >> RIGHT)
        agent[place] = one
        explored[place] = (note[place] >> EXPLORED) & 1
        score[place] = right
        signal[place], utility[place] = signals[right, one], rule.worth[right, one]
