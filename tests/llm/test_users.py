"""Users behind a language model, a person and an own class, in a market of words."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import io
import json
import re

import numpy as np
import pytest
from asked_models import QUICK, SEATS, Lucky, a_market
from test_seats import Wordy

from marketeval.actions.information import Choice
from marketeval.agents.kept import keeping
from marketeval.agents.person import Person
from marketeval.agents.preview import previews
from marketeval.agents.registry import make_agent
from marketeval.core.drive import lockstep_async
from marketeval.core.log import EventLog
from marketeval.llm.calls import Calls
from marketeval.llm.cassette import Cassette
from marketeval.testing.fake_endpoint import FakeEndpoint, first, refusing, status


def told(body):
    return next(one["content"] for one in body["messages"] if one["role"] == "user")


def an_option(body):
    """One of the options, by the hash of what the user is told."""
    options = len(re.findall(r"^\d+: ", told(body), re.MULTILINE))
    digest = hashlib.sha256(told(body).encode()).digest()
    return json.dumps({"agent": digest[0] % options})


def users(horizon=5):
    market = a_market(horizon)
    segments = [{"name": "asked", "agent": "me"}]
    spec = type(market.spec).model_validate({**market.spec.model_dump(), "segments": segments})
    return dataclasses.replace(market, spec=spec)


def play(me, cassette, *, horizon=5, calls=None):
    """The digest of an episode of users behind `me`, and its log."""
    market = users(horizon)
    log = EventLog(market.events)
    seats = {**{seat: Wordy() for seat in SEATS}, "judge": Lucky(), "me": me}

    async def run():
        async with calls or Calls(cassette=cassette):
            seats_kept = keeping(seats, cassette)
            return await lockstep_async(market, seats_kept, seed=1, log=log)

    return asyncio.run(run()), log


def play_model(fake, path, **how):
    cassette = Cassette(path, scenario="users")
    calls = Calls(cassette=cassette, default_limits=QUICK)
    me = make_agent(fake.agent, seat="me", options={"max_tokens": 32}, calls=calls)
    return play(me, cassette, calls=calls, **how)


def say(text):
    return lambda body: text


@pytest.fixture(autouse=True)
def answers(monkeypatch):
    """Generators that answer with a digit, which the judge can read."""

    async def act(self, request):
        from marketeval.actions.information import Answers

        count = len(request.batch["asked"])
        return Answers(score=np.full(count, np.nan), text=[f"{count}"] * count)

    monkeypatch.setattr(Wordy, "act", act)


def test_a_model_chooses_for_each_user_alone_and_nothing_is_asked_twice(tmp_path):
    with FakeEndpoint(reply=an_option) as fake:
        digest, log = play_model(fake, tmp_path / "c")
        assert fake.requests == 5 * 8
        assert play_model(fake, tmp_path / "c")[0] == digest
        assert fake.requests == 5 * 8
    assert all(told(body).count("You can ask:") == 1 for body in fake.seen)
    assert "Your question: What is the digit of" in told(fake.seen[0])
    assert {body["messages"][0]["role"] for body in fake.seen} == {"system"}
    assert log.scan("missing_choice").collect().is_empty()
    assert log.scan("interaction").collect()["agent"].n_unique() == 3
    structured = log.scan("structured").collect()
    assert structured.height == 40
    assert set(structured["decision"]) == {"choose"}


def test_an_endpoint_that_fails_at_first_changes_no_choice(tmp_path):
    with FakeEndpoint(reply=an_option) as fake:
        digest, _ = play_model(fake, tmp_path / "a")
    with FakeEndpoint(reply=an_option, faults=first(3, status(500))) as fake:
        assert play_model(fake, tmp_path / "b")[0] == digest


def test_an_endpoint_without_schemas_is_asked_in_words(tmp_path):
    with FakeEndpoint(reply=an_option, faults=refusing("json_schema", "json_object")) as fake:
        _, log = play_model(fake, tmp_path / "c", horizon=1)
    assert set(log.scan("structured").collect()["rung"]) == {"prompt"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Anna, I think", "unreadable answer: no JSON value in the answer"),
        ('{"agent": 7}', "unreadable answer: agent: expected a number from 0 to 2, got 7"),
        (
            '{"agent": "anna"}',
            'unreadable answer: agent: expected a number from 0 to 2, got "anna"',
        ),
    ],
)
def test_a_model_that_names_nobody_is_nudged_twice_then_the_rule_chooses(tmp_path, text, reason):
    with FakeEndpoint(reply=say(text)) as fake:
        _, log = play_model(fake, tmp_path / "c", horizon=1)
    assert fake.requests == 8 * 3
    missing = log.scan("missing_choice").collect()
    assert missing.height == 8 == log.scan("interaction").collect().height
    assert all(one.startswith(reason) for one in missing["reason"])
    assert log.scan("structured").collect()["unreadable"].to_list() == [3] * 8


def test_a_person_is_shown_what_each_user_knows_and_types_numbers(tmp_path):
    shown = io.StringIO()
    typed = iter(['{"agent": [0, 1, 2, 0, 1, 2, 0, 1]}\n', "skip\n"])
    me = Person(read=lambda: next(typed), out=shown)
    digest, log = play(me, Cassette(tmp_path / "c", scenario="p"), horizon=2)
    assert "Your question: What is the digit of" in shown.getvalue()
    assert "0: " in shown.getvalue()
    missing = log.scan("missing_choice").collect()
    assert (set(missing["step"]), set(missing["reason"])) == ({1}, {"skipped"})
    silent = Person(read=lambda: 1 / 0, out=shown)
    assert play(silent, Cassette(tmp_path / "c", scenario="p"), horizon=2)[0] == digest


def test_the_prompt_of_a_user_can_be_shown():
    requests = []

    class Looking:
        immediate = deterministic = True
        privileged = False

        async def act(self, request):
            requests.append(request)
            return Choice(agent=np.zeros(len(request.batch["slot"]), np.int64))

    play(Looking(), Cassette(None), horizon=1)
    seat = make_agent("http://127.0.0.1:9/v1#m", seat="me")
    shown = list(previews(seat, requests[0]))
    assert len(shown) == 8
    assert shown[0].messages[0].text.startswith("You use assistants")
    assert shown[0].schema["properties"] == {"agent": {"type": "integer", "enum": [0, 1, 2]}}
