"""The sweep from the command line: its inputs, what it says when stopped, and what a run says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from shell import Shell

from marketeval.experiments import sweep as sweeping


def test_tables_of_answers_and_seats_are_given_as_to_a_run(
    shell: Shell, table: Path, tmp_path: Path, refused: Callable[..., str]
) -> None:
    (tmp_path / "two.yaml").write_text(
        "seats: {ada: recorded, bob: recorded}\n"
        "market: {horizon: 6, users: {population: 4, per_step: 2}}\nmetrics: [HHI]\nseeds: 1-2\n"
    )
    words = ("sweep", "two.yaml", "--grid", "epsilon=0.1,0.4", "--executor", "serial")
    assert "give a table with --outcomes FILE" in refused(*words)
    told = shell(*words, "--outcomes", "table.csv", "--no-report", "--format", "json")
    assert told.code == 0, told.err
    assert [row["market.choice.epsilon"] for row in json.loads(told.out)] == ["0.1", "0.4"]
    words = (*words, "--seat", "ada=bernoulli:0.9", "--seat", "bob=bernoulli:0.1", "--out", "rates")
    assert shell(*words, "--no-report").code == 0


def test_an_interrupted_sweep_says_that_the_same_command_goes_on_and_it_does(
    shell: Shell, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("sweep", "small.yaml", "--grid", "epsilon=0.1,0.4", "--executor", "serial")
    words = (*words, "--no-report", "--out", "out")
    play, played = sweeping.play_cell, []

    def stopped(cell: sweeping.Cell) -> str:
        if played:
            raise KeyboardInterrupt
        played.append(cell)
        return play(cell)

    with monkeypatch.context() as patch:
        patch.setattr(sweeping, "play_cell", stopped)
        answer = shell(*words)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.splitlines()[-1] == (
        "error: interrupted; the cells that were finished stay; "
        "the same command goes on with the others"
    )
    first = tmp_path / "out" / "cells" / "epsilon=0.1" / "metrics.parquet"
    kept = first.stat().st_mtime_ns
    assert shell(*words).code == 0
    assert first.stat().st_mtime_ns == kept


def test_a_run_that_keeps_metrics_alone_says_that_it_draws_no_report(
    shell: Shell, small: Path, tmp_path: Path
) -> None:
    words = ("run", "small.yaml", "--keep", "metrics", "--executor", "serial", "--out")
    answer = shell(*words, "out", "--report")
    assert answer.code == 0, answer.err
    assert "no report: it is drawn from the events" in answer.err
    assert not (tmp_path / "out" / "report.html").exists()
    assert "report" not in shell(*words, "quiet", "--no-report").err
