"""A scenario whose users are agents, from the file to the report's tables."""

from __future__ import annotations

import hashlib
import json
import re
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


def test_a_segment_whose_seat_is_not_there_or_enters_late_is_refused() -> None:
    tree = scenario("python:nobody:None")
    tree["market"]["segments"][1]["agent"] = "mee"  # type: ignore[index]
    with pytest.raises(UnknownNameError, match="chooses for segment 'asked' 'mee'; did you mean"):
        assemble(check(tree))
    with pytest.raises(ScenarioError, match=r"'me' chooses for users, .* cannot enter at step 2"):
        assemble(check(scenario("person", enters=2)))
