"""Profit as a share of the possible: against recorded rivals, under the ceiling."""

from __future__ import annotations

import polars as pl
import pytest

from marketeval.core.drive import lockstep
from marketeval.core.log import EventLog
from marketeval.experiments.assembly import assemble
from marketeval.experiments.executors import Serial
from marketeval.experiments.hindsight import UNBOUNDED, Strategy, _recorded, best_responses
from marketeval.experiments.runner import run

TREE = {
    "name": "small",
    "family": "supply_chain",
    "seats": {"idle": "heuristic:idle", "good": "heuristic:markup", "third": "heuristic:reserve"},
    "market": {"horizon": 2, "demand": {"buyers": 30}},
    "metrics": ["Profit"],
}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    return run(TREE, tmp_path_factory.mktemp("h") / "run", executor=Serial(), seeds=[1, 2])


def values(table, metric):
    rows = table.filter(pl.col("metric") == metric).sort("subject", "seed")
    return {seat: part["value"].to_list() for (seat,), part in rows.group_by("subject")}


def test_an_idle_seat_used_none_of_what_was_possible(played):
    table = best_responses(played, menu=[Strategy(1.1, 1.0, 1.5), Strategy(1.0, 1.0, 3.0)])
    share, best = values(table, "ShareOfPossible"), values(table, "BestResponse")
    assert share["idle"] == [0.0, 0.0]
    assert min(best["idle"]) > 1000
    assert all(0 < one <= 1 for one in share["good"])


def test_with_an_empty_menu_what_was_done_is_the_best(played):
    table = best_responses(played, menu=[], seeds=[1])
    assert values(table, "ShareOfPossible")["good"] == [1.0]
    nothing = table.filter(pl.col("subject") == "idle", pl.col("metric") == "ShareOfPossible")
    assert nothing["value"].to_list() == [None]
    assert "earns nothing" in nothing["note"][0]


def test_recorded_seats_do_again_what_they_did(played):
    experiment = assemble(played.scenario)
    for seed, digest in played.manifest.digests().items():
        seats = {**experiment.seats, **dict(_recorded(played, seed))}
        log = EventLog(experiment.market.events)
        assert lockstep(experiment.market, seats, seed=seed, log=log) == digest


def test_the_best_of_a_menu_is_no_less_than_what_was_done(played):
    # markup's own rule as a strategy: one above base, all its funds, 1.5 times base
    profit = played.metrics().filter(pl.col("subject") == "good", pl.col("seed") == 1)["value"][0]
    table = best_responses(played, menu=[Strategy(1.0, 1.0, 1.3)], seeds=[1])
    assert values(table, "BestResponse")["good"][0] >= profit


def test_without_a_ceiling_there_is_no_best_response(tmp_path):
    tree = {**TREE, "market": {**TREE["market"], "preset": "paper"}}
    table = best_responses(run(tree, tmp_path / "run", executor=Serial(), seeds=[1]))
    assert table["value"].null_count() == 6
    assert set(table["note"]) == {UNBOUNDED}
