"""Which markets are plain enough for the kernels of `drift`, and how these play them.

Plain is: one segment of epsilon-greedy users with drifting preferences and nothing else on their
mind, agents with a rate of success, and a market in which agents come, go and change their prices.
Episodes of many seeds are played side by side, and a large one in blocks of users on threads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.information import AnswerTable, SuccessRate
from marketeval.choice import character as c
from marketeval.choice.preference import DRIFT
from marketeval.choice.rules import EPSILON_GREEDY
from marketeval.choice.utility import utility
from marketeval.core.lanes import LANES
from marketeval.core.streams import Names
from marketeval.core.threads import each, each_part, kernel_threads
from marketeval.events.information import UNGRADED
from marketeval.markets.information import dealing, drift
from marketeval.markets.information.market import InformationMarket
from marketeval.markets.information.population import character_of
from marketeval.markets.information.wave import TOGETHER

Floats = NDArray[np.float64]
Notes = NDArray[np.uint16]
Numbers = NDArray[np.int32]

BLOCK = 13  # users whose state is in reach at once, as a power of two
FEWEST = 400  # users worth a block of their own
PILES = 16  # what users are sorted into at least: one count need not wait for another
SHARES = 8  # blocks for each thread, so that none waits long for the last
AT_ONCE = 1 << 21  # interactions whose notes lie in memory at once
STATES = 1 << 17  # rows of the state of episodes that are played side by side
VISITS = 8  # of a user of a large episode while a block is in reach
PIECE = 1 << 17  # interactions that one thread draws or sorts at a time
EPISODES = 1 << 16  # episodes that are played side by side
MOST_AGENTS = drift.MASK
MOST_TAUGHT = 1e100  # so that no sum of preferences is infinite
_utility = utility.py_func  # type: ignore[attr-defined]  # the formula itself, uncompiled


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps [start, stop) between changes of the market, after the `moves` that open them.

    A move is (whether the agent enters, the agent, who else is there). `signals` is what a wrong
    and a right answer of each agent signal, `costs` and `latencies` what its answers cost.
    """

    start: int
    stop: int
    moves: tuple[tuple[bool, int, drift.Places], ...]
    rule: drift.Rule
    signals: Floats
    costs: Floats
    latencies: Floats


