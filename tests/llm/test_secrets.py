"""No key in any file, output or traceback, whatever an endpoint sends back."""

from __future__ import annotations

import asyncio
import logging
import traceback
from pathlib import Path

import pytest
from asked_models import QUICK, run

from marketeval.apps.cli.main import run as marketeval
from marketeval.core.errors import ScenarioError
from marketeval.llm.calls import Calls
from marketeval.llm.client import CallError, Message, Parameters
from marketeval.llm.openai_compatible import check_headers, endpoint_model
from marketeval.testing.fake_endpoint import FakeEndpoint, Fault, always, status

KEY = "sk-planted-8f3a91c2d4"
EXTRA = "planted-header-77aa"


@pytest.fixture
def planted(monkeypatch):
    monkeypatch.setenv("MARKETEVAL_API_KEY", KEY)
    monkeypatch.setenv("EXTRA_HEADER", EXTRA)


@pytest.mark.parametrize(
    "fault",
    [
        None,
        status(401, message=f"Incorrect API key provided: {KEY} with {EXTRA}"),
        status(500, message=f"Bearer {KEY} {EXTRA}"),
        Fault(text=f"your key is {KEY} {EXTRA}"),
        Fault(drop=True),
        Fault(broken=True),
    ],
)
def test_a_planted_key_is_nowhere(fault, planted, tmp_path, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    said = []
    options = {"headers": {"X-Extra": "$EXTRA_HEADER"}}
    with FakeEndpoint(faults=always(fault) if fault else None) as fake:
        try:
            asyncio.run(run(tmp_path / "c.sqlite", fake.url, horizon=2, options=options))
        except Exception:
            said.append(traceback.format_exc())
        model = endpoint_model(fake.agent)
        parameters = Parameters(headers={"X-Extra": "$EXTRA_HEADER"})

        async def one():
            async with Calls(default_limits=QUICK) as calls:
                await calls.complete(model, [Message("user", "x")], seat="a", parameters=parameters)

        try:
            asyncio.run(one())
        except CallError as error:
            said += [traceback.format_exc(), error.detail, repr(error.__context__)]
        assert fake.headers["authorization"] == f"Bearer {KEY}"
        assert fake.headers["x-extra"] == EXTRA
    said += [repr(model), str(model), caplog.text, *capfd.readouterr()]
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert files
    for secret in (KEY, EXTRA):
        assert secret not in "".join(said)
        assert all(secret.encode() not in one.read_bytes() for one in files)


def test_a_planted_key_is_in_no_file_and_no_output_of_a_verbose_run(
    planted, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    rows = [f"q{n},What follows {n}?,{n + 1}" for n in range(8)]
    Path("q.csv").write_text("\n".join(["item_id,question,answer", *rows]))

    def echo(number, body):
        if number % 3 == 0:
            return status(500, message=f"Bearer {KEY} {EXTRA}")
        return status(401, message=f"no such key {KEY}") if number % 7 == 0 else None

    with FakeEndpoint(reply=lambda body: f"{KEY} {EXTRA}", faults=echo) as fake:
        Path("s.yaml").write_text(
            f"""
seats:
  mine: {{agent: "{fake.agent}", options: {{headers: {{X-Extra: $EXTRA_HEADER}}}}}}
  other: "bernoulli:0.5"
items: q.csv
endpoints: {{"{fake.url}": {{attempts: 3, backoff_s: 0.01}}}}
market: {{horizon: 3, users: {{population: 4, per_step: 4}}}}
seeds: 1-2
"""
        )
        assert marketeval(["run", "s.yaml", "--out", "out", "--verbose"]) == 0
        assert fake.headers["authorization"] == f"Bearer {KEY}"
    said = capfd.readouterr()
    assert "HTTP 500: Bearer *** ***" in said.err
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert {one.name for one in files} >= {"calls.sqlite", "manifest.json", "report.html"}
    for secret in (KEY, EXTRA):
        assert secret not in said.err + said.out
        assert all(secret.encode() not in one.read_bytes() for one in files)


@pytest.mark.parametrize("name", ["Authorization", "X-Api-Key", "api-key", "Cookie"])
def test_a_secret_written_into_a_scenario_is_refused(name):
    with pytest.raises(ScenarioError, match=r"expected \$VARIABLE"):
        check_headers({name: "abc"})
    check_headers({name: "$MY_KEY", "X-Title": "marketeval"})


@pytest.mark.parametrize("url", ["http://me:pass@h/v1#m", "http://h/v1?api_key=pass#m"])
def test_an_address_that_holds_a_secret_is_refused_without_repeating_it(url):
    with pytest.raises(ScenarioError) as caught:
        endpoint_model(url)
    assert "pass" not in str(caught.value)
