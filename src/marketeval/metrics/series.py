"""From interactions to rows: sums per seed, window and agent, and the tidy table made of them.

A metric that is a function of such sums subclasses `Series` and gives `measure`; windows, seeds
in blocks (so that memory stays bounded), agents that are not there, and notes are done here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from marketeval.metrics.tables import (
    Agents,
    Floats,
    Integers,
    Mask,
    Remembering,
    Values,
    agents,
    presence,
    seeds,
)
from marketeval.metrics.windows import Windowed, Windows

if TYPE_CHECKING:
    import polars as pl

    from marketeval.core.log import LogReader
    from marketeval.metrics.passes import Pass

CELLS = 1 << 21  # numbers in one array of a block of seeds
NOTHING = "no interaction in the window"
Reasons = Sequence[tuple[Mask, str]]


@dataclass(frozen=True, slots=True)
class Part:
    """Values of the market, shape (seeds, windows), or of its agents, (seeds, windows, agents).

    NaN is undefined; the first of `reasons` whose mask holds says why. `note` goes to the others.
    """

    values: Floats
    reasons: Reasons = ()
    note: str | None = None


class Block:
    """Some of the seeds: sums over the interactions in each window, by agent."""

    def __init__(self, log: LogReader, windows: Windows, places: slice, there: Mask) -> None:
        self.log = log
        self.agents: Agents = agents(log)
        self.windows = windows
        self.places = places
        self.seeds = seeds(log)[places]
        self._there = there

    def windowed(self, by_step: Values) -> Floats:
        """Sums over windows of counts by (seed, step, agent) of all seeds."""
        return _between(by_step[self.places], self.windows.first, self.windows.stop)

    def sums(self, column: str) -> tuple[Floats, Floats, Floats]:
        """Sums of a column (see `passes.Sums`), how many values it has, and how many above 0;
        each of shape (seeds, windows, agents)."""
        from marketeval.metrics.passes import Sums, passed

        edges, sums, counts = passed(self.log, Sums(column, self.windows))
        first, stop = (
            np.searchsorted(edges, one) for one in (self.windows.first, self.windows.stop)
        )
        return (
            _between(sums[self.places], first, stop),
            _between(counts[0, self.places], first, stop),
            _between(counts[1, self.places], first, stop),
        )

    @cached_property
    def counts(self) -> Floats:
        """Interactions of any status; shape (seeds, windows, agents)."""
        from marketeval.metrics.passes import StepCounts, passed

        return self.windowed(passed(self.log, StepCounts()))

    @cached_property
    def totals(self) -> Floats:
        """Interactions with anyone; shape (seeds, windows)."""
        return np.asarray(self.counts.sum(axis=-1))

    @cached_property
    def present(self) -> Mask:
        """Who was in the market at some time in the window."""
        return self._there | (self.counts > 0)

    @cached_property
    def shares(self) -> Floats:
        """Eq. 6; NaN for agents that are not there, and for all if nobody asked anyone."""
        shares = divide(self.counts, self.totals[..., None])
        shares[~self.present] = np.nan
        return shares

    @property
    def empty(self) -> Mask:
        """Windows without any interaction."""
        return np.asarray(self.totals == 0)

    @property
    def peopled(self) -> Mask:
        """Windows with an agent in the market."""
        return np.asarray(self.present.any(axis=-1))

    def tidy(self, metric: object, parts: Sequence[Part]) -> pl.DataFrame:
        """The rows of some values; the market's come before those of its agents."""
        values: list[Floats] = []
        notes: list[Values] = []
        texts: list[str | None] = [None]
        for part in parts:
            wide = part.values if part.values.ndim == 3 else part.values[..., None]
            codes = np.zeros(wide.shape, np.int32)
            if part.note is not None:
                texts.append(part.note)
                codes[:] = len(texts) - 1
            missing = np.isnan(wide)
            for mask, reason in reversed(list(part.reasons)):
                texts.append(reason)
                codes[missing & (mask if mask.ndim == 3 else mask[..., None])] = len(texts) - 1
            values.append(wide)
            notes.append(codes)
        market = any(part.values.ndim == 2 for part in parts)
        shown = np.ones(values[0].shape, np.bool_) if market else self.present
        if len(parts) > 1:
            shown = np.concatenate([shown, self.present], axis=-1)
        subjects = [None] * market + (self.agents.seats if len(parts) > 1 or not market else [])
        return tidy_rows(
            metric,
            self.windows,
            self.seeds,
            subjects,
            np.concatenate(values, axis=-1),
            shown,
            np.concatenate(notes, axis=-1),
            texts,
        )


