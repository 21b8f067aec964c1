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
from marketeval.core.lanes import LANES, fetch, set_and_divide
from marketeval.core.streams import draw_uniform
from marketeval.markets.information.dealing import HALF, LOW, Dealt

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = NDArray[np.uint64]
Places = NDArray[np.uint32]
Truths = NDArray[np.bool_]
Notes = NDArray[np.uint16]

AT_A_TIME = 256  # interactions whose draws are made together
EXPLORED, RIGHT = 14, 15  # bits of what is noted of an interaction, above those of the agent
MASK = (1 << EXPLORED) - 1


class Rule(NamedTuple):
    """What decides in these steps; `columns` are the agents in the market, ties first.

    By agent, of shape (width,): `rate` of success and whether answers are `fixed`; what a wrong
    and a right answer teach (rate of learning times signal) and are worth, of shape (2, width).
    Where the width is LANES, `first_of` has the agent that comes first among those of a set (bits).
    """

    epsilon: float
    floor: float
    mood_rate: float
    columns: Places
    rate: Floats
    fixed: Truths
    teaches: Floats
    worth: Floats
    first_of: Notes


class Draws(NamedTuple):
    """Codes of the streams, of shape (episodes,), or (episodes, width) of those of agents."""

    users: Codes
    questions: Codes
    explore: Codes
    choice: Codes
    outcome: Codes
    knows: Codes


class Some(NamedTuple):
    """Some interactions, in the order of the log: so many first places of arrays.

    `line` is the place in the log, `held` whom each user held to be best when its agent was chosen;
    `code` is work space, and at the end what is noted.
    """

    step: Integers
    slot: Places
    row: Places
    episode: Places
    line: Integers
    held: Notes
    agent: Notes
    explored: Truths
    u: Floats
    code: Codes


@kernel
def live(
    since: int, together: bool, rule: Rule, draws: Draws, dealt: Dealt, episode_of: Places,
    first: Floats, best: Notes, question: NDArray[np.int32], note: Notes, block: int,
) -> None:  # fmt: skip
    """Let the users of one block live through some steps; `note` gets what became of each.

    `best` has whom each user of the state holds to be best. `together`: all choices of a step come
    before what is learned in it; otherwise each user's next choice comes after. `episode_of` names
    the episode of each row of the state (empty if there is one); `question` is empty where no
    answer is fixed. `note`: agent + 2**EXPLORED if explored + 2**RIGHT if right.
    """
    _, steps, per_step = note.shape
    most = AT_A_TIME
    if together:
        for step in range(steps):
            most = max(most, dealt.begins[step, block + 1] - dealt.begins[step, block])
    when, line = np.empty(most, np.int64), np.empty(most, np.int64)
    slot, row = np.empty(most, np.uint32), np.empty(most, np.uint32)
    episode, held = np.zeros(most, np.uint32), np.empty(most, np.uint16)
    agent, explored = np.empty(most, np.uint16), np.empty(most, np.bool_)
    u, code = np.empty(most), np.empty(most, np.uint64)
    its_step, its_slot = np.empty(most, np.int64), np.empty(most, np.int64)
    who, highest, picked = np.empty(most, np.uint32), np.empty(most), np.empty(most, np.uint16)
    lone, flat, width = episode_of.size == 0, first.reshape(-1), np.uint64(first.shape[1])
    noted, asked = note.reshape(-1), question.reshape(-1)
    some = Some(when, slot, row, episode, line, held, agent, explored, u, code)

    step, begin = 0, dealt.begins[0, block]
    while step < steps:
        # The next interactions, of several steps if these are short.
        count, fresh = 0, 0
        while step < steps and count < most:
            more = dealt.begins[step, block + 1] - begin
            if together and count and count + more > AT_A_TIME:
                break  # a step is not divided
            more = min(more, most - count)
            for place in range(more):
                dealt_ = dealt.place[step, begin + place]
                slot[count + place], row[count + place] = dealt_ >> HALF, dealt_ & LOW
                when[count + place] = since + step
                line[count + place] = step * per_step + slot[count + place]
            fresh = more if together and count == 0 else fresh
            count, begin = count + more, begin + more
            if begin == dealt.begins[step, block + 1]:
                step += 1
                begin = dealt.begins[step, block] if step < steps else 0
        if not lone:
            for place in range(count):
                episode[place] = episode_of[np.uint64(row[place])]
            for place in range(count):
                line[place] += np.int64(episode[place]) * steps * per_step
        for place in range(count):
            mine = np.uint64(row[place])
            held[place] = best[mine]
            fetch(flat, mine * width)
        _choose(rule, draws, lone, some, count, who, its_step, its_slot, highest, picked)
        _answer(rule, draws, some, count, asked)
        _learn(rule, draws, together, some, count, fresh, first, best, asked)
        for place in range(count):
            noted[np.uint64(line[place])] = code[place]


