"""Our metrics on the golden logs, against what the published package computes from them."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest
from golden_log import GOLDEN, as_log, golden

from marketeval.core.log import EventLog
from marketeval.metrics.base import evaluate, parse_metric

RANGES = {
    "1-100": "(start=0, stop=100)",
    "101-200": "(start=100, stop=200)",
    "1-200": "",
}  # the package counts steps from 1 and includes the last; we count from 0 and do not


@cache
def log(experiment: str) -> EventLog:
    return as_log(experiment, golden(experiment))


def ours(experiment: str, metric: str) -> dict[tuple[int, str], float | None]:
    rows = evaluate(log(experiment), [parse_metric(metric)])
    return {
        (seed, subject): v for seed, subject, v in rows.select("seed", "subject", "value").rows()
    }


def theirs(file: str, experiment: str, window: str, value: str) -> dict[tuple[int, str], float]:
    rows = pl.read_csv(GOLDEN / file).filter(experiment=experiment, window=window)
    return {(seed, agent): v for seed, agent, v in rows.select("seed", "agent", value).rows()}


@pytest.mark.parametrize("experiment", ["qwen3_late", "deepseek_late"])
@pytest.mark.parametrize("window", RANGES)
def test_windowed_retention_is_the_packages_for_21_seeds(experiment: str, window: str) -> None:
    expected = theirs("retention.csv", experiment, window, "crr")
    found = ours(experiment, "RetentionWindowed" + RANGES[window])
    assert {key: found[key] for key in expected} == pytest.approx(expected, rel=1e-12)
    assert all(value is None for key, value in found.items() if key not in expected)


@pytest.mark.parametrize("experiment", ["qwen3_late", "deepseek_late"])
@pytest.mark.parametrize("window", RANGES)
def test_market_share_is_the_packages_for_21_seeds(experiment: str, window: str) -> None:
    expected = theirs("market_share.csv", experiment, window, "percent")
    found = ours(experiment, "MarketShare" + RANGES[window])
    for key, percent in expected.items():
        share = found.get(key)  # no row for who is not in the market: the package has 0 there
        assert 100 * (share or 0.0) == pytest.approx(percent, rel=1e-12)
    assert all(value == 0 for key, value in found.items() if key not in expected)
