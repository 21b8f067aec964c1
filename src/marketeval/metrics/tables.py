"""What metrics read from a log: agents and when they were there, interactions, users' histories.

Everything here is arrays over all seeds at once. A seed's place in `seeds(log)` and an agent's in
`agents(log)` stand in for their names.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

    from marketeval.core.log import LogReader

T = TypeVar("T")
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Values = NDArray[Any]  # any: columns keep the type that the log gave them
NEVER = np.iinfo(np.int64).max
NOBODY = -1


class Remembering:
    """A log that keeps what was already read from it, for several metrics in a row."""

    def __init__(self, log: LogReader) -> None:
        self.log = log
        self.kept: dict[Hashable, object] = {}

    def scan(self, kind: str) -> pl.LazyFrame:
        """As the log's own."""
        return self.log.scan(kind)

    def seeds(self) -> list[int]:
        """As the log's own."""
        return self.log.seeds()


def remembered(log: LogReader, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` gives, made once if the log is one that remembers."""
    if not isinstance(log, Remembering):
        return make()
    if key not in log.kept:
        log.kept[key] = make()
    return cast(T, log.kept[key])  # cast: a key always holds what its own `make` gave


@dataclass(frozen=True, slots=True)
class Agents:
    """The table of agents: seats, static F-scores (NaN = none), steps of first entry."""

    seats: list[str]
    numbers: Integers
    f_score: Floats
    entry: Integers


@dataclass(frozen=True, slots=True)
class Stays:
    """When agents were in the market: intervals [since, until) of one or more seeds."""

    agent: Integers
    since: Integers
    until: Integers

    def within(self, first: Integers, stop: Integers, agents: int) -> Mask:
        """Who was there at some time in each window; shape (windows, agents)."""
        there = np.zeros((first.size, agents), np.bool_)
        for agent, since, until in zip(self.agent, self.since, self.until, strict=True):
            there[:, agent] |= (first < until) & (stop > since) & (stop > first)
        return there


def batches(log: LogReader, kind: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Some columns of a kind, part by part: arrays (an enum by its code), or one value for all
    rows of the part (any: of whatever type)."""
    from marketeval.core.parts import as_array

    inner = log.log if isinstance(log, Remembering) else log
    if hasattr(inner, "batches"):
        yield from inner.batches(kind, list(names))
        return
    table = inner.scan(kind).select(names).collect()
    yield {name: as_array(table[name]) for name in names}


def columns(log: LogReader, kind: str, *names: str) -> list[Values]:
    """Some columns of a kind as arrays, an enum by its code; for facts, which have few rows."""
    parts = [
        np.broadcast_arrays(*(np.atleast_1d(one[name]) for name in names))
        for one in batches(log, kind, names)
    ]
    return [np.concatenate(one) for one in zip(*parts, strict=True)] or [np.empty(0)] * len(names)


def horizon(log: LogReader) -> int:
    """Number of steps: as the market says, else one more than the last step of an interaction."""

    def read() -> int:
        (said,) = columns(log, "market", "horizon")
        if said.size:
            return int(said.max())
        steps = (one["step"] for one in batches(log, "interaction", ["step"]))
        return 1 + max((int(np.max(one)) for one in steps if np.size(one)), default=-1)

    return remembered(log, "horizon", read)


def phases(log: LogReader) -> dict[str, tuple[int, int]]:
    """The named phases of a log: first step and the step after the last."""

    def read() -> dict[str, tuple[int, int]]:
        names, *edges = columns(log, "phase", "name", "start", "stop")
        rows = zip(names, *(one.tolist() for one in edges), strict=True)
        return {name: (start, stop) for name, start, stop in rows}

    return remembered(log, "phases", read)


def agents(log: LogReader) -> Agents:
    """The agents in the order of their numbers."""

    def read() -> Agents:
        agent, seat, entry = columns(log, "generator", "agent", "seat", "entry_step")
        numbers, first = np.unique(agent.astype(np.int64), return_index=True)
        scored, scores = columns(log, "static_score", "agent", "f_score")
        f_score = np.full(numbers.size, np.nan)
        for number, score in zip(scored[::-1], scores[::-1], strict=True):  # the first one counts
            f_score[numbers == number] = score
        return Agents(seat[first].tolist(), numbers, f_score, entry[first].astype(np.int64))

    return remembered(log, "agents", read)


def seeds(log: LogReader) -> list[int]:
    """The seeds of the log's episodes, ascending."""
    return remembered(log, "seeds", lambda: sorted(log.seeds()))


def stays(log: LogReader) -> tuple[list[Stays], Integers]:
    """The distinct patterns of entries and exits, and the pattern of each seed."""

    def read() -> tuple[list[Stays], Integers]:
        from marketeval.events.information import CHANGES

        entry, leaving = CHANGES.index("entry"), CHANGES.index("exit")
        given = columns(log, "intervention", "seed", "step", "agent", "change")
        seed, step, agent, change = (one.astype(np.int64) for one in given)
        moves = np.flatnonzero((change == entry) | (change == leaving))
        moves = moves[np.lexsort((step[moves], seed[moves]))]
        every_seed = np.array(seeds(log), np.int64)
        begins = np.searchsorted(seed[moves], every_seed)
        counts = np.searchsorted(seed[moves], every_seed, side="right") - begins
        # A row per seed: its moves side by side, and nobody's where another seed has more.
        order = np.arange(counts.max(initial=0))
        there = order < counts[:, None]
        rows = np.full((*there.shape, 3), NOBODY)
        mine = moves[(begins[:, None] + order)[there]]
        rows[there] = np.stack([step[mine], agent[mine], change[mine] == entry], axis=-1)
        rows = rows.reshape(every_seed.size, 3 * order.size)
        distinct, pattern = np.unique(rows, axis=0, return_inverse=True)
        everyone = agents(log)
        found = [_intervals(everyone, one.reshape(-1, 3)) for one in distinct]
        return found, pattern.reshape(-1)  # numpy 2.0.0 gives it as a column

    return remembered(log, "stays", read)


def _intervals(everyone: Agents, moves: Integers) -> Stays:
    """When the agents were there; a move is a step, an agent, and whether it enters."""
    rows: list[tuple[int, int, int]] = []
    for agent, (number, entry) in enumerate(zip(everyone.numbers, everyone.entry, strict=True)):
        since: int | None = int(entry)
        for step, who, enters in moves.tolist():
            if who != number:
                continue
            if not enters and since is not None:
                rows.append((agent, since, step))
                since = None
            elif enters and since is None:
                since = step
        if since is not None:
            rows.append((agent, since, NEVER))
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return Stays(columns[:, 0], columns[:, 1], columns[:, 2])


def presence(log: LogReader, first: Integers, stop: Integers, places: slice) -> Mask:
    """Who was there in each window, for some of the seeds; shape (seeds, windows, agents)."""
    patterns, of_seed = stays(log)
    count = len(agents(log).seats)
    used, which = np.unique(of_seed[places], return_inverse=True)
    if not used.size:
        return np.zeros((0, first.size, count), np.bool_)
    return np.stack([patterns[one].within(first, stop, count) for one in used])[which]


class Interactions:
    """The interactions of all seeds, seed by seed; further columns are read when asked for."""

    def __init__(self, log: LogReader) -> None:
        self._log = log
        table = log.scan("interaction").select("seed", "step", "agent").collect()
        every_seed = np.array(seeds(log), np.int64)
        seed = table["seed"].to_numpy()
        place = np.searchsorted(every_seed, seed)
        known = np.isin(seed, every_seed)
        self._rows: Integers | None = None
        if not known.all() or (np.diff(place) < 0).any():
            order = np.argsort(place, kind="stable")
            self._rows = order[known[order]]
        self.seed: Integers = self._in_order(place)
        self.step: Values = self._in_order(table["step"].to_numpy())
        self.agent: Integers = self._in_order(
            np.searchsorted(agents(log).numbers, table["agent"].to_numpy())
        )

    def _in_order(self, values: Values) -> Values:
        return values if self._rows is None else values[self._rows]

    def column(self, name: str) -> Values:
        """One more column; null is NaN, and an enum its text as an array of objects."""

        def read() -> Values:
            import polars as pl

            values = self._log.scan("interaction").select(name).collect()[name]
            if values.dtype.is_numeric():
                return self._in_order(values.to_numpy())
            return self._in_order(values.cast(pl.String).to_numpy())

        return remembered(self._log, ("interaction", name), read)


def interactions(log: LogReader) -> Interactions:
    """The interactions of all seeds."""
    return remembered(log, "interactions", lambda: Interactions(log))


@dataclass(frozen=True, slots=True)
class Histories:
    """All interactions, user by user: sorted by seed, user, step and place within the step."""

    seed: Integers
    user: Values
    step: Values
    agent: Integers


def histories(log: LogReader) -> Histories:
    """The users' histories."""

    def read() -> Histories:
        import polars as pl

        rows = interactions(log)
        table = pl.DataFrame(
            {
                "seed": rows.seed.astype(np.int32),
                "user": rows.column("user"),
                "step": rows.step,
                "slot": rows.column("slot"),
                "agent": rows.agent.astype(np.int16),
            }
        ).sort("seed", "user", "step", "slot", maintain_order=True)
        return Histories(
            table["seed"].to_numpy().astype(np.int64),
            table["user"].to_numpy().astype(np.int32),  # copies, since a view is read-only and
            table["step"].to_numpy().astype(np.int32),  # would make numba compile once more
            table["agent"].to_numpy().astype(np.int64),
        )

    return remembered(log, "histories", read)
