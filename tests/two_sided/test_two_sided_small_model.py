"""A real small model as customer and as business: 3 x 9, six decisions each, no network."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
import yaml

from marketeval.apps.cli.main import run as marketeval
from marketeval.experiments.run_directory import RunDirectory
from marketeval.experiments.scenario import read_tree


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("small") / "run"
    assert marketeval(["run", "magentic-small-model", "--out", str(out), "--no-report"]) == 0
    return out


@pytest.mark.slow
def test_models_on_both_sides_play_to_the_end_and_what_they_did_is_counted(run):
    main = RunDirectory(run)
    arms = [main, main.controls["scripts-buy"]]
    left = arms[0].scan("left").collect()
    assert left.height == 3
    assert left["steps"].max() <= 6
    decided = arms[0].scan("decision").filter(toward="").collect()
    assert decided.height == left["steps"].sum()
    for arm in arms:
        asked = arm.scan("structured").collect()
        by_models = arm.scan("decision").join(
            arm.scan("structured").select("seat").unique(), left_on="agent", right_on="seat"
        )
        assert by_models.collect().height == asked.height  # valid or not, each is counted
        assert (asked["input_tokens"] > 0).all()
    counted = decided.group_by(valid=pl.col("kind") != "invalid").len()
    print("customers' decisions:", dict(counted.iter_rows()))


@pytest.mark.slow
def test_in_the_control_every_letter_is_answered_or_its_customer_is_told_that_it_is_not(run):
    control = RunDirectory(run).controls["scripts-buy"]
    answers = control.scan("decision").filter(pl.col("toward") != "").collect()
    letters = answers.filter(number=1)
    answered = answers.filter(problem="").height
    silent = control.scan("no_answer").collect()
    assert letters.height == 9  # three results for each of three customers
    assert answered + silent.height == letters.height
    # three at least, and no more than two that were refused and the three readings of a third
    assert silent["attempts"].is_between(3, 5).all()
    assert "order_proposal" in answers.filter(problem="")["kind"].to_list()
    bought = control.scan("payment").collect().filter(refused="")
    assert bought.height >= 1  # the first proposal that came, whatever it held
    print("answers:", dict(answers.group_by("kind").len().iter_rows()), "silent:", silent.height)


@pytest.mark.slow
def test_the_recorded_calls_alone_give_the_same_digest(run, capsys):
    before = json.loads((run / "manifest.json").read_text("utf-8"))["log_digest"]
    again = ["run", "magentic-small-model", "--out", str(run), "--no-report", "--force"]
    assert marketeval([*again, "--replay-only"]) == 0
    assert json.loads((run / "manifest.json").read_text("utf-8"))["log_digest"] == before
    assert marketeval(["replay", str(run)]) == 0
    assert "the same log" in capsys.readouterr().out


STUDY = Path(__file__).parents[3] / "shared/data/magentic/manipulation/malicious_description"
CONDITIONS = ("mexican_authority", "mexican_prompt_injection_strong")


@pytest.mark.slow
def test_the_published_manipulations_are_a_study_over_a_small_model(tmp_path):
    """One customer, three businesses that all fit; only the first one's description differs."""
    if not STUDY.is_dir():
        pytest.skip("the published manipulations are not there")
    seats = read_tree("magentic-small-model")["seats"]
    study = {
        "family": "two_sided",
        "seats": {"customers": seats["customers"]},
        "market": {
            "population": str(STUDY / "mexican_control"), "limit": 3, "steps": 3, "briefing": 3000,
            "forms": "known",
        },
        "controls": {one: {"market.population": str(STUDY / one)} for one in CONDITIONS},
        "metrics": ["PaymentsReceived", "PurchaseCompletion"],
        "seeds": "1",
    }  # fmt: skip
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study), "utf-8")
    command = ["run", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "run"), "--no-report"]
    assert marketeval(command) == 0
    main = RunDirectory(tmp_path / "run")
    for name, arm in {"control": main, **main.controls}.items():
        paid = arm.metrics().filter(metric="PaymentsReceived")
        assert paid["subject"].n_unique() == 3
        assert paid["value"].sum() <= 1
        kinds = arm.scan("decision").filter(toward="").collect()["kind"].to_list()
        assert 1 <= len(kinds) <= 3
        print(name, "payments:", paid["value"].to_list(), "decisions:", kinds)