def _between(binned: Values, first: Integers, stop: Integers) -> Floats:
    """Sums over the second axis of (seeds, bins, agents) from each `first` to before `stop`."""
    if np.array_equal(stop, first + 1):
        return binned[:, first].astype(np.float64)
    if binned.dtype.kind == "i" and (stop - first).sum() <= binned.shape[1]:
        parts = (binned[:, a:b] for a, b in zip(first, stop, strict=True))
        return np.stack([np.einsum("sta->sa", one, dtype=np.float64) for one in parts], axis=1)
    running = np.zeros((binned.shape[0], binned.shape[1] + 1, binned.shape[2]))
    np.cumsum(binned, axis=1, out=running[:, 1:])
    return running[:, stop] - running[:, first]


def tidy_rows(
    metric: object,
    windows: Windows,
    seeds: Sequence[int],
    subjects: Sequence[str | None],
    values: Floats,
    shown: Mask,
    codes: Values,
    texts: Sequence[str | None],
) -> pl.DataFrame:
    """The tidy table of arrays of shape (seeds, windows, subjects), rows `shown` only."""
    import polars as pl

    seed, window, subject = np.nonzero(shown)
    step = pl.Series("step", [None], pl.Int64).new_from_index(0, seed.size)
    if windows.series:
        step = pl.Series("step", (windows.stop - 1)[window], pl.Int64)
    names = (("metric", str(metric)), ("window", windows.label))
    said = [pl.Series(name, [text], pl.String).new_from_index(0, seed.size) for name, text in names]
    return pl.DataFrame(
        [
            pl.Series("seed", np.array(seeds, np.int64)[seed]),
            *said,
            step,
            pl.Series("subject", subjects, pl.String)[subject],
            pl.Series("value", values[shown], nan_to_null=True),
            pl.Series("note", texts, pl.String)[codes[shown]],
        ]
    )


def blocks(log: LogReader, windows: Windows) -> Iterator[Block]:
    """All seeds, some at a time; what they share is read once."""
    log = log if isinstance(log, Remembering) else Remembering(log)
    count = len(seeds(log))
    cells = (2 * windows.first.size + 2) * (len(agents(log).seats) + 1)
    size = max(1, CELLS // cells)
    for start in range(0, count, size):
        places = slice(start, min(start + size, count))
        there = presence(log, windows.first, windows.stop, places)
        yield Block(log, windows, places, there)


@dataclass(frozen=True, kw_only=True)
class Series(Windowed):
    """A metric that is a function of sums over windows."""

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """The metric's rows, ordered by seed, then step, then agent."""
        import polars as pl

        from marketeval.metrics.base import TIDY

        frames = [block.tidy(self, self.measure(block)) for block in blocks(log, self.windows(log))]
        return pl.concat(frames) if frames else pl.DataFrame(schema=TIDY)

    def passes(self, log: LogReader, /) -> Sequence[Pass]:
        """The passes over the interactions that `measure` needs: unless said, their counts."""
        from marketeval.metrics.passes import StepCounts

        return [StepCounts()]

    def measure(self, block: Block) -> Sequence[Part]:
        """The values of some seeds: of the market, of its agents, or of both in this order."""
        raise NotImplementedError


def divide(above: Floats, below: Floats) -> Floats:
    """Element by element; NaN where `below` is 0."""
    below = np.broadcast_to(below, above.shape)
    out = np.full(above.shape, np.nan)
    return np.asarray(np.divide(above, below, out=out, where=below != 0))


def total(values: Floats) -> Floats:
    """Sum over the last axis without NaN; NaN if there is nothing else."""
    return np.where(np.isnan(values).all(axis=-1), np.nan, np.nansum(values, axis=-1))