@inline
def _choose(
    rule: Rule, draws: Draws, lone: bool, some: Some, count: int, who: Places, when: Integers,
    key: Integers, highest: Floats, picked: Notes,
) -> None:  # fmt: skip
    """Each asks whom it holds to be best, or, to explore, the agent with the highest number."""
    step, slot, episode, agent, u = some.step, some.slot, some.episode, some.agent, some.u
    code, explored, held, choice = some.code, some.explored, some.held, draws.choice
    if lone:
        for place in range(count):
            u[place] = draw_uniform(draws.explore[0], step[place], slot[place])
    else:
        for place in range(count):
            code[place] = draws.explore[np.uint64(episode[place])]
        for place in range(count):
            u[place] = draw_uniform(code[place], step[place], slot[place])
    exploring = 0
    for place in range(count):
        explored[place] = u[place] < rule.epsilon
        agent[place] = held[place]
    for place in range(count):
        who[exploring] = place
        exploring += explored[place]
    for place in range(exploring):
        key[place], when[place] = slot[np.uint64(who[place])], step[np.uint64(who[place])]
        highest[place] = -1.0
    for column in rule.columns:
        one = np.uint64(column)
        if lone:
            for place in range(exploring):
                u[place] = draw_uniform(choice[0, one], when[place], key[place])
        else:
            for place in range(exploring):
                code[place] = choice[np.uint64(episode[np.uint64(who[place])]), one]
            for place in range(exploring):
                u[place] = draw_uniform(code[place], when[place], key[place])
        for place in range(exploring):
            higher = u[place] > highest[place]
            highest[place] = u[place] if higher else highest[place]
            picked[place] = column if higher else picked[place]
    for place in range(exploring):
        agent[np.uint64(who[place])] = picked[place]


@inline
def _answer(rule: Rule, draws: Draws, some: Some, count: int, asked: NDArray[np.int32]) -> None:
    """The draw that decides whether each answer is right."""
    step, slot, episode, line = some.step, some.slot, some.episode, some.line
    agent, u, code = some.agent, some.u, some.code
    for place in range(count):
        code[place] = draws.outcome[np.uint64(episode[place]), np.uint64(agent[place])]
    for place in range(count):
        u[place] = draw_uniform(code[place], step[place], slot[place])
    if asked.size == 0:
        return
    for place in range(count):
        one = np.uint64(agent[place])
        if rule.fixed[one]:
            which = asked[np.uint64(line[place])]
            u[place] = draw_uniform(draws.knows[np.uint64(episode[place]), one], 0, which)


@inline
def _learn(
    rule: Rule, draws: Draws, together: bool, some: Some, count: int, fresh: int, first: Floats,
    best: Notes, asked: NDArray[np.int32],
) -> None:  # fmt: skip
    """What was right draws the user nearer, what was wrong drives them away.

    The `fresh` first interactions chose by what their users hold even now.
    """
    rate, teaches, floor, first_of = rule.rate, rule.teaches, rule.floor, rule.first_of
    row, agent, explored, held = some.row, some.agent, some.explored, some.held
    u, code, columns, step = some.u, some.code, rule.columns, some.step
    flat, width = first.reshape(-1), np.uint64(first.shape[1])
    chosen = fresh
    for place in range(count):
        if place == chosen:
            chosen += 1
            while together and chosen < count and step[chosen] == step[place]:
                chosen += 1
            for other in range(place, chosen):
                asker = np.uint64(row[other])
                if best[asker] != held[other] and not explored[other]:
                    # The same user came a moment ago, and has changed its mind since.
                    one, own = np.uint64(best[asker]), np.uint64(some.episode[other])
                    agent[other] = one
                    if rule.fixed[one]:
                        which = asked[np.uint64(some.line[other])]
                        u[other] = draw_uniform(draws.knows[own, one], 0, which)
                    else:
                        its = draws.outcome[own, one]
                        u[other] = draw_uniform(its, step[other], some.slot[other])
        mine, one = np.uint64(row[place]), np.uint64(agent[place])
        right = np.uint64(u[place] < rate[one])
        start = mine * width
        value = flat[start + one] + teaches[right, one]
        value = value if value > floor else floor
        if width == LANES:
            highest = set_and_divide(flat, start, one, value)
            best[mine] = first_of[highest]
            worthless = highest == 0
        else:
            flat[start + one] = value
            total = 0.0
            for lane in range(0, first.shape[1], LANES):
                for offset in range(LANES):
                    total += first[mine, lane + offset]
            worthless = total == 0.0
            if not worthless:
                for lane in range(0, first.shape[1], LANES):
                    for offset in range(LANES):
                        first[mine, lane + offset] = first[mine, lane + offset] / total
            best[mine] = _best(first[mine], columns)
        if worthless:  # nobody is worth anything: all are alike again
            for lane in range(first.shape[1]):
                first[mine, lane] = 0.0
            for column in columns:
                first[mine, np.uint64(column)] = 1.0 / columns.size
            best[mine] = columns[0]
        code[place] = one | (np.uint64(explored[place]) << EXPLORED) | (right << RIGHT)


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


@kernel
def fill(known: Floats, first: Floats, begin: int, end: int) -> None:
    """The state of some users who have seen nothing yet; `known` is a row of `first`."""
    for row in range(begin, end):
        for column in range(known.size):
            first[row, column] = known[column]


@kernel
def judge(first: Floats, columns: Places, best: Notes, begin: int, end: int) -> None:
    """Whom some users hold to be best."""
    for row in range(begin, end):
        best[row] = _best(first[row], columns)


@kernel
def feel(
    users: NDArray[np.int32], note: Notes, worth: Floats, rate: float, mood: Floats,
    last: NDArray[np.int16],
) -> None:  # fmt: skip
    """What some interactions, in the order of the log, left users with: their mood (NaN = never
    there), a running mean of what answers were worth, and whom they asked last."""
    for place in range(users.size):
        user, one = np.uint64(users[place]), np.uint64(note[place] & MASK)
        value, before = worth[np.uint64(note[place] >> RIGHT), one], mood[user]
        mood[user] = before + rate * (value - before) if before == before else value
        last[user] = one


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
def by_outcome(note: Notes, values: Floats) -> Floats:
    """Of `values` of wrong and of right answers by agent, (2, width), those of what was noted."""
    out = np.empty(note.size)
    for place in range(note.size):
        out[place] = values[np.uint64(note[place] >> RIGHT), np.uint64(note[place] & MASK)]
    return out
