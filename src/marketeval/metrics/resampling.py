"""Over seeds: means with bootstrap intervals, and effects paired by seed.

The intervals are percentile bootstrap intervals (Efron and Tibshirani, 1993, chapter 13) over
seeds. All series share the resamples, which are drawn by a keyed stream, so that the same table
always gives the same interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marketeval.core.errors import UsageError
from marketeval.core.streams import Streams
from marketeval.core.threads import each_part, kernel_threads
from marketeval.metrics._kernels import draw_seeds

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]
KEY = ("metric", "window", "step", "subject")
TEXTS = ("metric", "window", "subject")
_CELLS = 1 << 22  # numbers in one array


def summarise(tidy: pl.DataFrame, *, level: float = 0.95, resamples: int = 2000) -> pl.DataFrame:
    """Mean over seeds of every series of a tidy table, with its interval.

    Columns: metric, window, step, subject; seeds (number with a value), undefined (number with a
    null); mean, sd (of the seeds, n - 1), low and high. sd and the interval are null with fewer
    than two values. The rows keep the order in which the table names the series.
    """
    import polars as pl

    _check(level, resamples)
    coded = tidy.select(  # numbers instead of texts, which would be copied once for every row
        "seed",
        *(pl.col(one).cast(pl.Categorical).to_physical() for one in TEXTS),
        "step",
        pl.col("value").fill_nan(None),
    )
    first = coded.select(KEY).with_row_index("row").unique(KEY, keep="first", maintain_order=True)
    keys = tidy.select(KEY)[first["row"]]
    placed = coded.join(
        first.drop("row").with_row_index("key"), on=KEY, how="left", nulls_equal=True
    )
    seeds = placed["seed"].unique().sort().to_numpy()
    rows = np.searchsorted(seeds, placed["seed"].to_numpy())
    places, values = placed["key"].to_numpy(), placed["value"].to_numpy()
    order = np.argsort(places, kind="stable")
    rows, places, values = rows[order], places[order], values[order]
    chunk = max(1, min(_CELLS // max(seeds.size, 1), _CELLS // resamples))
    columns: list[dict[str, Floats]] = []
    for start in range(0, keys.height, chunk):
        stop = min(start + chunk, keys.height)
        part = slice(*np.searchsorted(places, [start, stop]).tolist())
        matrix = np.full((seeds.size, stop - start), np.nan)
        matrix[rows[part], places[part] - start] = values[part]
        found = _summary(matrix, level, resamples)
        nulls = places[part][np.isnan(values[part])] - start
        found["undefined"] = np.bincount(nulls, minlength=stop - start).astype(np.float64)
        columns.append(found)
    names = ("seeds", "undefined", "mean", "sd", "low", "high")
    summary = pl.DataFrame(
        {
            name: np.concatenate([one[name] for one in columns]) if columns else np.empty(0)
            for name in names
        }
    ).with_columns(
        pl.col("seeds", "undefined").cast(pl.Int64),
        pl.col("mean", "sd", "low", "high").fill_nan(None),
    )
    return keys.hstack(summary)


def paired_effect(
    tidy: pl.DataFrame,
    control_tidy: pl.DataFrame,
    *,
    level: float = 0.95,
    resamples: int = 2000,
) -> pl.DataFrame:
    """Mean over seeds of value minus the control's value of the same seed, as `summarise`.

    Rows that only one side has are left out; seeds undefined on either side count as undefined.
    """
    import polars as pl

    joined = tidy.select("seed", *KEY, "value").join(
        control_tidy.select("seed", *KEY, control=pl.col("value")),
        on=["seed", *KEY],
        how="inner",
        nulls_equal=True,
        maintain_order="left",
    )
    difference = joined.with_columns(pl.col("value") - pl.col("control")).drop("control")
    return summarise(difference, level=level, resamples=resamples)


def _summary(matrix: Floats, level: float, resamples: int) -> dict[str, Floats]:
    """Statistics of the columns of a (seeds, series) matrix, NaN left out."""
    known = ~np.isnan(matrix)
    count = known.sum(axis=0).astype(np.float64)
    # sums are of distances from one of the values, so that a constant series is exactly constant
    one = np.take_along_axis(matrix, known.argmax(axis=0)[None], axis=0)[0]
    mean = one + _divide(np.where(known, matrix - one, 0.0).sum(axis=0), count)
    apart = np.where(known, matrix - mean, 0.0)
    sd = np.sqrt(_divide((apart * apart).sum(axis=0), np.maximum(count - 1, 0)))
    weight = known.astype(np.float64)
    complete = bool(known.all())
    means = np.empty((resamples, matrix.shape[1]))
    for rows, draws in _resampled(matrix.shape[0], resamples):
        below = float(matrix.shape[0]) if complete else draws @ weight
        means[rows] = mean + _divide(draws @ apart, below)
    low, high = (_quantile(means, q) for q in ((1 - level) / 2, (1 + level) / 2))
    few = count < 2
    return {
        "seeds": count,
        "mean": mean,
        "sd": sd,
        "low": np.where(few, np.nan, low),
        "high": np.where(few, np.nan, high),
    }


def _resampled(seeds: int, resamples: int) -> Iterator[tuple[slice, Floats]]:
    """How often each seed is drawn in each resample, some resamples at a time, in one array."""
    chunk = max(1, min(resamples, _CELLS // max(seeds, 1)))
    draws = np.empty((chunk, seeds))
    for start in range(0, resamples, chunk):
        stop = min(start + chunk, resamples)
        draws[: stop - start] = _drawn(seeds, start, stop)
        yield slice(start, stop), draws[: stop - start]


@lru_cache(maxsize=8)  # a table and its controls are resampled alike
def _drawn(seeds: int, start: int, stop: int) -> NDArray[np.uint8]:
    """How often each seed is drawn in each of some resamples: never as often as 256 times."""
    counts = np.zeros((stop - start, seeds), np.uint8)
    code = Streams(0)["bootstrap"].code
    share = -(-(stop - start) // kernel_threads())
    each_part(stop - start, share, lambda a, b: draw_seeds(code, start + a, counts[a:b]))
    return counts


def _quantile(values: Floats, q: float) -> Floats:
    """Linear quantile of each column, NaN left out."""
    ordered = np.sort(values, axis=0)  # NaN goes last
    count = np.sum(~np.isnan(values), axis=0)
    place = np.maximum(count - 1, 0) * q
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(count - 1, 0))
    columns = np.arange(values.shape[1])
    lower, upper = ordered[below, columns], ordered[above, columns]
    return np.asarray(lower + (upper - lower) * (place - below))


def _divide(above: Floats, below: Floats | float) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(np.equal(below, 0), np.nan, above / below))


def _check(level: float, resamples: int) -> None:
    if not 0 < level < 1:
        raise UsageError(f"expected a level between 0 and 1, such as 0.95, got {level}")
    if resamples < 1:
        raise UsageError(f"expected at least one resample, got {resamples}")
