"""How a market moves: switching, survival, and what users get out of it over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from marketeval.core.errors import UsageError
from marketeval.metrics.base import metric
from marketeval.metrics.series import NOTHING, Block, Part, Series, blocks, divide, tidy_rows
from marketeval.metrics.tables import Floats, Mask, presence, seeds
from marketeval.metrics.windows import Ranged, at_least

if TYPE_CHECKING:
    import polars as pl

    from marketeval.core.log import LogReader
    from marketeval.metrics.passes import Pass

NOT_ASKED = "nobody asked it in the window"


@metric
class SwitchRate(Series):
    """Share of users' consecutive interactions that go to another agent than the one before.

        switches / pairs of consecutive interactions of one user

    From 0 to 1. The market's row pools all pairs; an agent's row those that begin with it (1
    minus its repeat rate, the diagonal of a brand-switching matrix). A pair belongs to the step
    of its second interaction; the first may lie before the window.
    """

    def passes(self, log: LogReader, /) -> Sequence[Pass]:
        """One pass over the interactions."""
        from marketeval.metrics.passes import SwitchCounts

        return [SwitchCounts()]

    def measure(self, block: Block) -> Sequence[Part]:
        """The rate of the market and of the agents."""
        from marketeval.metrics.passes import SwitchCounts, passed

        pairs, switches = (block.windowed(one) for one in passed(block.log, SwitchCounts()))
        every = pairs.sum(axis=-1)
        return [
            Part(
                divide(switches.sum(axis=-1), every),
                [(every == 0, "no user came a second time in the window")],
            ),
            Part(
                divide(switches, pairs),
                [(pairs == 0, "no interaction with it was followed by another")],
            ),
        ]


@dataclass(frozen=True, kw_only=True)
class _Mean(Series):
    """The mean of a column, of the market and of each agent, over interactions with a value."""

    column: ClassVar[str]
    lacking: ClassVar[str]

    def passes(self, log: LogReader, /) -> Sequence[Pass]:
        """Interactions, and sums of the column."""
        from marketeval.metrics.passes import Sums

        return [*super().passes(log), Sums(self.column, self.windows(log))]

    def measure(self, block: Block) -> Sequence[Part]:
        """The mean of the market and of the agents."""
        sums, counts, _ = block.sums(self.column)
        return [
            Part(
                divide(sums.sum(axis=-1), counts.sum(axis=-1)),
                [(block.empty, NOTHING), (~block.empty, self.lacking)],
            ),
            Part(
                divide(sums, counts),
                [(block.counts == 0, NOT_ASKED), (block.counts > 0, self.lacking)],
            ),
        ]


@metric
class MeanScore(_Mean):
    """Mean quality q of the answers that users got, from 0 to 1: the users' satisfaction.

    Of the market and of each agent, over interactions that have a score.
    """

    column = "score"
    lacking = "no score in the window"


@metric
class LongitudinalUtility(_Mean):
    """Mean utility of the users' interactions, in the units of the utility.

    Of the market and of each agent, over interactions that have a utility (quality minus costs
    of price and latency, with the coefficients of the scenario). With a window it shows how
    users fare over time.
    """

    column = "utility"
    lacking = "no utility in the window"


@metric
class FailureRate(_Mean):
    """Share of interactions without an outcome (status missing or outage), from 0 to 1.

    Of the market and of each agent.
    """

    column = "failed"
    lacking = NOTHING


@metric
class Survival(Ranged):
    """Share of its time in the market before an agent falls below a threshold for good.

        windows until it falls / windows since its entry

    From 0 to 1 (1 = still there at the end). An agent falls in the first tumbling window from
    which on its share stays below `threshold`; a slow start or a bad window is no fall, and a
    window without any interaction is none either. Windows are `window` steps long, counted from
    the first that begins with the agent in the market. An agent that leaves the market has a
    share of 0. Undefined for an agent that entered after the last window began.
    """

    threshold: float = 0.01
    window: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "window", self.window, 1)
        if not 0 < self.threshold <= 1:
            raise UsageError(f"{self}: threshold takes a share above 0, up to 1")

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """One row per seed and agent."""
        import polars as pl

        from marketeval.metrics.base import TIDY

        span = self.span(log)
        windows, pooled = span.tumbling(self.window), span.pooled()
        frames, places = [], 0
        for block in blocks(log, windows):
            here = slice(places, places + len(block.seeds))
            places = here.stop
            at_start = presence(log, windows.first, windows.first + 1, here)
            values = survival(block.counts, block.totals, at_start, self.threshold)
            shown = presence(log, pooled.first, pooled.stop, here)
            shown |= (block.counts.sum(axis=1) > 0)[:, None]
            late = np.isnan(values).astype(np.int64)[:, None]
            texts = [None, "entered after the last window began"]
            frames.append(
                tidy_rows(
                    self,
                    pooled,
                    block.seeds,
                    block.agents.seats,
                    values[:, None],
                    shown,
                    late,
                    texts,
                )
            )
        return pl.concat(frames) if frames else pl.DataFrame(schema=TIDY)


def survival(counts: Floats, totals: Floats, there: Mask, threshold: float) -> Floats:
    """Survival of agents from interactions by (seed, window, agent); shape (seeds, agents).

    `there` says who is in the market when each window begins.
    """
    windows = counts.shape[1]
    if not windows:
        return np.full((counts.shape[0], counts.shape[2]), np.nan)
    since = np.where(there.any(axis=1), there.argmax(axis=1), windows)
    after = np.arange(windows)[:, None] >= since[:, None, :]
    asked = after & (totals > 0)[..., None]
    enough = asked & (counts >= threshold * totals[..., None])
    last = np.where(enough.any(axis=1), windows - 1 - enough[:, ::-1].argmax(axis=1), -1)
    below = asked & (np.arange(windows)[:, None] > last[:, None, :])
    fell = np.where(below.any(axis=1), below.argmax(axis=1), windows)
    return divide((fell - since).astype(np.float64), (windows - since).astype(np.float64))


@metric
class UserSurvival(Ranged):
    """Share of users who are still there at the end of the range, from 0 to 1.

        1 - users who left in the range / users there at some time in the range

    A user counts who had arrived before the end of the range and had not left before it began.
    """

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """One row per seed."""
        import polars as pl

        span = self.span(log)
        everyone = seeds(log)
        users = log.scan("user").filter(pl.col("arrived") < span.stop)
        always = users.filter(pl.col("seed").is_null()).select("user").unique().collect().height
        arrived = users.filter(pl.col("seed").is_not_null()).select("seed").collect()["seed"]
        left = log.scan("user_left").select("seed", "step").collect()
        before = left.filter(pl.col("step") < span.start)["seed"]
        within = left.filter(pl.col("step").is_between(span.start, span.stop, closed="left"))
        there = always + _count(arrived, everyone) - _count(before, everyone)
        values = divide(there - _count(within["seed"], everyone), there)
        shape = (len(everyone), 1, 1)
        return tidy_rows(
            self,
            span.pooled(),
            everyone,
            [None],
            values.reshape(shape),
            np.ones(shape, np.bool_),
            np.isnan(values).astype(np.int64).reshape(shape),
            [None, "the log names no user for these steps"],
        )


def _count(found: pl.Series, everyone: Sequence[int]) -> Floats:
    values, counts = np.unique(found.to_numpy(), return_counts=True)
    by_seed = dict(zip(values.tolist(), counts.tolist(), strict=True))
    return np.array([by_seed.get(seed, 0) for seed in everyone], np.float64)
