"""The ladder of structured output, its nudges, and what it tells."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from dataclasses import dataclass

import pytest

from marketeval.agents.registry import make_agent
from marketeval.core.errors import ScenarioError
from marketeval.core.market import Failure, Noted, Request
from marketeval.core.streams import Streams
from marketeval.llm.calls import Calls
from marketeval.llm.cassette import Cassette
from marketeval.llm.structured import SENT_BACK, bounded, read_json, strict
from marketeval.testing.fake_endpoint import FakeEndpoint, always, refusing, status


@dataclass(frozen=True)
class Bid:
    amount: int
    why: str = ""


def decide(fake, path=None, mode="record", turn=3):
    async def one():
        async with Calls(Cassette(path, mode=mode, scenario="s")) as calls:
            seat = make_agent(fake.agent, seat="bidder", calls=calls)
            request = Request(
                seat="bidder", decision="bid", action=Bid, step=0, turn=turn, draws=Streams(5),
                instructions="Bid for the lot.", briefing={"cash": 100},
            )  # fmt: skip
            return await seat.act(request)

    return asyncio.run(one())


GOOD = '{"amount": 7, "why": "cheap"}'


@pytest.mark.parametrize(
    ("refused", "rung"),
    [((), 0), (("json_schema",), 1), (("json_schema", "json_object"), 2)],
)
def test_an_endpoint_that_refuses_a_rung_is_asked_on_the_next_and_never_again(
    refused, rung, tmp_path
):
    path = tmp_path / "calls.sqlite"
    with FakeEndpoint(reply=lambda body: GOOD, faults=refusing(*refused)) as fake:
        said = decide(fake, path)
        assert said.action == Bid(7, "cheap")
        assert said.events[0][1]["rung"] == rung
        assert fake.requests == len(refused) + 1
        assert decide(fake, path, "replay-only") == said
        assert fake.requests == len(refused) + 1
    forms = [body.get("response_format", {}).get("type") for body in fake.seen]
    assert forms == ["json_schema", "json_object", None][: rung + 1]
    assert ("JSON schema" in fake.seen[-1]["messages"][-1]["content"]) == (rung > 0)


def test_a_refusal_in_other_words_goes_down_the_ladder_too_and_is_known_after_a_kill(tmp_path):
    path = tmp_path / "calls.sqlite"
    no = lambda number, body: status(422, message="no") if "response_format" in body else None  # noqa: E731
    with FakeEndpoint(reply=lambda body: GOOD, faults=no) as fake:
        said = decide(fake, path)
        with sqlite3.connect(path) as file:
            file.execute("DELETE FROM format")  # killed before the rung was kept
        assert decide(fake, path) == said
        assert fake.requests == 3
        cassette = Cassette(path, mode="replay-only", scenario="s")
        assert [(one["calls"], one["failures"]) for one in cassette.totals()] == [(1, 0)]
        cassette.close()


def test_a_request_that_is_refused_in_every_form_fails_alone_and_condemns_no_form(tmp_path):
    path = tmp_path / "calls.sqlite"
    long = lambda number, body: status(400, message="too long") if number <= 3 else None  # noqa: E731
    with FakeEndpoint(reply=lambda body: GOOD, faults=long) as fake:
        assert decide(fake, path).action == Failure("HTTP 400")
        assert decide(fake, path, turn=4).events[0][1]["rung"] == 0
        assert decide(fake, path, "replay-only").action == Failure("HTTP 400")
        assert fake.requests == 4


OVERLONG = status(400, message="this model's maximum context length is 100 tokens")


def test_a_request_longer_than_the_context_is_sent_in_no_other_form(tmp_path):
    path, said = tmp_path / "calls.sqlite", "HTTP 400: longer than the model's context"
    with FakeEndpoint(reply=lambda body: GOOD, faults=always(OVERLONG)) as fake:
        assert decide(fake, path).action == Failure(said)
        assert decide(fake, path, "replay-only").action == Failure(said)
        assert fake.requests == 1


def test_a_nudge_that_is_too_long_gives_the_answer_up_and_counts_it():
    late = lambda number, body: OVERLONG if number == 2 else None  # noqa: E731
    with FakeEndpoint(reply=lambda body: "seven", faults=late) as fake:
        said = decide(fake)
    assert said.action == Failure("HTTP 400: longer than the model's context", asked=2)
    assert said.events[0][1]["unreadable"] == 1


def test_what_cannot_be_read_is_shown_its_error_and_told():
    replies = iter(["seven", '{"amount": "many", "why": ""}', f"Sure!\n```json\n{GOOD}\n```"])
    with FakeEndpoint(reply=lambda body: next(replies)) as fake:
        said = decide(fake)
    assert said.action == Bid(7, "cheap")
    row = said.events[0][1]
    assert row["unreadable"] == 2
    assert "no JSON value in the answer" in row["reason"]
    assert "amount" in row["reason"]
    assert [len(body["messages"]) for body in fake.seen] == [2, 4, 6]
    assert "amount" in fake.seen[2]["messages"][-1]["content"]


def test_after_two_nudges_it_is_a_failure_and_no_guess():
    with FakeEndpoint(reply=lambda body: "seven") as fake:
        said = decide(fake)
    assert isinstance(said, Noted)
    assert said.action == Failure("unreadable answer: no JSON value in the answer", asked=3)
    assert fake.requests == 3


def test_a_seat_that_plays_has_a_call_of_its_own_in_each_seed_and_turn(tmp_path):
    async def sampled():
        async with Calls(Cassette(tmp_path / "c.sqlite")) as calls:
            seat = make_agent(fake.agent, seat="bidder", calls=calls)
            for seed, turn in ((1, 0), (1, 1), (2, 0), (2, 0)):
                await seat.act(Request(seat="bidder", decision="bid", action=Bid, step=0,
                                       turn=turn, draws=Streams(seed)))  # fmt: skip

    with FakeEndpoint(reply=lambda body: GOOD) as fake:
        asyncio.run(sampled())
    assert fake.requests == 3


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        'Here: {"a": 1} as asked',
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}```',
        '{x {"a": 1}',
    ],
)  # fmt: skip
def test_json_is_found_where_models_put_it(text):
    assert read_json(text) == {"a": 1}


def test_a_strict_schema_requires_all_and_nothing_else():
    from pydantic import TypeAdapter

    schema = strict(TypeAdapter(Bid).json_schema())
    assert schema["required"] == ["amount", "why"]
    assert schema["additionalProperties"] is False
    assert "default" not in json.dumps(schema)


def test_of_an_answer_that_was_cut_off_only_its_start_is_sent_back():
    """Room is what it had too little of: neither the whole nor the schema is sent again."""

    def cut(body):
        part = '{"amount": {"amount": 1, "why": ""}, "why": "'  # it holds what could be read as one
        return GOOD if len(body["messages"]) > 2 else part + "so " * 1000

    with FakeEndpoint(reply=cut) as fake:
        said = decide(fake)
    first, again = fake.seen[0]["messages"], fake.seen[1]["messages"]
    assert said.action == Bid(7, "cheap")
    reason = "cut off at 512 tokens; no whole JSON value in the answer"
    assert said.events[0][1]["reason"] == reason
    assert len(again[-2]["content"]) <= SENT_BACK + len(" ...")
    assert "shorter" in again[-1]["content"]
    assert "amount" not in again[-1]["content"]
    assert first == again[: len(first)]


def test_the_room_of_an_answer_can_be_bounded():
    wide = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 10},
            "kind": {"type": "string", "enum": ["a", "much longer"]},
            "words": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "few": {"type": "array", "minItems": 3, "items": {"type": "string"}},
        },
    }
    narrow = bounded(wide, max_length=20, max_items=2)["properties"]
    assert narrow["name"]["maxLength"] == 10
    assert narrow["kind"] == wide["properties"]["kind"]
    assert narrow["words"]["anyOf"][0]["maxLength"] == 20
    assert (narrow["few"]["maxItems"], narrow["few"]["items"]["maxLength"]) == (3, 20)
    assert bounded(wide) == wide


@pytest.mark.parametrize("value", [0, True, "x", 2.5])
def test_a_bound_is_a_whole_number(value):
    with pytest.raises(ScenarioError, match="option max_items: expected a whole number from 1"):
        make_agent("openai:m", seat="s", options={"max_items": value})
