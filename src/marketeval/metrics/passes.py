"""One pass over the interactions for all metrics that want one; memory does not grow with the log.

A pass is fed the parts of the log in order and keeps sums by seed, step and agent, or something
per user of the episode that is under way. `evaluate` runs the passes of all its metrics at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from marketeval.metrics import _kernels
from marketeval.metrics.tables import Remembering, agents, horizon, remembered, seeds

if TYPE_CHECKING:
    from marketeval.core.log import LogReader

Values = NDArray[Any]  # any: counts and sums
TYPES = {"seed": np.int64, "step": np.int32, "user": np.int32, "agent": np.int16}
UNDER_WAY = -2  # no seed yet; -1 is what holds for every seed


class Pass(Protocol):
    """Something that is computed from the interactions in their order."""

    @property
    def key(self) -> Hashable:
        """What tells it from others."""
        ...

    def begin(self, log: LogReader) -> None:
        """Make room for the results."""
        ...

    def take(self, rows: dict[str, Values]) -> None:
        """The next part of the interactions: the columns of `TYPES`."""
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
    for rows in parts(log):
        for one in passes.values():
            one.take(rows)
    return {key: one.result() for key, one in passes.items()}


def passed(log: LogReader, one: Pass) -> Any:  # any: as `Pass.result`
    """The result of a pass, from an earlier reading if the log remembers one."""
    return remembered(log, ("pass", one.key), lambda: run_passes(log, [one])[one.key])


def remember_passes(log: Remembering, metrics: Sequence[object]) -> None:
    """Run what several metrics want in one reading of the log."""
    wanted = [
        one for metric in metrics if isinstance(metric, Passing) for one in metric.passes(log)
    ]
    for key, result in run_passes(log, wanted).items() if wanted else ():
        log.kept["pass", key] = result


def parts(log: LogReader) -> Iterator[dict[str, Values]]:
    """The columns of `TYPES` of the interactions, part by part."""
    for columns in _columns(log):
        rows = max(np.size(one) for one in columns.values())
        yield {
            name: np.full(rows, columns[name], kind)
            if np.ndim(columns[name]) == 0
            else np.ascontiguousarray(columns[name], kind)
            for name, kind in TYPES.items()
        }


def _columns(log: LogReader) -> Iterator[dict[str, Any]]:  # any: arrays, or one value
    inner = log.log if isinstance(log, Remembering) else log
    if hasattr(inner, "batches"):
        yield from inner.batches("interaction", list(TYPES))
        return
    table = inner.scan("interaction").select(list(TYPES)).collect()
    yield {name: table[name].to_numpy() for name in TYPES}


class _Places:
    """Where seeds and agents stand in the results."""

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


class SwitchCounts(_Places):
    """Pairs of a user's consecutive interactions, and how many of them go to another agent."""

    key: Hashable = "switches"

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
