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
from marketeval.core.streams import draw_uniform, draw_whole
from marketeval.markets.information.dealing import HALF, LOW, Dealt

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = NDArray[np.uint64]
Places = NDArray[np.uint32]
Truths = NDArray[np.bool_]
Notes = NDArray[np.uint16]

AT_A_TIME = 1024  # interactions whose draws are made together
FEW = 128  # the same where users are few
AHEAD = 24  # interactions before which the state of a user is fetched
EXPLORED, RIGHT = 14, 15  # bits of what is noted of an interaction, above those of the agent
MASK = (1 << EXPLORED) - 1
_TOP = np.uint64(63)


class Rule(NamedTuple):
    """What decides in these steps; `columns` are the agents in the market, ties first.

    By agent, of shape (width,): numbers below `passes` (rate of success times 2**53) are right
    answers, and whether these are `fixed`; what a wrong and a right answer teach (rate of learning
    times signal) and are worth, of shape (2, width).
    Where the width is LANES, `first_of` has the agent that comes first among those of a set (bits).
    """

    epsilon: float
    floor: float
    mood_rate: float
    columns: Places
    passes: Codes
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
    """Some interactions, in the order they are dealt: so many first places of arrays.

    `held` is whom its user held to be best when its agent was chosen; `code` is work space, and at
    the end what is noted.
    """

    step: Integers
    slot: Places
    row: Places
    episode: Places
    held: Notes
    agent: Notes
    explored: Truths
    u: Floats
    code: Codes


class Explorers(NamedTuple):
    """Work space for those of some interactions that explore: which they are, their step and
    slot, their highest number so far, and the agent whose it is."""

    which: Places
    step: Integers
    slot: Integers
    highest: Floats
    picked: Codes


@kernel
def live(
    since: int, together: bool, rule: Rule, draws: Draws, dealt: Dealt, episode_of: Places,
    first: Floats, best: Notes, question: NDArray[np.int32], note: Notes, block: int,
) -> None:  # fmt: skip
    """Let the users of one block live through some steps; `note` gets what became of each.

    `best` has whom each user of the state holds to be best. `together`: all choices of a step come
    before what is learned in it; otherwise each user's next choice comes after. `episode_of` names
    the episode of each row of the state (empty if there is one); `question` is empty where no
    answer is fixed. `note`: agent + 2**EXPLORED if explored + 2**RIGHT if right, of one episode
    step by step in the order dealt (two blocks never write side by side), else as in the log.
    """
    steps = note.shape[1]
    lone, flat, width = episode_of.size == 0, first.reshape(-1), np.uint64(first.shape[1])
    most = min(AT_A_TIME, max(FEW, first.shape[0]))  # few users would often come again
    some, explorers = _room(most)
    slot, row, when, held = some.slot, some.row, some.step, some.held
    episode, code = some.episode, some.code
    longest = 0
    for step in range(steps):
        longest = max(longest, dealt.begins[step, block + 1] - dealt.begins[step, block])
    before = np.empty(longest if together else 0, np.uint16)

    step, begin = 0, dealt.begins[0, block]
    while step < steps:
        # The next interactions, of several steps if these are short. A step that is too long is
        # taken in turns, and chosen in as it began.
        count, fresh, taken, opened = 0, 0, -1, (step, begin)
        while step < steps and count < most and taken < 0:
            opens, ends = dealt.begins[step, block], dealt.begins[step, block + 1]
            if together and count and count + ends - opens > most:
                break
            if together and ends - opens > most:
                taken = begin - opens
                for place in range(ends - opens if taken == 0 else 0):
                    before[place] = best[dealt.place[step, opens + place] & LOW]
            more = min(ends - begin, most - count)
            its = dealt.place[step]
            for place in range(more):  # places are never below 0: unsigned, they need no check
                dealt_, to = its[np.uint64(begin + place)], np.uint64(count + place)
                slot[to], row[to] = dealt_ >> HALF, dealt_ & LOW
            for place in range(more):
                when[np.uint64(count + place)] = since + step
            fresh = more if together and count == 0 else fresh
            count, begin = count + more, begin + more
            if begin == ends:
                step += 1
                begin = dealt.begins[step, block] if step < steps else 0
        if not lone:
            for place in range(count):
                episode[place] = episode_of[np.uint64(row[place])]
        for place in range(count):
            held[place] = best[np.uint64(row[place])]
        for place in range(count if taken >= 0 else 0):
            held[place] = before[taken + place]
        for place in range(min(count, AHEAD)):
            fetch(flat, np.uint64(row[place]) * width)
        _choose(rule, draws, lone, some, count, explorers)
        _answer(rule, draws, some, count, since, question)
        _learn(rule, draws, together, some, count, fresh, first, best, since, question)
        if lone:
            _note(code, count, opened, dealt, block, note[0])
        else:
            for place in range(count):
                note[episode[place], when[place] - since, slot[place]] = code[place]


