"""Plain markets told to the log: the events, and their turns, of the general engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketeval.core.log import EventLog
from marketeval.core.streams import Streams
from marketeval.events.information import OK, UNGRADED
from marketeval.markets.information import drift, plain
from marketeval.markets.information.facts import as_event, introduce
from marketeval.markets.information.market import InformationMarket
from marketeval.markets.information.plain import Plan, Some, State
from marketeval.markets.information.population import Population
from marketeval.markets.information.scenario import Segment

Values = NDArray[Any]  # any: columns of every type
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Feelings:
    """What nobody decides by in a plain market: each user's mood, and whom it asked last."""

    mood: NDArray[np.float64]
    last: NDArray[np.int16]


def play_one(
    market: InformationMarket,
    plan: Plan,
    seed: int,
    log: EventLog,
    feelings: Feelings | None = None,
) -> State:
    """Play the episode that the log has begun, and return the users as it left them.

    `feelings` are told if somebody wants them.
    """
    _introduce(market, log)
    state, turns = plain.start(plan, 1), _turns(market)
    _tell_changes(market, turns, log)
    asked = log.hashed  # else the questions are drawn when somebody wants them
    for some in plain.play(plan, [seed], asked=asked, state=state):
        rows = some.notes.size
        log.hand_over("interaction", rows, **_columns(market, plan, [seed], turns, [some]))
        if feelings is not None:
            rule = some.stage.rule
            seen = some.users.ravel(), some.notes.ravel(), rule.worth, rule.mood_rate
            drift.feel(*seen, feelings.mood, feelings.last)
    log.pass_turns(int(turns[-1]) + 1)
    return state


def play_many(market: InformationMarket, plan: Plan, seeds: Sequence[int], log: EventLog) -> None:
    """Play the episodes of several seeds, side by side."""
    turns = _turns(market)
    _introduce(market, log)
    most = plan.at_once()
    for first in range(0, len(seeds), most):
        some_seeds = seeds[first : first + most]
        state = plain.start(plan, len(some_seeds))
        played = plain.play(plan, some_seeds, asked=log.hashed, state=state)
        if most == 1:
            for some in played:
                _hand_over(market, plan, some_seeds, turns, [some], log)
        else:
            _hand_over(market, plan, some_seeds, turns, list(played), log)
        if not log.hashed:
            _hand_over_changes(market, turns, some_seeds, log)
            log.close_many(some_seeds)


def finish(market: InformationMarket, plan: Plan, streams: Streams, log: EventLog) -> Population:
    """Play one episode and return the users as the general engine leaves them."""
    _, users = market.open(streams, EventLog(market.events))
    feelings = Feelings(np.full(plan.users, np.nan), np.full(plan.users, -1, np.int16))
    state = play_one(market, plan, streams.seed, log, feelings)
    users.first[:] = np.nan
    known = np.sort(state.columns)
    users.first[:, known] = state.first[:, known]
    users.mood[:], users.last[:] = feelings.mood, feelings.last
    return users


def change_events(market: InformationMarket) -> dict[str, Values]:
    """The interventions as columns of the log, in step order."""
    place = {one.seat: number for number, one in enumerate(market.agents)}
    rows = [
        as_event(change, place[change.agent])
        for step in sorted(market.changes)
        for change in market.changes[step]
    ]
    types = {"step": np.int64, "agent": np.int64, "change": np.int64, "value": np.float64}
    return {name: np.array([row[name] for row in rows], kind) for name, kind in types.items()}


@dataclass(frozen=True, slots=True)
class _Crowd:
    """As much of a population as the log is told before the first step."""

    kinds: Sequence[Segment]
    size: int
    segment: Integers


def _introduce(market: InformationMarket, log: EventLog) -> None:
    if log.has_shared("market"):
        return
    size = market.spec.users.population
    crowd = _Crowd(market.spec.kinds_of_user(), size, np.zeros(size, np.int64))
    introduce(market.facts, crowd, log)


def _turns(market: InformationMarket) -> Integers:
    """The turn of each step's interactions: after all changes and steps so far."""
    changes = np.zeros(market.spec.horizon, np.int64)
    for step, together in market.changes.items():
        changes[step] = len(together)
    return np.cumsum(changes) + np.arange(changes.size)


def _tell_changes(market: InformationMarket, turns: Integers, log: EventLog) -> None:
    if market.changes:
        changes = change_events(market)
        log.extend("intervention", _turns_of_changes(changes["step"], turns), **changes)


def _turns_of_changes(steps: Integers, turns: Integers) -> Integers:
    """The changes of a step come right before its interactions."""
    after = np.searchsorted(steps, steps, side="right") - np.arange(steps.size)
    return turns[steps] - after


