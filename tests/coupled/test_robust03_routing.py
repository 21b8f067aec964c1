"""Seventeen real submissions behind three routers: open or exclusive, with capacity or without."""

from __future__ import annotations

from pathlib import Path

import pytest
from ecosystems import data

from marketeval.experiments.compare import compare
from marketeval.experiments.run_directory import RunDirectory
from marketeval.experiments.runner import run
from marketeval.experiments.scenario import override, read_tree
from marketeval.metrics.base import parse_metric
from marketeval.metrics.resampling import summarise


def played(out: Path, seeds: range) -> RunDirectory:
    tree = read_tree("robust03-routing")
    override(tree, "folder", str(data("robust03_new_topics")))
    return run(tree, out, seeds=list(seeds))


def mean(run: RunDirectory, text: str) -> tuple[float, float, float]:
    """Mean over seeds of a market's metric, with its interval."""
    import polars as pl

    name = str(parse_metric(text))
    table = run.metrics().filter((pl.col("metric") == name) & pl.col("subject").is_null())
    row = summarise(table).select("mean", "low", "high").row(0)
    return row[0], row[1], row[2]


@pytest.mark.slow
def test_fifty_seeds_tell_open_from_exclusive_routing_and_capacity_from_none(tmp_path):
    done = played(tmp_path / "run", range(1, 51))
    arms = {"open": done, **done.controls}
    assert sorted(arms) == ["capacity", "exclusive", "exclusive-capacity", "open"]
    for arm in arms.values():
        for text in ("In(retrievers, HHI)", "Regret", "Regret(best=item)"):
            value, low, high = mean(arm, text)
            assert low <= value <= high
            assert high - low < 0.2
        assert mean(arm, "Regret(best=item)")[1] >= 0
    # capacity spreads the traffic of open routers; a third of the market is less to choose from
    assert mean(arms["capacity"], "In(retrievers, HHI)")[2] < mean(done, "In(retrievers, HHI)")[1]
    effect = compare(done, done.controls["capacity"], metrics=["Regret(best=item)"])
    assert effect["high"][0] < 0  # without capacity less is lost
