"""Sums over windows, part by part, against the same sums over the whole table at once."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from marketeval.core.log import EventLog
from marketeval.core.parts import as_array
from marketeval.events.information import KINDS, MISSING, OK, UNGRADED
from marketeval.metrics.base import evaluate, parse_metric
from marketeval.metrics.passes import Sums, run_passes
from marketeval.metrics.windows import Span

AGENTS = 3


def drawn(rows_per_part: int, *, seeds: Sequence[int] = (1, 2, 5), rows: int = 70) -> EventLog:
    """Steps of random interactions, with scores that no sum of is exact, and some without one."""
    log, draw = EventLog(KINDS, rows_per_part=rows_per_part), np.random.default_rng(3)
    for seed in seeds:
        log.begin(seed)
        log.shared(
            "generator",
            agent=np.arange(AGENTS),
            seat=list("ABC"),
            label=list("ABC"),
            position=np.arange(AGENTS),
            entry_step=0,
            privileged=False,
        )
        log.shared("market", horizon=8, users=9, users_per_step=rows)
        for step in range(8):
            lost = draw.random(rows) < 0.2
            score = np.where(lost, np.nan, draw.random(rows) * (draw.random(rows) < 0.7))
            log.append(
                "interaction",
                step=step,
                slot=np.arange(rows),
                user=draw.integers(0, 9, rows),
                question=0,
                topic=0,
                agent=draw.integers(0, AGENTS, rows),
                explored=False,
                score=score,
                grade=UNGRADED,
                cost_usd=0.01 * score,
                latency_s=np.nan,
                signal=score,
                utility=score - 0.3,
                status=np.where(lost, MISSING, OK).astype(np.int8),
            )
        log.end()
    return log


WINDOWS = {
    "": Span(0, 8, "all").pooled(),
    "start=3, stop=7": Span(3, 7, "3-7").pooled(),
    "window=3": Span(0, 8, "all").sliding(3),
    "window=3, mode=tumbling": Span(0, 8, "all").tumbling(3),
    "mode=cumulative": Span(0, 8, "all").cumulative(),
}
COLUMNS = {"MeanScore": "score", "LongitudinalUtility": "utility", "FailureRate": "failed"}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", COLUMNS)
def test_means_over_the_parts_of_a_log_are_those_over_its_whole_table(
    name: str, window: str
) -> None:
    table = drawn(100).scan("interaction").with_columns(
        failed=(pl.col("status").cast(pl.String) != "ok").cast(pl.Float64)
    ).collect()  # fmt: skip
    expected = {}
    for seed in (1, 2, 5):
        for first, stop in zip(WINDOWS[window].first, WINDOWS[window].stop, strict=True):
            rows = table.filter(pl.col("seed") == seed, pl.col("step").is_between(first, stop - 1))
            for subject, agent in ((None, None), ("A", 0), ("B", 1), ("C", 2)):
                mine = rows if agent is None else rows.filter(pl.col("agent") == agent)
                step = int(stop) - 1 if WINDOWS[window].series else None
                expected[seed, step, subject] = mine[COLUMNS[name]].drop_nulls().mean()
    found = evaluate(drawn(100), [parse_metric(f"{name}({window})")])
    assert {row[:3]: row[3] for row in found.select("seed", "step", "subject", "value").rows()} == {
        key: pytest.approx(value, rel=1e-12) for key, value in expected.items()
    }


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("column", ["score", "utility", "failed"])
def test_sums_are_those_of_numpy_over_all_rows_in_every_bit(column: str, window: str) -> None:
    one = Sums(column, WINDOWS[window])
    edges, sums, counts = run_passes(drawn(100), [one])[one.key]
    table = drawn(10**6).scan("interaction").collect()
    values = (
        (as_array(table["status"]) != OK) * 1.0 if column == "failed" else as_array(table[column])
    )
    seed = np.searchsorted([1, 2, 5], as_array(table["seed"]))
    bins = np.searchsorted(edges, as_array(table["step"]), side="right") - 1
    known = ~np.isnan(values) & (bins >= 0) & (bins < edges.size - 1)
    cell = ((seed * (edges.size - 1) + bins) * AGENTS + as_array(table["agent"]))[known]
    for weights, got in ((values[known], sums), (None, counts[0]), (values[known] > 0, counts[1])):
        assert np.bincount(cell, weights, got.size).tolist() == got.ravel().tolist()


def test_the_parts_of_a_log_make_no_difference() -> None:
    metrics = [
        parse_metric(text)
        for text in ("MeanScore", "LongitudinalUtility(window=3)", "FailureRate(window=1)",
                     "Dominance(target=earned)", "ExpectedExposure(target=earned, window=2)")
    ]  # fmt: skip
    whole = evaluate(drawn(10**6), metrics)
    assert len(whole) > 100
    for rows in (64, 1000):
        assert evaluate(drawn(rows), metrics).equals(whole)
    for one in metrics:  # and by itself, on a log that remembers nothing
        assert one.compute(drawn(64)).equals(whole.filter(pl.col("metric") == str(one)))


def test_what_utility_cost_is_added_up_in_the_order_of_the_rows() -> None:
    log = drawn(90)
    cost, gain = np.zeros(3), np.zeros(3)
    for seed, *row in (
        log.scan("interaction").select("seed", "cost_usd", "utility").collect().rows()
    ):
        if None not in row:
            place = log.seeds().index(seed)
            cost[place], gain[place] = cost[place] + row[0], gain[place] + row[1]
    expected = (cost / gain).tolist()
    for rows_per_part in (90, 1 << 20):
        found = evaluate(drawn(rows_per_part), [parse_metric("CostPerUtility")])
        assert found["value"].to_list() == expected


class _Endless:
    """A log that is made while it is read: so many equal parts of interactions."""

    def __init__(self, parts: int) -> None:
        self._log, self._parts = drawn(10**6, seeds=(1,), rows=20_000), parts
        self.scan: Callable[[str], pl.LazyFrame] = self._log.scan
        self.seeds = self._log.seeds

    def batches(self, kind: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        for _ in range(self._parts):
            yield from self._log.batches(kind, names)


def test_the_memory_of_means_does_not_grow_with_the_log() -> None:
    metrics = [parse_metric(one) for one in ("MeanScore", "LongitudinalUtility", "FailureRate",
                                             "Dominance(target=earned)")]  # fmt: skip
    peaks = []
    evaluate(_Endless(1), metrics)  # compiled
    for parts in (2, 20):
        log = _Endless(parts)
        tracemalloc.start()
        evaluate(log, metrics)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
