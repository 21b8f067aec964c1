"""One pass over the interactions for all metrics that want one; memory does not grow with the log.

A pass is fed the parts of the log in order and keeps sums by seed, step and agent, or something
per user of the episode that is under way. `evaluate` runs the passes of all its metrics at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from marketeval.core.errors import UnknownNameError
from marketeval.events.information import OK
from marketeval.metrics import _kernels
from marketeval.metrics.tables import Remembering, agents, batches, horizon, remembered, seeds

if TYPE_CHECKING:
    from marketeval.core.log import LogReader
    from marketeval.metrics.windows import Windows

Values = NDArray[Any]  # any: counts and sums
TYPES: dict[str, Any] = {  # any: numpy's types
    "seed": np.int64,
    "step": np.int32,
    "user": np.int32,
    "agent": np.int16,
    "status": np.int8,
    "score": np.float64,
    "utility": np.float64,
}
BASIC = ("seed", "step", "agent")
UNDER_WAY = -2  # no seed yet; -1 is what holds for every seed


class Pass(Protocol):
    """Something that is computed from the interactions in their order."""

    @property
    def key(self) -> Hashable:
        """What tells it from others."""
        ...

    @property
    def reads(self) -> Sequence[str]:
        """Which columns of `TYPES` it is fed."""
        ...

    def begin(self, log: LogReader) -> None:
        """Make room for the results."""
        ...

    def take(self, rows: dict[str, Values]) -> None:
        """The next part of the interactions: the columns of `reads`, and maybe more."""
        ...

    def result(self) -> Any:  # any: what the pass is for
        """The result, after the last part."""
        ...


@runtime_checkable
class Passing(Protocol):
    """A metric that is computed by passes."""

    def passes(self, log: LogReader, /) -> Sequence[Pass]: ...


def run_passes(log: LogReader, wanted: Sequence[Pass]) -> dict[Hashable, Any]:
    """The results of some passes, by key, in one reading of the log. any: as `Pass.result`"""
    passes = {one.key: one for one in wanted}
    for one in passes.values():
        one.begin(log)
    names = [name for name in TYPES if any(name in one.reads for one in passes.values())]
    for rows in parts(log, names):
        for one in passes.values():
            one.take(rows)
    return {key: one.result() for key, one in passes.items()}


def passed(log: LogReader, one: Pass) -> Any:  # any: as `Pass.result`
    """The result of a pass, from an earlier reading if the log remembers one."""
    return remembered(log, ("pass", one.key), lambda: run_passes(log, [one])[one.key])


def remember_passes(log: Remembering, metrics: Sequence[object]) -> None:
    """Run what several metrics want in one reading of the log."""
    wanted = [one for metric in metrics for one in _wanted(log, metric)]
    for key, result in run_passes(log, wanted).items() if wanted else ():
        log.kept["pass", key] = result


def _wanted(log: LogReader, metric: object) -> Sequence[Pass]:
    if not isinstance(metric, Passing):
        return ()
    try:
        return metric.passes(log)
    except UnknownNameError:  # such as a phase; the metric itself says so when it is computed
        return ()


def parts(log: LogReader, names: Sequence[str]) -> Iterator[dict[str, Values]]:
    """Some columns of `TYPES` of the interactions, part by part."""
    for columns in batches(log, "interaction", names):
        rows = max(np.size(one) for one in columns.values())
        yield {
            name: np.full(rows, columns[name], TYPES[name])
            if np.ndim(columns[name]) == 0
            else np.ascontiguousarray(columns[name], TYPES[name])
            for name in names
        }


class _Places:
    """Where seeds and agents stand in the results."""

    reads: Sequence[str] = BASIC

    def begin(self, log: LogReader) -> None:
        """Read who is who."""
        numbers = agents(log).numbers
        self.seeds = np.array(seeds(log), np.int64)
        self.places = np.zeros(int(numbers.max(initial=0)) + 1, np.int64)
        self.places[numbers] = np.arange(numbers.size)
        self.shape = (self.seeds.size, horizon(log), numbers.size)


class StepCounts(_Places):
    """Interactions by seed, step and agent."""

    key: Hashable = "step counts"

    def begin(self, log: LogReader) -> None:
        """As `Pass`."""
        super().begin(log)
        self._counts = np.zeros(self.shape, np.int32)

    def take(self, rows: dict[str, Values]) -> None:
        """As `Pass`."""
        _kernels.count_steps(
            rows["seed"], rows["step"], rows["agent"], self.seeds, self.places, self._counts
        )

    def result(self) -> Values:
        """Counts of shape (seeds, steps, agents)."""
        return self._counts


class Sums(_Places):
    """Sums of a column over windows, by seed and agent; `failed` is 1 for a status but `ok`.

    Windows are made of the steps between two neighbouring edges of any of them, and values are
    added in the order of the rows, so that the parts of a log make no difference to any bit.
    """

    def __init__(self, column: str, windows: Windows) -> None:
        self._source = "status" if column == "failed" else column
        self._edges = np.unique(np.concatenate([windows.first, windows.stop]))
        self.key: Hashable = ("sums", column, self._edges.tobytes())
        self.reads = (*BASIC, self._source)

    def begin(self, log: LogReader) -> None:
        """As `Pass`."""
        super().begin(log)
        bins = max(self._edges.size - 1, 0)
        steps = np.searchsorted(self._edges, np.arange(self.shape[1]), side="right") - 1
        self._bins = np.where(steps < bins, steps, -1)
        shape = self.shape[0], bins, self.shape[2]
        self._sums, self._counts = np.zeros(shape), np.zeros((2, *shape), np.int32)

    def take(self, rows: dict[str, Values]) -> None:
        """As `Pass`."""
        values = rows[self._source]
        _kernels.add_up(
            rows["seed"], rows["step"], rows["agent"],
            (values != OK).astype(np.float64) if self._source == "status" else values,
            self.seeds, self.places, self._bins, self._sums, self._counts,
        )  # fmt: skip

    def result(self) -> tuple[Values, Values, Values]:
        """The edges; sums of shape (seeds, edges - 1, agents); the same (2, ...) for how many
        values there were, and how many above 0."""
        return self._edges, self._sums, self._counts


class SwitchCounts(_Places):
    """Pairs of a user's consecutive interactions, and how many of them go to another agent."""

    key: Hashable = "switches"
    reads = (*BASIC, "user")

    def begin(self, log: LogReader) -> None:
        """As `Pass`."""
        super().begin(log)
        self._pairs, self._switches = np.zeros((2, *self.shape), np.int32)
        self._last = np.full(0, -1, np.int16)
        self._state = np.array([UNDER_WAY])

    def take(self, rows: dict[str, Values]) -> None:
        """As `Pass`."""
        self._last = _room(self._last, rows["user"], -1)
        _kernels.count_switches(
            rows["seed"], rows["step"], rows["user"], rows["agent"], self.seeds, self.places,
            self._last, self._state, self._pairs, self._switches,
        )  # fmt: skip

    def result(self) -> tuple[Values, Values]:
        """Pairs and switches, by seed, step of the second and agent of the first interaction."""
        return self._pairs, self._switches