@dataclass(frozen=True, slots=True)
class Plan:
    """A plain market, ready to be played."""

    agents: int
    there: Sequence[int]
    width: int
    users: int
    per_step: int
    questions: int
    replacement: bool
    together: bool
    stages: tuple[Stage, ...]
    names: Names

    @property
    def horizon(self) -> int:
        """The number of steps."""
        return self.stages[-1].stop

    @property
    def some_fixed(self) -> bool:
        """Whether answers hang on the question."""
        return bool(self.stages[0].rule.fixed.any())

    def at_once(self) -> int:
        """How many episodes are played side by side; 1 also where one is too long for that."""
        if self.users >> BLOCK:
            return 1
        fit = min(AT_ONCE // (self.horizon * self.per_step), STATES // self.users)
        return max(1, min(EPISODES, fit))

    def draws(self, seeds: Sequence[int]) -> drift.Draws:
        """The streams of some seeds."""
        codes = self.names.codes(seeds)
        by_agent = np.zeros((3, len(seeds), self.width), np.uint64)
        by_agent[:, :, : self.agents] = (
            codes[:, 3:].reshape(len(seeds), 3, self.agents).swapaxes(0, 1)
        )
        users, questions, explore = codes[:, :3].T.copy()
        return drift.Draws(users, questions, explore, *by_agent)


@dataclass(slots=True)
class State:
    """The users of some episodes; see `drift`. At the end also who is in the market."""

    first: Floats
    best: Notes
    columns: drift.Places = field(default_factory=lambda: np.empty(0, np.uint32))


@dataclass(frozen=True, slots=True)
class Some:
    """What happened in some steps: arrays of shape (episodes, steps, interactions per step)."""

    stage: Stage
    since: int
    users: Numbers
    notes: Notes
    questions: Numbers | None


def plan_of(
    market: InformationMarket, tables: Mapping[str, AnswerTable | SuccessRate]
) -> Plan | None:
    """How to play a market whose agents' answers follow `tables`; None if it is not plain."""
    spec, kinds = market.spec, market.spec.kinds_of_user()
    rates = [tables[one.seat] for one in market.agents]
    character = character_of(kinds[0])
    if not (
        len(kinds) == 1
        and _is_simple(character)
        and not kinds[0].preferences
        and spec.draws == "keyed"
        and not spec.user_seats
        and spec.ties == "configuration"
        and not spec.users.arrivals
        and len(rates) <= MOST_AGENTS
        and (kinds[0].learning is None or kinds[0].learning.per == "user")
    ):
        return None
    coins = [one for one in rates if isinstance(one, SuccessRate)]
    stages = _stages(market, coins, character) if len(coins) == len(rates) else None
    if stages is None:
        return None
    seats = [one.seat for one in market.agents]
    by_agent = ("choice", "agent/outcome", "agent/knows")
    per_step = spec.users.per_step
    if not spec.users.replacement:
        per_step = min(per_step, spec.users.population)
    return Plan(
        agents=len(seats),
        there=_there(market),
        width=_width(len(seats)),
        users=spec.users.population,
        per_step=per_step,
        questions=len(market.questions.items),
        replacement=spec.users.replacement,
        together=market.stagger == TOGETHER,
        stages=stages,
        names=Names(
            [
                *("users", "questions", "explore"),
                *(f"{seat}/{name}" for name in by_agent for seat in seats),
            ]
        ),
    )


def play(plan: Plan, seeds: Sequence[int], *, asked: bool, state: State) -> Iterator[Some]:
    """Play the episodes of some seeds side by side, some steps at a time.

    `asked`: whether the questions are wanted. `state` is as `start` made it, and is changed.
    """
    draws, episodes = plan.draws(seeds), len(seeds)
    lone = episodes == 1
    asked = asked or plan.some_fixed
    episode_of = np.empty(0, np.uint32)
    if not lone:
        episode_of = np.repeat(np.arange(episodes, dtype=np.uint32), plan.users)
    # Who comes again finds a block in reach; whoever wants the questions writes a log, and has
    # much more to hold at once.
    at_once = AT_ONCE
    if lone:
        at_once = AT_ONCE // 2 if asked else max(2 * AT_ONCE, VISITS * plan.users)
    most, room = max(1, at_once // (episodes * plan.per_step)), _Room()
    for stage in plan.stages:
        _move(state, stage)
        for since in range(stage.start, stage.stop, most):
            steps = min(most, stage.stop - since)
            shape = (episodes, steps, plan.per_step)
            users, notes = np.empty(shape, np.int32), np.empty(shape, np.uint16)
            dealt = _deal(plan, draws, since, users, room)
            several = lone and dealt.begins.shape[1] > 2
            as_dealt = room.of("notes", shape, np.uint16) if several else notes
            questions = None
            if asked:
                questions = questions_of(plan, draws.questions, since * plan.per_step, shape)
            keyed = questions if questions is not None and plan.some_fixed else _NO_QUESTIONS

            live = partial(
                drift.live, since, plan.together, stage.rule, draws, dealt, episode_of,
                state.first, state.best, keyed, as_dealt,
            )  # fmt: skip
            each(live, range(dealt.begins.shape[1] - 1))
            if several:
                _in_order(dealt, as_dealt, notes)
            yield Some(stage, since, users, notes, questions)


def questions_of(plan: Plan, codes: drift.Codes, since: int, shape: tuple[int, ...]) -> Numbers:
    """The questions of the interactions from number `since` of each episode on."""
    out = np.empty(shape, np.int32)
    flat = out.reshape(shape[0], -1)
    most = max(PIECE, 4 * plan.questions)  # who begins within a round draws all of it

    def ask(begin: int, end: int) -> None:
        dealing.ask(codes, since + begin, plan.questions, flat[:, begin:end])

    each_part(flat.shape[1], most, ask)
    return out


def start(plan: Plan, episodes: int) -> State:
    """The state before the first step."""
    rows, known = episodes * plan.users, np.zeros(plan.width)
    known[plan.there] = 1.0 / len(plan.there)
    state = State(_lines(rows, plan.width), np.empty(rows, np.uint16))
    each_part(rows, 8 << BLOCK, partial(drift.fill, known, state.first))
    return state


def _lines(rows: int, width: int) -> Floats:
    """Room for numbers, of shape (rows, width), that begins where a line of memory does."""
    whole = np.empty((rows + 1) * width)
    ahead = -whole.ctypes.data % (8 * LANES) // 8
    return whole[ahead : ahead + rows * width].reshape(rows, width)


def _each_stretch(work: Callable[[int, int], None], steps: int, count: int) -> None:
    """Do some work from step to step, of so many interactions each."""
    each_part(steps, max(1, PIECE // count), work)


_NO_QUESTIONS = np.empty((0, 0, 0), np.int32)


class _Room:
    """Arrays that are wanted again: fresh memory can cost as much as what is done in it."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}  # any: of whatever type

    def of(self, name: str, shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
        """The array of a name, with anything in it (any: numpy's types)."""
        size = math.prod(shape)
        if name not in self._kept or self._kept[name].size < size:
            self._kept[name] = np.empty(size, kind)
        return self._kept[name][:size].reshape(shape)


def _deal(plan: Plan, draws: drift.Draws, since: int, users: Numbers, room: _Room) -> dealing.Dealt:
    """Who interacts, and in which block: some users of a large episode, or some episodes."""
    episodes, steps, count = users.shape
    places = room.of("places", (steps, episodes * count), np.uint64)
    blocks = _blocks(plan.users)
    if episodes == 1 and blocks > 1:
        finer = -(-PILES // blocks)  # a block is some piles: whose user comes first does not matter
        begins = np.empty((steps, blocks * finer + 1), np.int64)
        _each_stretch(
            lambda begin, end: dealing.deal_users(
                draws.users[0], begin, end, since, plan.users, plan.replacement,
                users[0], places, begins,
            ),
            steps, count,
        )  # fmt: skip
        begins = np.ascontiguousarray(begins[:, ::finer])
    else:
        together = max(1, (1 << BLOCK) // plan.users)
        edges = np.append(np.arange(0, episodes, together), episodes)
        begins = np.repeat((edges * count)[None], steps, axis=0)
        each(
            lambda block: dealing.deal_episodes(
                draws.users, edges[block], edges[block + 1], since, plan.users,
                plan.replacement, users, places,
            ),
            range(edges.size - 1),
        )  # fmt: skip
    return dealing.Dealt(places, begins)


def _blocks(users: int) -> int:
    """Into how many blocks a large episode is cut: enough for all threads, if users are enough."""
    threads = kernel_threads()
    shared = min(SHARES * threads, users // FEWEST) if threads > 1 else 1
    return max(-(-users >> BLOCK), shared)


def _in_order(dealt: dealing.Dealt, as_dealt: Notes, notes: Notes) -> None:
    """Bring what was noted of one episode from the order dealt into that of the log."""
    _each_stretch(
        lambda begin, end: drift.in_order(dealt.place, as_dealt[0], notes[0], begin, end),
        *notes.shape[1:],
    )


def _move(state: State, stage: Stage) -> None:
    """Let agents enter and leave."""
    for enters, agent, others in stage.moves:
        (drift.enter if enters else drift.leave)(state.first, agent, others)
    state.columns = stage.rule.columns
    judged = partial(drift.judge, state.first, state.columns, state.best)
    each_part(state.best.size, 8 << BLOCK, judged)


def _is_simple(character: Floats) -> bool:
    return bool(
        character[c.RULE] == EPSILON_GREEDY
        and character[c.LEARNING] == DRIFT
        and character[c.PORTFOLIO] == 1
        and character[c.LEAVES_BELOW] == -np.inf
        and not character[[c.INERTIA, c.POPULARITY, c.FORGETTING, c.DELTA]].any()
    )


def _stages(
    market: InformationMarket, rates: Sequence[SuccessRate], character: Floats
) -> tuple[Stage, ...] | None:
    """The stages; None where there is one without an agent, or a change that is not plain."""
    place = {one.seat: number for number, one in enumerate(market.agents)}
    there = set(_there(market))
    price, latency = np.ones(len(rates)), np.ones(len(rates))
    stages: list[Stage] = []
    edges = sorted({0, *market.changes, market.spec.horizon})
    if not there:
        return None
    for start, stop in itertools.pairwise(edges):
        moves: list[tuple[bool, int, drift.Places]] = []
        for change in market.changes.get(start, ()):
            agent = place[change.agent]
            if change.kind == "entry" and agent not in there:
                moves.append((True, agent, np.array(sorted(there), np.uint32)))
                there.add(agent)
            elif change.kind == "exit":
                there.discard(agent)
                moves.append((False, agent, np.array(sorted(there), np.uint32)))
            elif change.kind == "price" and change.factor is not None:
                price[agent] = change.factor
            elif change.kind == "latency" and change.factor is not None:
                latency[agent] = change.factor
            elif change.kind != "entry":
                return None
            if not there:
                return None
        columns = np.array(sorted(there, key=lambda one: market.tie_rank[one]), np.uint32)
        stage = _stage(market, start, stop, moves, columns, rates, price, latency, character)
        if not (np.abs(stage.rule.teaches[:, np.sort(columns)]) < MOST_TAUGHT).all():
            return None
        stages.append(stage)
    return tuple(stages)


def _stage(
    market: InformationMarket,
    start: int,
    stop: int,
    moves: Sequence[tuple[bool, int, drift.Places]],
    columns: drift.Places,
    rates: Sequence[SuccessRate],
    price: Floats,
    latency: Floats,
    character: Floats,
) -> Stage:
    width = _width(len(rates))
    signals, worth = np.zeros((2, width)), np.zeros((2, width))
    costs, latencies = np.full(width, np.nan), np.full(width, np.nan)
    weights = character[[c.ALPHA, c.BETA, c.GAMMA, c.DELTA]].tolist()
    for agent, one in enumerate(rates):
        if one.cost_usd is not None:
            costs[agent] = one.cost_usd * price[agent]
        if one.latency_s is not None:
            latencies[agent] = one.latency_s * latency[agent]
        for score in (0, 1):
            signal = market.signal_of_grade[UNGRADED]
            if signal != signal:
                signal = 2.0 * score - 1.0
            felt = float(costs[agent]), float(latencies[agent]), 0.5, *weights
            signals[score, agent] = _utility(float(signal), *felt)
            worth[score, agent] = _utility(float(score), *felt)
    rate, fixed = np.zeros(width), np.zeros(width, np.bool_)
    rate[: len(rates)] = [one.rate for one in rates]
    fixed[: len(rates)] = [one.fixed for one in rates]
    rule = drift.Rule(
        epsilon=float(character[c.THETA]),
        floor=float(character[c.FLOOR]),
        mood_rate=float(character[c.MOOD_RATE]),
        columns=columns,
        passes=np.ceil(rate * 2.0**53).astype(np.uint64),
        fixed=fixed,
        teaches=character[c.RATE] * signals,
        worth=worth,
        first_of=_first_of(columns) if width == LANES else np.zeros(1, np.uint16),
    )
    return Stage(start, stop, tuple(moves), rule, signals, costs, latencies)


def _first_of(columns: drift.Places) -> Notes:
    """Of each set of agents, as bits, the one that comes first; `columns` have them in order."""
    sets = np.arange(1 << LANES)
    first = np.full(sets.size, columns[0], np.uint16)
    for column in columns[::-1]:
        first[sets >> column & 1 == 1] = column
    return first


def _there(market: InformationMarket) -> list[int]:
    """Who is there before the first step."""
    return [a for a, one in enumerate(market.agents) if market.first_entry[one.seat] == 0]


def _width(agents: int) -> int:
    return -(-agents // LANES) * LANES
