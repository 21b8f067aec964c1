"""Places of seats by a metric over seeds, with what the choice of seeds leaves open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from marketeval.core.streams import Streams
from marketeval.metrics.ranking import ranks
from marketeval.metrics.tables import Floats

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Standing:
    """A seat's mean, its place (1 = the largest mean; ties share one), and the places between
    which 95 % of bootstrap resamples of the seeds put it (None with fewer than two seeds)."""

    seat: str
    mean: float | None
    place: int
    low: int | None
    high: int | None


def standings(tidy: pl.DataFrame, metric: str, *, resamples: int = 1000) -> list[Standing]:
    """The seats by the mean over seeds of a metric of the whole run, best first.

    Percentile bootstrap over seeds; all seats share the resamples. Seats without any value stand
    last, undefined seeds count as missing.
    """
    import polars as pl

    rows = tidy.filter(
        pl.col("metric") == metric, pl.col("step").is_null(), pl.col("subject").is_not_null()
    )
    seats = rows["subject"].unique(maintain_order=True).to_list()
    seeds = rows["seed"].unique().sort()
    values = np.full((seeds.len(), len(seats)), np.nan)
    place = {seat: number for number, seat in enumerate(seats)}
    at = np.searchsorted(seeds.to_numpy(), rows["seed"].to_numpy())
    column = [place[seat] for seat in rows["subject"]]
    values[at, column] = rows["value"].fill_null(float("nan")).to_numpy()
    means = _means(values)
    places = _places(means)
    low, high = _spread(values, resamples)
    found = [
        Standing(
            seat,
            None if np.isnan(means[i]) else float(means[i]),
            int(places[i]),
            None if low is None else int(low[i]),
            None if high is None else int(high[i]),
        )
        for i, seat in enumerate(seats)
    ]
    return sorted(found, key=lambda one: one.place)


def _means(values: Floats) -> Floats:
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _places(means: Floats) -> Floats:
    return np.asarray(ranks(np.where(np.isnan(means), -np.inf, means)))


def _spread(values: Floats, resamples: int) -> tuple[Floats, Floats] | tuple[None, None]:
    seeds = values.shape[0]
    if seeds < 2:
        return None, None
    stream = Streams(0)["standings"]
    drawn = np.array(
        [_places(_means(values[stream.below(seeds, one, seeds)])) for one in range(resamples)]
    )
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0, method="inverted_cdf")
    return low, high
