"""What metrics read from a log: agents and when they were there, interactions, users' histories.

Everything here is arrays over all seeds at once. A seed's place in `seeds(log)` and an agent's in
`agents(log)` stand in for their names.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
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


def horizon(log: LogReader) -> int:
    """Number of steps: as the market says, else one more than the last step of an interaction."""

    def read() -> int:
        import polars as pl

        said = log.scan("market").select(pl.col("horizon").max()).collect().item()
        if said is None:
            last = log.scan("interaction").select(pl.col("step").max()).collect().item()
            said = 0 if last is None else last + 1
        return int(said)

    return remembered(log, "horizon", read)


def phases(log: LogReader) -> dict[str, tuple[int, int]]:
    """The named phases of a log: first step and the step after the last."""

    def read() -> dict[str, tuple[int, int]]:
        rows = log.scan("phase").select("name", "start", "stop").collect().rows()
        return {name: (start, stop) for name, start, stop in rows}

    return remembered(log, "phases", read)


def agents(log: LogReader) -> Agents:
    """The agents in the order of their numbers."""

    def read() -> Agents:
        import polars as pl

        scores = log.scan("static_score").select("agent", "f_score").unique("agent", keep="first")
        table = (
            log.scan("generator")
            .select("agent", "seat", "entry_step")
            .unique("agent", keep="first")
            .join(scores, on="agent", how="left")
            .sort("agent")
            .with_columns(pl.col("f_score").cast(pl.Float64).fill_null(float("nan")))
            .collect()
        )
        return Agents(
            table["seat"].to_list(),
            table["agent"].to_numpy().astype(np.int64),
            table["f_score"].to_numpy(),
            table["entry_step"].to_numpy().astype(np.int64),
        )

    return remembered(log, "agents", read)


def seeds(log: LogReader) -> list[int]:
    """The seeds of the log's episodes, ascending."""
    return remembered(log, "seeds", lambda: sorted(log.seeds()))


def stays(log: LogReader) -> tuple[list[Stays], Integers]:
    """The distinct patterns of entries and exits, and the pattern of each seed."""

    def read() -> tuple[list[Stays], Integers]:
        import polars as pl

        moves = (
            log.scan("intervention")
            .with_columns(pl.col("change").cast(pl.String))
            .filter(pl.col("change").is_in(["entry", "exit"]))
            .select("seed", "step", "agent", "change")
            .sort("seed", "step", maintain_order=True)
            .collect()
        )
        by_seed: dict[int, list[tuple[int, int, str]]] = {}
        for seed, step, agent, change in moves.iter_rows():
            by_seed.setdefault(seed, []).append((step, agent, change))
        everyone = agents(log)
        found: dict[tuple[tuple[int, int, str], ...], int] = {}
        pattern = np.array(
            [found.setdefault(tuple(by_seed.get(seed, ())), len(found)) for seed in seeds(log)],
            np.int64,
        )
        return [_intervals(everyone, rows) for rows in found], pattern

    return remembered(log, "stays", read)


def _intervals(everyone: Agents, moves: tuple[tuple[int, int, str], ...]) -> Stays:
    rows: list[tuple[int, int, int]] = []
    for agent, (number, entry) in enumerate(zip(everyone.numbers, everyone.entry, strict=True)):
        since: int | None = int(entry)
        for step, who, change in moves:
            if who != number:
                continue
            if change == "exit" and since is not None:
                rows.append((agent, since, step))
                since = None
            elif change == "entry" and since is None:
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