@inline
def _note(
    code: Codes, count: int, opened: tuple[int, int], dealt: Dealt, block: int, note: Notes
) -> None:
    """Note some interactions of one episode in the order dealt, from a step and a place in it."""
    done, (step, begin) = 0, opened
    while done < count:
        here, more = note[step], min(dealt.begins[step, block + 1] - begin, count - done)
        for place in range(more):
            here[np.uint64(begin + place)] = code[np.uint64(done + place)]
        done, step = done + more, step + 1
        begin = dealt.begins[step, block] if done < count else 0


@inline
def _room(most: int) -> tuple[Some, Explorers]:
    some = Some(
        np.empty(most, np.int64), np.empty(most, np.uint32), np.empty(most, np.uint32),
        np.zeros(most, np.uint32), np.empty(most, np.uint16), np.empty(most, np.uint16),
        np.empty(most, np.bool_), np.empty(most), np.empty(most, np.uint64),
    )  # fmt: skip
    explorers = Explorers(
        np.empty(most, np.uint32), np.empty(most, np.int64), np.empty(most, np.int64),
        np.empty(most), np.empty(most, np.uint64),
    )  # fmt: skip
    return some, explorers


@inline
def _choose(
    rule: Rule, draws: Draws, lone: bool, some: Some, count: int, explorers: Explorers
) -> None:
    """Each asks whom it holds to be best, or, to explore, the agent with the highest number."""
    step, slot, episode, agent, u = some.step, some.slot, some.episode, some.agent, some.u
    code, explored, held, choice = some.code, some.explored, some.held, draws.choice
    which, when, key, highest, picked = explorers
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
        which[exploring] = place
        exploring += explored[place]
    for place in range(exploring):
        key[place], when[place] = slot[np.uint64(which[place])], step[np.uint64(which[place])]
        highest[place] = -1.0
    for column in rule.columns:
        one = np.uint64(column)
        if lone:
            its = choice[0, one]
            for place in range(exploring):
                u[place] = draw_uniform(its, when[place], key[place])
        else:
            for place in range(exploring):
                code[place] = choice[np.uint64(episode[np.uint64(which[place])]), one]
            for place in range(exploring):
                u[place] = draw_uniform(code[place], when[place], key[place])
        for place in range(exploring):
            higher = u[place] > highest[place]
            highest[place] = u[place] if higher else highest[place]
            picked[place] = one if higher else picked[place]
    for place in range(exploring):
        agent[np.uint64(which[place])] = picked[place]


@inline
def _answer(
    rule: Rule, draws: Draws, some: Some, count: int, since: int, question: NDArray[np.int32]
) -> None:
    """The number, in `code`, that decides whether each answer is right."""
    step, slot, episode = some.step, some.slot, some.episode
    agent, code = some.agent, some.code
    for place in range(count):
        code[place] = draws.outcome[np.uint64(episode[place]), np.uint64(agent[place])]
    for place in range(count):
        code[place] = draw_whole(code[place], step[place], slot[place])
    if question.size == 0:
        return
    for place in range(count):
        one = np.uint64(agent[place])
        if rule.fixed[one]:
            which = question[episode[place], step[place] - since, slot[place]]
            code[place] = draw_whole(draws.knows[np.uint64(episode[place]), one], 0, which)


