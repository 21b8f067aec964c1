"""No key in any file, output or traceback, whatever an endpoint sends back."""

from __future__ import annotations

import asyncio
import logging
import traceback

import pytest
from asked_models import QUICK, run

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
