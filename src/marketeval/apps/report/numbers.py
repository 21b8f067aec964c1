"""Numbers of a report: the stored metrics of a run, the rest from its log, and their summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from marketeval.core.errors import DataError, UsageError
from marketeval.metrics.base import TIDY, Metric, evaluate
from marketeval.metrics.resampling import summarise
from marketeval.metrics.tables import Remembering

if TYPE_CHECKING:
    from marketeval.experiments.run_directory import RunDirectory


@dataclass(frozen=True, slots=True)
class Value:
    """A mean over seeds and its interval, which is None where there are fewer than two."""

    mean: float | None
    low: float | None = None
    high: float | None = None


NOTHING = Value(None)


@dataclass(frozen=True)
class Numbers:
    """A tidy table and its summary over seeds, looked up by metric, subject and step."""

    tidy: pl.DataFrame
    summary: pl.DataFrame

    @cached_property
    def _found(self) -> dict[tuple[str, str | None], Value]:
        pooled = self.summary.filter(pl.col("step").is_null())
        rows = pooled.select("metric", "subject", "mean", "low", "high").iter_rows()
        return {(metric, subject): Value(*rest) for metric, subject, *rest in rows}

    def pooled(self, metric: Metric, subject: str | None = None) -> Value:
        """The value over the metric's whole range; all None if there is none."""
        return self._found.get((str(metric), subject), NOTHING)

    def series(self, metric: Metric) -> pl.DataFrame:
        """The rows of a windowed metric."""
        return self.summary.filter((pl.col("metric") == str(metric)) & pl.col("step").is_not_null())


def tidy_of(run: RunDirectory, wanted: Sequence[Metric]) -> pl.DataFrame:
    """The tidy table of some metrics: as stored where they are, else from the log."""
    known, lacking = _known(run, wanted)
    return pl.concat([known, evaluate(run.log, lacking)])


def tidy_of_possible(run: RunDirectory, wanted: Sequence[Metric]) -> pl.DataFrame:
    """As `tidy_of`, without the metrics that this market cannot have."""
    known, lacking = _known(run, wanted)
    log, tables = Remembering(run.log), [known]
    for one in lacking:
        try:
            tables.append(evaluate(log, [one]))
        except UsageError:  # nobody of that kind is in this market
            continue
    return pl.concat(tables)


def summarised(tidy: pl.DataFrame) -> Numbers:
    """A tidy table with its summary over seeds."""
    return Numbers(tidy, summarise(tidy, resamples=1000))


def _known(run: RunDirectory, wanted: Sequence[Metric]) -> tuple[pl.DataFrame, list[Metric]]:
    """The stored rows of some metrics, none if the run stopped before; the metrics without any."""
    try:
        stored = run.metrics()
    except DataError:
        stored = pl.DataFrame(schema=TIDY)
    known = stored.filter(pl.col("metric").is_in([str(one) for one in wanted]))
    there = set(known["metric"].unique())
    return known.select(list(TIDY)), [one for one in wanted if str(one) not in there]
