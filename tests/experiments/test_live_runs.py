"""Whole runs whose seats ask a model, against an endpoint on the loopback that answers as told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from marketeval.apps.cli.main import run as marketeval
from marketeval.experiments.run_directory import RunDirectory
from marketeval.testing.fake_endpoint import FakeEndpoint, always, every, status

QUESTIONS = "item_id,question,answer\n" + "".join(
    f"q{number},Name a digit that is {number}?,{number}\n" for number in range(8)
)
SCENARIO = """
title: three products of one endpoint
seats:
  anna: {{agent: "{agent}", options: {{max_tokens: 8, system: You are Anna.}}}}
  bert: {{agent: "{agent}", options: {{max_tokens: 8, system: You are Bert.}}}}
  cleo: {{agent: "{agent}", enters: 4, options: {{max_tokens: 8, system: You are Cleo.}}}}
items: questions.csv
static: true
market: {{horizon: 8, users: {{population: 4, per_step: 4}}}}
controls:
  no-entry: {{seats.cleo: null}}
seeds: 1-3
"""


@pytest.fixture
def fake() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as endpoint:
        yield endpoint


@pytest.fixture
def scenario(tmp_path: Path, fake: FakeEndpoint) -> str:
    (tmp_path / "questions.csv").write_text(QUESTIONS)
    (tmp_path / "live.yaml").write_text(SCENARIO.format(agent=fake.agent))
    return str(tmp_path / "live.yaml")


def play(scenario: str, out: Path, *options: str) -> int:
    return marketeval(["run", scenario, "--out", str(out), "--no-report", *options])


def digests(out: Path) -> list[str]:
    whole = RunDirectory(out)
    return [whole.manifest.log_digest, whole.controls["no-entry"].manifest.log_digest]


def test_a_question_is_asked_once_of_each_product_by_market_control_and_static_evaluation(
    scenario: str, fake: FakeEndpoint, tmp_path: Path
) -> None:
    assert play(scenario, tmp_path / "run") == 0
    assert fake.requests == 1 + 3 * 8  # one preflight, then each product and question once
    static = RunDirectory(tmp_path / "run").scan("static_score").collect()
    assert static["items"].to_list() == [8, 8, 8]


def test_played_again_the_calls_come_from_the_cassette_and_the_log_is_the_same(
    scenario: str, fake: FakeEndpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play(scenario, tmp_path / "run") == 0
    asked, before = fake.requests, digests(tmp_path / "run")

    assert play(scenario, tmp_path / "run", "--force") == 0
    assert play(scenario, tmp_path / "run", "--force", "--replay-only") == 0
    assert marketeval(["replay", str(tmp_path / "run")]) == 0

    assert fake.requests == asked
    assert digests(tmp_path / "run") == before
    assert capsys.readouterr().out.count("the same log") == 2


def test_a_changed_scenario_replaces_the_run_and_uses_what_was_paid_for(
    scenario: str, fake: FakeEndpoint, tmp_path: Path
) -> None:
    assert play(scenario, tmp_path / "run") == 0
    asked = fake.requests

    assert play(scenario, tmp_path / "run", "--force", "--set", "rate=0.3") == 0
    assert marketeval(["replay", str(tmp_path / "run")]) == 0

    assert fake.requests == asked


@pytest.mark.parametrize("limit", [3, 11, 20])
def test_a_run_stopped_by_its_limit_of_calls_goes_on_where_it_was(
    scenario: str, fake: FakeEndpoint, tmp_path: Path, limit: int
) -> None:
    assert play(scenario, tmp_path / "whole") == 0
    asked = fake.requests

    assert play(scenario, tmp_path / "run", "--max-calls", str(limit)) == 1
    assert fake.requests <= asked + limit + 1
    assert play(scenario, tmp_path / "run", "--resume") == 0

    assert fake.requests == 2 * asked
    assert digests(tmp_path / "run") == digests(tmp_path / "whole")


def test_an_endpoint_that_fails_one_call_in_three_changes_no_result(
    scenario: str, fake: FakeEndpoint, tmp_path: Path
) -> None:
    assert play(scenario, tmp_path / "smooth") == 0
    fake.faults = every(3, status(500))
    quick = ["--set", f'endpoints={{"{fake.url}": {{backoff_s: 0.01}}}}']

    assert play(scenario, tmp_path / "rough", *quick) == 0

    assert digests(tmp_path / "rough") == digests(tmp_path / "smooth")


def test_an_endpoint_that_never_answers_ends_the_run_before_anything_is_written(
    scenario: str, fake: FakeEndpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.faults = always(status(500))

    assert play(scenario, tmp_path / "run") == 2

    assert fake.url in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--replay-only"], "replay-only needs recorded calls"),
        (["--set", "items="], "needs the questions in words"),
        (["--seat", "anna=openai:gpt-4.1"], "OPENAI_API_KEY"),
        (["--seat", "anna=opnai:gpt-4.1"], "did you mean 'openai'"),
        (["--seat", "judge=judge:mach"], "did you mean 'match'"),
        (["--max-cost", "1"], "--max-cost needs a price"),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_line_and_nothing_is_written(
    scenario: str,
    tmp_path: Path,
    options: list[str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    assert play(scenario, tmp_path / "run", *options) == 2

    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("on_missing", "code"), [("skip", 0), ("0.0", 0), ("stop", 1)])
def test_a_call_that_fails_for_good_is_missing_and_teaches_what_the_scenario_says(
    scenario: str, fake: FakeEndpoint, tmp_path: Path, on_missing: str, code: int
) -> None:
    gone = status(404)
    fake.faults = lambda number, body: gone if "You are Anna" in str(body) else None

    settings = ["--set", f"on_missing={on_missing}", "--set", "static=false"]
    assert play(scenario, tmp_path / "run", *settings) == code

    if code == 0:
        rows = RunDirectory(tmp_path / "run").scan("interaction").collect()
        lost = rows.filter(rows["status"] == "missing")
        assert lost.height == rows.filter(rows["agent"] == 0).height > 0
        assert lost["signal"].null_count() == (lost.height if on_missing == "skip" else 0)
        assert set(lost["signal"].drop_nulls()) <= {-1.0}