class Followed(_Places):
    """What users do after their first interaction with an agent; see `_kernels.follow`."""

    reads = (*BASIC, "user")

    def __init__(self, m: int, reading: int, *, since: int, start: int, stop: int) -> None:
        self.key: Hashable = ("followed", m, reading, since, start, stop)
        self._how = m, reading
        self._range = since, start, stop

    def begin(self, log: LogReader) -> None:
        """As `Pass`."""
        super().begin(log)
        shape = self.seeds.size, self.shape[2]
        self._counts, self._retained = np.zeros((3, *shape), np.int64), np.zeros(shape)
        self._came = np.zeros(0, np.int32)
        self._known = np.full((0, shape[1], 4), -1, np.int32)
        self._state = np.array([UNDER_WAY])

    def take(self, rows: dict[str, Values]) -> None:
        """As `Pass`."""
        self._came = _room(self._came, rows["user"], 0)
        self._known = _room(self._known, rows["user"], -1)
        _kernels.follow(
            rows["seed"], rows["step"], rows["user"], rows["agent"], self.seeds, self.places,
            *self._how, *self._range, self._came, self._known, self._state, self._counts,
            self._retained,
        )  # fmt: skip

    def result(self) -> tuple[Values, Values]:
        """Counts and retained as in `_kernels.settle`."""
        place = np.searchsorted(self.seeds, self._state[0])
        here = place < self.seeds.size and self.seeds[place] == self._state[0]
        _kernels.settle(
            int(place) if here else -1, *self._how, self._came, self._known, self._counts,
            self._retained,
        )  # fmt: skip
        return self._counts, self._retained


def _room(state: Values, users: Values, new: int) -> Values:
    """State with a place for every user of a part."""
    needed = int(users.max(initial=-1)) + 1
    if needed <= state.shape[0]:
        return state
    larger = np.full((max(needed, 2 * state.shape[0]), *state.shape[1:]), new, state.dtype)
    larger[: state.shape[0]] = state
    return larger
