"""Whether users stay with an agent once they have tried it: retention and churn.

Eq. 7 of the paper is written in time steps and explained in interactions; a user who is not drawn
at a step makes no choice, so the two differ. `Retention` follows the explanation, `RetentionSteps`
the formula, and `RetentionWindowed` is what the paper's published package computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from marketeval.metrics.base import metric
from marketeval.metrics.series import divide, tidy_rows
from marketeval.metrics.tables import (
    Floats,
    Integers,
    agents,
    histories,
    presence,
    seeds,
)
from marketeval.metrics.windows import Ranged, at_least

if TYPE_CHECKING:
    import polars as pl

    from marketeval.core.log import LogReader
    from marketeval.metrics.passes import Pass


@metric
class Retention(Ranged):
    """Share of a user's next m interactions, after first trying an agent, that stay with it.

        CR_a(m) = mean over users u of 1/m sum over i = 1..m of [ q_u(i-th after the first) = a ]

    The paper, Eq. 7 and 8, read in interactions; from 0 to 1. Users with fewer than m later
    interactions are left out of the mean and counted in the note; undefined if that leaves
    nobody. With a range, a user counts if the first interaction with the agent in the whole log
    falls into the range, and is followed to the end of the range.
    """

    m: int = field(default=10, kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "m", self.m, 1)

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """One row per seed and agent."""
        found = _found(log, *self.passes(log))
        return _tidy(self, log, found, found.retained, _later(self.m))

    def passes(self, log: LogReader, /) -> Sequence[Pass]:
        """One pass over the interactions up to the end of the range."""
        from marketeval.metrics._kernels import INTERACTIONS
        from marketeval.metrics.passes import Followed

        span = self.span(log)
        return [Followed(self.m, INTERACTIONS, since=0, start=span.start, stop=span.stop)]


@metric
class RetentionSteps(Ranged):
    """Retention in time steps: share of the next m steps at which the user asks the agent.

        CR_a(m) = mean over users u of 1/m sum over t = 1..m of [ q_u(tau + t) = a ]

    The paper, Eq. 7 and 8, to the letter; from 0 to 1. q_u(t) is the user's last interaction of
    step t, and tau the first step at which it is a. A step without an interaction of the user
    counts as 0, so the value mixes loyalty with how often users come. Users with tau + m past the
    end of the range are left out and counted in the note. With a range, as Retention.
    """

    m: int = field(default=10, kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "m", self.m, 1)

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """One row per seed and agent."""
        from marketeval.metrics._kernels import follow_steps

        rows, span = histories(log), self.span(log)
        final = np.ones(rows.seed.size, np.bool_)
        for column in (rows.seed, rows.user, rows.step):
            final[:-1] &= column[1:] == column[:-1]
        final[:-1] = ~final[:-1]
        final &= rows.step < span.stop
        seed, user, step, agent = (
            one[final] for one in (rows.seed, rows.user, rows.step, rows.agent)
        )
        shape = len(seeds(log)), len(agents(log).seats)
        counts, retained = follow_steps(
            seed, user, step, agent, *shape, self.m, span.start, span.stop
        )
        found = _Followed(counts[0], counts[1], retained, counts[2])
        return _tidy(
            self, log, found, found.retained, f"came fewer than {self.m} steps before the end"
        )


@metric
class RetentionWindowed(Ranged):
    """Retention as the marketplace-eval package has it: all of a user's later interactions.

        CRR_a = mean over users of (later interactions with a / later interactions)

    From 0 to 1; "later" is after the user's first interaction with a *in the range*, to the end
    of the range, so old customers count as new in every range and the number of interactions
    differs by user. Users with none are left out and counted in the note.
    """

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """One row per seed and agent."""
        found = _found(log, *self.passes(log))
        return _tidy(self, log, found, found.retained, "had no later interaction")

    def passes(self, log: LogReader, /) -> Sequence[Pass]:
        """One pass over the interactions in the range."""
        from marketeval.metrics._kernels import EVERYTHING
        from marketeval.metrics.passes import Followed

        span = self.span(log)
        return [Followed(0, EVERYTHING, since=span.start, start=span.start, stop=span.stop)]


@metric
class Churn(Ranged):
    """Share of an agent's users whose last m interactions hold none with it.

        churn_a(m) = users of a with none of their last m interactions at a / users of a

    From 0 to 1, over the interactions in the range. Users with fewer than m interactions after
    their first with the agent have had no time to leave: they are left out and counted in the
    note. Counted in interactions, so that a user who was not drawn for a while has not churned.
    """

    m: int = field(default=10, kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "m", self.m, 1)

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """One row per seed and agent."""
        found = _found(log, *self.passes(log))
        return _tidy(self, log, found, found.gone, _later(self.m))

    def passes(self, log: LogReader, /) -> Sequence[Pass]:
        """One pass over the interactions in the range."""
        from marketeval.metrics._kernels import INTERACTIONS
        from marketeval.metrics.passes import Followed

        span = self.span(log)
        since = span.start
        return [Followed(self.m, INTERACTIONS, since=since, start=since, stop=span.stop)]


@dataclass(frozen=True, slots=True)
class _Followed:
    """By seed and agent: users who tried it, those followed long enough, and sums over these."""

    adopters: Integers
    observed: Integers
    retained: Floats
    gone: Integers


def _found(log: LogReader, one: Pass) -> _Followed:
    from marketeval.metrics.passes import passed

    counts, retained = passed(log, one)
    return _Followed(counts[0], counts[1], retained, counts[2])


def _later(m: int) -> str:
    return f"had fewer than {m} later interactions"


def _tidy(
    metric: Ranged, log: LogReader, found: _Followed, sums: Floats | Integers, short: str
) -> pl.DataFrame:
    windows = metric.span(log).pooled()
    there = presence(log, windows.first, windows.stop, slice(0, len(seeds(log))))
    many = int(found.adopters.max(initial=0)) + 1
    pairs = (found.adopters - found.observed) * many + found.adopters
    distinct, codes = np.unique(pairs, return_inverse=True)
    texts: list[str | None] = []
    for lacking, adopters in zip(*np.divmod(distinct, many), strict=True):
        text = f"{lacking} of {adopters} adopters {short}" if lacking else None
        texts.append(text if adopters else "no first interaction with it in the range")
    values = divide(sums.astype(np.float64), found.observed.astype(np.float64))
    return tidy_rows(
        metric,
        windows,
        seeds(log),
        agents(log).seats,
        values[:, None],
        there | (found.adopters > 0)[:, None],
        codes.reshape(values.shape)[:, None],
        texts,
    )
