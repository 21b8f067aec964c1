"""--keep metrics: the metrics are those of the log, and nothing else is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from marketeval.apps.cli.main import run as marketeval
from marketeval.core.errors import UsageError
from marketeval.experiments import pieces
from marketeval.experiments.executors import Serial, Threads
from marketeval.experiments.runner import run
from marketeval.experiments.scenario import Tree
from marketeval.metrics.base import evaluate, parse_metric

EVERY = [
    "MarketShare(window=2)", "HHI", "HHI(start=2, stop=6)", "Retention(m=2)", "RetentionWindowed",
    "RetentionSteps(m=2)", "Churn(m=2)", "SwitchRate(window=3)", "MeanScore", "FailureRate",
    "Survival(window=2)", "UserSurvival", "ShareVersusFair",
]  # fmt: skip


@pytest.mark.parametrize("engine", ["general", "compiled"])
def test_the_metrics_alone_are_those_of_the_log(
    tree: Tree, tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "SEEDS_AT_ONCE", 2)
    tree["metrics"], seeds = EVERY, list(range(1, 40))
    log = run(tree, tmp_path / "log", executor=Serial(), seeds=seeds, engine=engine)
    alone = run(
        tree, tmp_path / "alone", executor=Threads(2), seeds=seeds, engine=engine, keep="metrics"
    )
    assert alone.metrics().height > 39 * len(EVERY)
    for mine, theirs in ((alone, log), (alone.controls["no-entry"], log.controls["no-entry"])):
        assert mine.metrics().equals(theirs.metrics())
        assert mine.scan("user").collect().equals(theirs.scan("user").collect())
    assert not (alone.path / "events" / "interaction").exists()


def test_what_was_thrown_away_is_refused_in_one_line(tree: Tree, tmp_path: Path) -> None:
    alone = run(tree, tmp_path / "alone", executor=Serial(), keep="metrics")
    with pytest.raises(UsageError, match="has no events"):
        alone.scan("interaction")
    with pytest.raises(UsageError, match="has no events"):
        evaluate(alone, [parse_metric("HHI")])
    with pytest.raises(UsageError, match="was started with --keep metrics"):
        run(tree, tmp_path / "alone", executor=Serial(), resume=True)


def test_a_unit_that_is_missing_is_played_on_resume(tree: Tree, tmp_path: Path) -> None:
    def broken(done: int, total: int) -> None:
        if done >= 3:
            raise OSError(28, "No space left on device")

    whole = run(tree, tmp_path / "whole", executor=Serial(), keep="metrics")
    with pytest.raises(Exception, match="continue it with --resume"):
        run(tree, tmp_path / "out", executor=Serial(), keep="metrics", progress=broken)
    again = run(tree, tmp_path / "out", executor=Serial(), keep="metrics", resume=True)
    assert again.metrics().equals(whole.metrics())


def test_metrics_and_compare_show_what_was_stored_and_refuse_only_the_rest(
    tree: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree["metrics"] = ["HHI", "MarketShare(window=2)"]
    run(tree, tmp_path / "log", executor=Serial())
    run(tree, tmp_path / "alone", executor=Serial(), keep="metrics")

    def told(verb: str, name: str, *words: str) -> str:
        controls = [str(tmp_path / name / "controls" / "no-entry")] if verb == "compare" else []
        assert marketeval([verb, str(tmp_path / name), *controls, *words]) == 0
        return capsys.readouterr().out

    for words in (
        ("metrics",),
        ("metrics", "HHI"),
        ("metrics", "MarketShare(window = 2)", "--by-seed"),
    ):
        assert told(words[0], "alone", *words[1:]) == told(words[0], "log", *words[1:])
    compared = ("--metric", "HHI")
    assert "HHI" in told("compare", "alone", *compared) == told("compare", "log", *compared)
    control = str(tmp_path / "alone" / "controls" / "no-entry")
    for refused in (
        ["metrics", str(tmp_path / "alone"), "HHI", "MeanScore"],
        ["compare", str(tmp_path / "alone"), control, "--metric", "MeanScore"],
    ):
        assert marketeval(refused) == 2
        err = capsys.readouterr().err
        assert "no events to compute MeanScore from; stored: HHI, MarketShare(window=2);" in err