def _hand_over_changes(
    market: InformationMarket, turns: Integers, seeds: Sequence[int], log: EventLog
) -> None:
    if market.changes:
        changes = change_events(market)
        count = changes["step"].size
        turn = np.tile(_turns_of_changes(changes["step"], turns), len(seeds))
        every = {name: np.tile(values, len(seeds)) for name, values in changes.items()}
        of_seed = np.repeat(np.array(seeds, np.int64), count)
        log.hand_over("intervention", turn.size, turn=turn, seeds=of_seed, **every)


def _hand_over(
    market: InformationMarket,
    plan: Plan,
    seeds: Sequence[int],
    turns: Integers,
    played: Sequence[Some],
    log: EventLog,
) -> None:
    """Give the log the interactions of several episodes; together where it has no digests."""
    columns = _columns(market, plan, seeds, turns, played)
    rows = sum(one.notes.size for one in played)
    if not log.hashed:
        per_seed = rows // len(seeds)
        of_seed: Callable[[], Values] | float = seeds[0]
        if len(seeds) > 1:
            of_seed = lambda: np.repeat(np.array(seeds, np.int64), per_seed)  # noqa: E731
        log.hand_over("interaction", rows, seeds=of_seed, **columns)
        return
    whole = {name: one() if callable(one) else one for name, one in columns.items()}
    per_seed = rows // len(seeds)
    for place, seed in enumerate(seeds):
        mine = slice(place * per_seed, (place + 1) * per_seed)
        log.begin(seed)
        _tell_changes(market, turns, log)
        row = {n: one[mine] if isinstance(one, np.ndarray) else one for n, one in whole.items()}
        log.extend("interaction", row.pop("turn"), **row)
        log.pass_turns(int(turns[-1]) + 1)
        log.end()


def _columns(
    market: InformationMarket,
    plan: Plan,
    seeds: Sequence[int],
    turns: Integers,
    played: Sequence[Some],
) -> dict[str, Any]:
    """The columns of what happened in some steps, as arrays, values, or functions for later.

    any: as in `EventLog.append`
    """
    episodes, since = len(seeds), played[0].since
    steps = sum(one.notes.shape[1] for one in played)
    shape = (episodes, steps, plan.per_step)
    notes = _side_by_side([one.notes for one in played])
    users = _side_by_side([one.users for one in played])

    def questions() -> Values:
        if all(one.questions is not None for one in played):
            return _side_by_side([one.questions for one in played if one.questions is not None])
        codes = plan.draws(seeds).questions
        return plain.questions_of(plan, codes, since * plan.per_step, shape).ravel()

    def by_step(values: Values) -> Callable[[], Values] | float:
        if episodes * steps == 1:
            return int(values[0])
        return lambda: np.broadcast_to(values[:, None], shape).ravel()

    def by_outcome(name: str) -> Callable[[], Values]:
        """A column that is a function of the agent and of whether it was right."""

        def make() -> Values:
            parts = []
            for one in played:
                values = one.stage.signals if name == "signal" else one.stage.rule.worth
                parts.append(drift.by_outcome(one.notes.ravel(), values).reshape(one.notes.shape))
            return _side_by_side(parts)

        return make

    def by_agent(name: str) -> Callable[[], Values] | float:
        tables = [getattr(one.stage, name) for one in played]
        if all(np.isnan(one).all() for one in tables):
            return np.nan
        pairs = zip(tables, played, strict=True)
        return lambda: _side_by_side([table[one.notes & drift.MASK] for table, one in pairs])

    scores = np.repeat([[0.0], [1.0]], plan.width, axis=1)  # of wrong and of right answers
    topics = np.asarray(market.questions.topics)
    one_topic = not topics.any()
    now = np.arange(since, since + steps)
    return {
        "turn": by_step(turns[now]),
        "step": by_step(now.astype(np.int32)),
        "slot": lambda: np.broadcast_to(np.arange(plan.per_step, dtype=np.int32), shape).ravel(),
        "user": users,
        "question": questions,
        "topic": 0 if one_topic else lambda: topics[questions()],
        "agent": lambda: (notes & drift.MASK).view(np.int16),
        "explored": lambda: (notes & 1 << drift.EXPLORED) != 0,
        "score": lambda: drift.by_outcome(notes, scores),
        "grade": UNGRADED,
        "cost_usd": by_agent("costs"),
        "latency_s": by_agent("latencies"),
        "signal": by_outcome("signal"),
        "utility": by_outcome("utility"),
        "status": OK,
    }


def _side_by_side(parts: Sequence[Values]) -> Values:
    """Arrays of (episodes, steps, slots) joined along the steps, as one column."""
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    return whole.reshape(-1)
