"""A scenario whose users are agents, from the file to the report's tables."""

from __future__ import annotations

import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path

import polars as pl
import pytest

from marketeval.apps.cli.main import run as marketeval
from marketeval.core.errors import ScenarioError, UnknownNameError
from marketeval.experiments.assembly import assemble
from marketeval.experiments.scenario import check
from marketeval.testing.fake_endpoint import FakeEndpoint


def scenario(agent: str, **seat: object) -> dict[str, object]:
    return {
        "name": "asked",
        "seats": {
            "good": "bernoulli:0.9",
            "bad": "bernoulli:0.2",
            "me": {"agent": agent, "options": {"max_tokens": 32}, **seat},
        },
        "market": {
            "horizon": 6,
            "users": {"population": 4, "per_step": 3},
            "segments": [{"name": "by rule"}, {"name": "asked", "agent": "me"}],
        },
        "seeds": "1-2",
    }


def an_option(body: dict) -> str:
    """One of the options, by the hash of what the user is told."""
    told = body["messages"][-1]["content"]
    options = len(re.findall(r"^\d+: ", told, re.MULTILINE)) or 1
    return json.dumps({"agent": hashlib.sha256(told.encode()).digest()[0] % options})


def test_it_runs_does_not_compete_and_is_played_again_without_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with FakeEndpoint(reply=an_option) as fake:
        Path("asked.json").write_text(json.dumps(scenario(fake.agent)))
        words = ["run", "asked.json", "--out", "done", "--no-report"]
        assert marketeval(words) == 0, capsys.readouterr().err
        asked = fake.requests
        competing = pl.read_parquet("done/events/generator/*.parquet")["seat"]
        assert set(competing) == {"bad", "good"}
        assert 0 < asked <= 2 * 6 * 3 + 1
        capsys.readouterr()
    assert marketeval(["replay", "done"]) == 0, capsys.readouterr().err
    assert marketeval([*words, "--force", "--replay-only"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert marketeval(["prompts", "asked.json", "--seat", "me", "--step", "3"]) == 0
    assert "asked by you" in capsys.readouterr().out


def test_choices_that_name_nobody_are_the_seats_failure_rate_and_its_prompt_is_in_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def lost(body: dict) -> str:
        return json.dumps({"agent": 9}) if "asked by you 1 time" in str(body) else an_option(body)

    with FakeEndpoint(reply=lost) as fake:
        Path("asked.json").write_text(json.dumps(scenario(fake.agent)))
        words = ["run", "asked.json", "--out", "done", "--no-report"]
        assert marketeval(words) == 0, capsys.readouterr().err
    assert "me (chooses for users)" in capsys.readouterr().out
    metrics = pl.read_parquet("done/metrics.parquet").filter(metric="ChoiceFailureRate")
    events = {
        kind: pl.concat(
            [pl.read_parquet(one) for one in Path("done/events", kind).glob("*.parquet")]
        )
        for kind in ("interaction", "missing_choice", "user", "segment")
    }
    assert sorted(events["segment"]["seat"].unique()) == ["", "me"]
    asked = set(events["user"].filter(segment=1)["user"])
    for seed, value in metrics.filter(subject="me").select("seed", "value").iter_rows():
        there = events["interaction"].filter(seed=seed)
        failed = events["missing_choice"].filter(seed=seed).height
        assert value == failed / there["user"].is_in(list(asked)).sum()
        assert failed > 0
    rules = files("marketeval.markets.information") / "prompts" / "user-v1.txt"
    digest = hashlib.sha256(rules.read_text("utf-8").strip().encode()).hexdigest()[:16]
    manifest = json.loads(Path("done/manifest.json").read_text())
    assert manifest["data"]["prompt user-v1"] == digest


def test_a_segment_whose_seat_is_not_there_or_enters_late_is_refused() -> None:
    tree = scenario("python:nobody:None")
    tree["market"]["segments"][1]["agent"] = "mee"  # type: ignore[index]
    with pytest.raises(UnknownNameError, match="chooses for segment 'asked' 'mee'; did you mean"):
        assemble(check(tree))
    with pytest.raises(ScenarioError, match=r"'me' chooses for users, .* cannot enter at step 2"):
        assemble(check(scenario("person", enters=2)))