@inline
def _learn(
    rule: Rule, draws: Draws, together: bool, some: Some, count: int, fresh: int, first: Floats,
    best: Notes, since: int, question: NDArray[np.int32],
) -> None:  # fmt: skip
    """What was right draws the user nearer, what was wrong drives them away.

    The `fresh` first interactions chose by what their users hold even now.
    """
    step, begin, end = some.step, 0, fresh
    while begin < count:
        if end == begin:
            end += 1
            while together and end < count and step[end] == step[begin]:
                end += 1
            _choose_again(rule, draws, some, begin, end, best, since, question)
        if first.shape[1] == LANES:
            _learn_in_lanes(rule, some, begin, end, count, first, best)
        else:
            _learn_at_length(rule, some, begin, end, first, best)
        begin = end


@inline
def _choose_again(
    rule: Rule, draws: Draws, some: Some, begin: int, end: int, best: Notes, since: int,
    question: NDArray[np.int32],
) -> None:  # fmt: skip
    """Let those whose user came a moment ago, and has changed its mind since, ask another."""
    for place in range(begin, end):
        asker = np.uint64(some.row[place])
        if best[asker] != some.held[place] and not some.explored[place]:
            one, own = np.uint64(best[asker]), np.uint64(some.episode[place])
            some.agent[place] = one
            if rule.fixed[one]:
                which = question[own, some.step[place] - since, some.slot[place]]
                some.code[place] = draw_whole(draws.knows[own, one], 0, which)
            else:
                its = draws.outcome[own, one]
                some.code[place] = draw_whole(its, some.step[place], some.slot[place])


@inline
def _learn_in_lanes(
    rule: Rule, some: Some, begin: int, end: int, count: int, first: Floats, best: Notes
) -> None:
    row, agent, explored, code = some.row, some.agent, some.explored, some.code
    passes, floor, first_of = rule.passes, rule.floor, rule.first_of
    flat, teaches, width = first.reshape(-1), rule.teaches.reshape(-1), np.uint64(LANES)
    last = np.uint64(count - 1)
    for at in range(begin, end):
        place = np.uint64(at)
        ahead = min(place + np.uint64(AHEAD), last)
        fetch(flat, np.uint64(row[ahead]) * width)
        mine, one = np.uint64(row[place]), np.uint64(agent[place])
        right = (code[place] - passes[one]) >> _TOP  # whether below; a branch would be a guess
        value = flat[mine * width + one] + teaches[right * width + one]
        value = value if value > floor else floor
        highest = set_and_divide(flat, mine * width, one, value)
        best[mine] = first_of[highest]
        if highest == 0:
            _forget(rule, first, best, mine)
        code[place] = one | (np.uint64(explored[place]) << EXPLORED) | (right << RIGHT)


@inline
def _learn_at_length(
    rule: Rule, some: Some, begin: int, end: int, first: Floats, best: Notes
) -> None:
    for place in range(begin, end):
        mine, one = np.uint64(some.row[place]), np.uint64(some.agent[place])
        right = (some.code[place] - rule.passes[one]) >> _TOP
        first[mine, one] = max(rule.floor, first[mine, one] + rule.teaches[right, one])
        total = 0.0
        for lane in range(0, first.shape[1], LANES):
            for offset in range(LANES):
                total += first[mine, lane + offset]
        if total == 0.0:
            _forget(rule, first, best, mine)
        else:
            for lane in range(0, first.shape[1], LANES):
                for offset in range(LANES):
                    first[mine, lane + offset] = first[mine, lane + offset] / total
            best[mine] = _best(first[mine], rule.columns)
        explored = np.uint64(some.explored[place])
        some.code[place] = one | (explored << EXPLORED) | (right << RIGHT)


@inline
def _forget(rule: Rule, first: Floats, best: Notes, mine: np.uint64) -> None:
    """Nobody is worth anything to a user: all are alike again."""
    for lane in range(first.shape[1]):
        first[mine, lane] = 0.0
    for column in rule.columns:
        first[mine, np.uint64(column)] = 1.0 / rule.columns.size
    best[mine] = rule.columns[0]


@kernel
def in_order(places: Codes, dealt: Notes, out: Notes, begin: int, end: int) -> None:
    """Bring what was noted of some steps of one episode from the order dealt into that of slots."""
    for step in range(begin, end):
        for place in range(places.shape[1]):
            out[step, places[step, place] >> HALF] = dealt[step, place]


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
