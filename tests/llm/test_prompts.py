"""The prompts of all seats of a market of words, shown without a call."""

from __future__ import annotations

import pytest
from asked_models import SEATS, a_market
from test_users import users

from marketeval.agents.preview import previews
from marketeval.agents.registry import make_agent
from marketeval.apps.cli.main import run as marketeval
from marketeval.core.errors import UnknownNameError, UsageError
from marketeval.experiments import assembly
from marketeval.experiments.experiment import Experiment
from marketeval.experiments.preview import EXAMPLE, first_request
from marketeval.experiments.scenario import Scenario

NOWHERE = "http://127.0.0.1:9/v1#m"


def seats(**more):
    judge = make_agent("judge:three-way", seat="judge", options={"model": NOWHERE})
    models = {seat: make_agent(NOWHERE, seat=seat) for seat in (*SEATS, *more)}
    return {**models, "judge": judge}


def test_a_generator_is_shown_its_questions():
    agents = seats()
    request = first_request(a_market(), agents, "anna", step=2)
    assert request.step >= 2
    shown = list(previews(agents["anna"], request))
    assert len(shown) == len(request.batch["asked"])
    assert request.batch["asked"][0] in shown[0].messages[-1].text


def test_a_judge_is_shown_an_example_of_an_answer():
    agents = seats()
    request = first_request(a_market(), agents, "judge")
    (shown, *_) = previews(agents["judge"], request)
    assert (request.step, shown.prompt.split()[0]) == (0, "three-way-v1")
    assert EXAMPLE in shown.messages[-1].text


def test_a_user_that_is_a_model_is_shown_its_memory():
    agents = seats(me="user")
    request = first_request(users(horizon=9), agents, "me", step=8)
    (shown, *_) = previews(agents["me"], request)
    assert "You can ask:" in shown.messages[-1].text
    assert "without an answer" in "".join(one for one in request.briefing)
    assert list(shown.schema["properties"]) == ["agent"]


def test_a_seat_that_is_not_there_or_never_asked():
    with pytest.raises(UnknownNameError, match="unknown seat 'zoe'"):
        first_request(a_market(), seats(), "zoe")
    with pytest.raises(UsageError, match="'anna' is not asked at step 99 or later"):
        first_request(a_market(), seats(), "anna", step=99)


def test_the_verb_shows_the_first_call_or_all(monkeypatch, capsys):
    experiment = Experiment(
        scenario=Scenario(name="digits", market=users().spec),
        market=users(),
        seats=seats(me="user"),
        hashes={},
    )
    monkeypatch.setattr(assembly, "assemble", lambda scenario: experiment)
    words = ["prompts", "late-entry-qwen3", "--seat", "me"]
    assert marketeval(words) == 0
    out, err = capsys.readouterr()
    assert out.startswith("== call 1: me -> http://127.0.0.1:9/v1#m\n-- system\nYou use")
    assert '"additionalProperties": false' in out
    assert (
        err
        == "seat me, step 0, decision 'choose', calls: 8\nand 7 more like it; --all shows them\n"
    )
    assert marketeval([*words, "--all"]) == 0
    assert capsys.readouterr().out.count("== call ") == 8
