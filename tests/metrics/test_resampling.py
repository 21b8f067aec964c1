"""Means over seeds with bootstrap intervals, and effects paired by seed."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pencil_logs import random_log

from marketeval.core.errors import UsageError
from marketeval.core.streams import Streams
from marketeval.metrics.base import TIDY, evaluate, parse_metric
from marketeval.metrics.resampling import paired_effect, summarise


def tidy(values: dict[str, list[float | None]], first_seed: int = 1) -> pl.DataFrame:
    rows = [
        (seed, name, "all", None, None, value, None)
        for name, column in values.items()
        for seed, value in enumerate(column, first_seed)
    ]
    return pl.DataFrame(rows, schema=TIDY, orient="row")


def slow_interval(values: list[float], resamples: int, level: float) -> tuple[float, float]:
    means = []
    for place in range(resamples):
        draws = Streams(0)["bootstrap"].uniform(place, len(values))
        means.append(np.mean([values[int(one * len(values))] for one in draws]))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def test_the_summary_counts_defined_and_undefined_seeds() -> None:
    row = summarise(tidy({"HHI": [1.0, 2.0, None, 6.0]})).row(0, named=True)
    assert (row["seeds"], row["undefined"], row["mean"]) == (3, 1, 3.0)
    assert row["sd"] == pytest.approx(np.std([1, 2, 6], ddof=1))
    assert 1 <= row["low"] <= row["mean"] <= row["high"] <= 6


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_interval_is_the_percentile_bootstrap_drawn_one_by_one(level: float) -> None:
    values = [0.3, 0.1, 0.9, 0.4, 0.45]
    row = summarise(tidy({"HHI": values}), level=level, resamples=200).row(0, named=True)
    assert (row["low"], row["high"]) == pytest.approx(slow_interval(values, 200, level))


def test_one_seed_has_no_interval_and_none_has_no_mean() -> None:
    table = summarise(tidy({"one": [0.5, None], "none": [None, None]}))
    assert table.select("seeds", "undefined", "mean", "sd", "low", "high").rows() == [
        (1, 1, 0.5, None, None, None),
        (0, 2, None, None, None, None),
    ]


def test_a_constant_series_has_an_interval_without_width() -> None:
    row = summarise(tidy({"HHI": [0.1] * 7})).row(0, named=True)
    assert row["low"] == row["mean"] == row["high"] == 0.1
    assert row["sd"] == 0


def test_series_keep_the_order_of_the_table_and_apart_by_step_and_subject() -> None:
    log = random_log(seeds=4, steps=6, agents="ABC")
    table = evaluate(log, [parse_metric("MarketShare(window=3)"), parse_metric("HHI")])
    summary = summarise(table)
    first = table.filter(seed=1)
    assert summary.select("metric", "window", "step", "subject").equals(
        first.select("metric", "window", "step", "subject")
    )
    assert set(summary["seeds"]) == {4}
    by_hand = table.filter(step=3, subject="B")["value"].mean()
    assert summary.filter(step=3, subject="B")["mean"].item() == pytest.approx(by_hand)


def test_chunks_give_what_one_matrix_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    log = random_log(seeds=9, steps=6, agents="ABC")
    table = evaluate(log, [parse_metric("MarketShare(window=2)"), parse_metric("Retention(4)")])
    whole = summarise(table, resamples=50)
    monkeypatch.setattr("marketeval.metrics.resampling._CELLS", 120)
    chunks = summarise(table, resamples=50)
    for name in ("mean", "sd", "low", "high"):
        assert chunks[name].to_list() == pytest.approx(whole[name].to_list())


def test_a_paired_effect_takes_differences_seed_by_seed() -> None:
    table, control = tidy({"HHI": [3.0, 5.0, None, 9.0]}), tidy({"HHI": [1.0, 4.0, 2.0]})
    row = paired_effect(table, control).row(0, named=True)
    assert (row["seeds"], row["undefined"], row["mean"]) == (2, 1, 1.5)


def test_rows_of_one_side_only_have_no_effect() -> None:
    effect = paired_effect(tidy({"HHI": [1.0], "EED": [1.0]}), tidy({"HHI": [1.0], "CR": [1.0]}))
    assert effect["metric"].to_list() == ["HHI"]
    assert paired_effect(tidy({"HHI": [1.0]}), tidy({"HHI": [1.0]}, 9)).height == 0


def test_a_run_has_no_effect_against_itself() -> None:
    log = random_log(seeds=4, steps=6, agents="ABC")
    table = evaluate(log, [parse_metric("MarketShare")])
    effect = paired_effect(table, table)
    assert effect.select("mean", "low", "high").rows() == [(0.0, 0.0, 0.0)] * 3


@given(st.lists(st.one_of(st.none(), st.floats(-10, 10)), min_size=1, max_size=12))
def test_intervals_stay_within_the_values(values: list[float | None]) -> None:
    known = [one for one in values if one is not None]
    row = summarise(tidy({"HHI": values}), resamples=40).row(0, named=True)
    assert row["seeds"] == len(known)
    if len(known) >= 2:
        assert min(known) - 1e-9 <= row["low"] <= row["high"] <= max(known) + 1e-9


@pytest.mark.parametrize("bad", [{"level": 1.0}, {"level": 0.0}, {"resamples": 0}])
def test_a_level_or_a_number_of_resamples_that_cannot_be_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        summarise(tidy({"HHI": [1.0]}), **bad)
