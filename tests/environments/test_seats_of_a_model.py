"""What one seat does with replies that are nonsense, empty, late or refused."""

from __future__ import annotations

import asyncio
import json

import pytest
from evaluations import MAGENTIC, play, rewards
from scripted_traders import reply

from marketeval.testing.fake_endpoint import FakeEndpoint, Fault, always, refusing, status

SMALL = {"cells": ["mexican3_optimal"], "seeds": [1]}
QUICK = {"harness": {"id": MAGENTIC, "backoff_s": 0.01}}


def said(body):
    """The user's messages of a conversation."""
    return [str(one["content"]) for one in body["messages"] if one["role"] == "user"]


def of(seat, fault, *, messages):
    """A fault of one seat's calls once it has been sent so many messages."""
    return lambda number, body: (
        fault if f"({seat})" in said(body)[0] and len(said(body)) >= messages else None
    )


def played(endpoint, **settings):
    settings.setdefault("agent", QUICK)
    return asyncio.run(play(MAGENTIC, endpoint.url, taskset=SMALL, **settings))


def trace_of(episode, seat):
    (found,) = [one for one in episode.traces if one.task.data.seat == seat]
    return found


def test_rules_are_the_system_prompt_and_nothing_is_said_twice():
    with FakeEndpoint(reply=reply) as endpoint:
        episode = played(endpoint)
    trace = trace_of(episode, "customer_0001")
    roles = [node.message.role for node in trace.nodes]
    assert roles == ["system", *["user", "assistant"] * 4]
    first, *later = [n.message.content for n in trace.nodes if n.message.role == "user"]
    assert "The wish: " in first
    assert not any("The wish: " in text for text in later)
    assert [text.partition("\n")[0] for text in later] == [
        f"Decision {n} of at most 10." for n in (2, 3, 4)
    ]


def test_nonsense_is_asked_for_again_on_the_same_conversation():
    def once(number, body):
        return Fault(text="Let me think.") if said(body)[-1].startswith("Decision 2") else None

    with FakeEndpoint(reply=nudged(reply), faults=once) as endpoint:
        episode = played(endpoint)
    assert episode.ok
    counters = trace_of(episode, "customer_0001").info["magentic_seat"]
    assert (counters["nudges"], counters["missing"]) == (1, [])
    assert counters["turns"] == counters["decisions"] + 1


def nudged(answer):
    """The rule, blind to nudges and what they answer, so that it counts its messages right."""

    def rule(body):
        kept, skip = [], False
        for one in reversed(body["messages"]):
            if one["role"] == "user" and one["content"].startswith(("That could", "Your reply")):
                skip = True
            elif skip and one["role"] == "assistant":
                skip = False
            else:
                kept.append(one)
        return answer({**body, "messages": kept[::-1]})

    return rule


def test_after_three_unreadable_replies_the_action_is_missing_with_its_reason():
    fault = of("customer_0001", Fault(text="I would rather not say."), messages=2)
    with FakeEndpoint(reply=reply, faults=fault) as endpoint:
        episode = played(endpoint)
    assert episode.ok
    counters = trace_of(episode, "customer_0001").info["magentic_seat"]
    assert counters["missing"] == ["missing: unreadable answer: no JSON value in the answer"] * 9
    assert counters["turns"] == 1 + 3 * 9
    told = rewards(episode.model_dump(mode="json"))
    assert told["mm_purchase_completion"] == pytest.approx(2 / 3)


def test_one_empty_reply_is_healed_and_two_fail_the_episode_by_name():
    def once(number, body):
        return Fault(text="") if said(body)[-1].startswith("Decision 3") else None

    with FakeEndpoint(reply=nudged(reply), faults=once) as endpoint:
        healed = played(endpoint)
    assert healed.ok
    assert trace_of(healed, "customer_0002").info["magentic_seat"]["healed"] == 1
    with FakeEndpoint(
        reply=reply, faults=of("customer_0002", Fault(text=""), messages=2)
    ) as endpoint:
        failed = played(endpoint)
    assert not failed.ok
    (error,) = failed.errors
    assert "seat 'customer_0002' of mexican3_optimal/seed-1: the model's reply is empty" in (
        error.message
    )
    assert set(rewards(failed.model_dump(mode="json")).values()) == {None}


def test_an_endpoint_that_is_down_fails_the_episode_and_names_the_seat():
    with FakeEndpoint(reply=reply, faults=always(status(503))) as endpoint:
        agent = {"harness": {**QUICK["harness"], "attempts": 2}}
        episode = played(endpoint, agent=agent)
    assert not episode.ok
    assert "seat 'customer_000" in episode.errors[0].message
    assert "503" in episode.errors[0].message


def test_a_limit_of_turns_is_no_silent_zero():
    with FakeEndpoint(reply=reply) as endpoint:
        episode = played(endpoint, agent={**QUICK, "max_turns": 2})
    assert not episode.ok
    assert "answers no more: stopped by max_turns" in episode.errors[0].message


def test_a_schema_goes_to_the_endpoint_or_into_the_prompt_where_it_takes_none():
    with FakeEndpoint(reply=reply) as endpoint:
        taken = played(endpoint)
        bodies = list(endpoint.seen)
    assert all(one["response_format"]["type"] == "json_schema" for one in bodies)
    assert not any("JSON schema" in said(one)[-1] for one in bodies)
    with FakeEndpoint(reply=reply, faults=refusing("json_schema")) as endpoint:
        refused = played(endpoint)
        bodies = list(endpoint.seen)
    plain = [one for one in bodies if "response_format" not in one]
    assert all(
        "Answer with one JSON value that fits this JSON schema" in said(one)[-1] for one in plain
    )
    assert 1 <= len(bodies) - len(plain) <= 3  # those asked before the first refusal
    assert rewards(taken.model_dump(mode="json")) == rewards(refused.model_dump(mode="json"))
    assert trace_of(refused, "customer_0001").info["magentic_seat"]["structured"] == "prompt"


def test_schemas_may_be_bound_to_what_a_seat_knows_and_to_some_room():
    with FakeEndpoint(reply=reply) as endpoint:
        harness = {**QUICK["harness"], "max_length": 40, "max_items": 2}
        taskset = {**SMALL, "forms": "known"}
        bound = asyncio.run(
            play(MAGENTIC, endpoint.url, taskset=taskset, agent={"harness": harness})
        )
        forms = [one["response_format"]["json_schema"]["schema"] for one in endpoint.seen]
    offers = [
        one["properties"]["order_proposal_message"]["properties"]["items"]
        for form in forms
        for one in form["anyOf"]
        if one["properties"].get("order_proposal_message", {}).get("properties")
    ]
    assert offers
    assert {one["maxItems"] for one in offers} == {2}
    assert all(len(one["items"]["properties"]["item_name"]["enum"]) > 2 for one in offers)
    assert '"maxLength": 300' not in json.dumps(forms)
    with FakeEndpoint(reply=reply) as endpoint:
        free = played(endpoint)
    assert rewards(bound.model_dump(mode="json")) == rewards(free.model_dump(mode="json"))


def test_the_key_reaches_the_endpoint_and_no_trace(monkeypatch):
    monkeypatch.setenv("PRIME_API_KEY", "sk-secret-of-mine")  # the default of --client.api-key-var
    with FakeEndpoint(reply=reply) as endpoint:
        episode = played(endpoint)
        sent = endpoint.headers["authorization"]
    written = json.dumps(episode.model_dump(mode="json"))
    assert sent == "Bearer sk-secret-of-mine"
    assert "sk-secret-of-mine" not in written


def test_opponents_may_be_a_script_or_another_endpoint():
    with FakeEndpoint(reply=reply) as endpoint, FakeEndpoint(reply=reply) as other:
        scripted = played(endpoint, focal="customers", opponents="heuristic:menu-honest")
        pinned = played(
            endpoint,
            focal="businesses",
            opponent={
                "model": "other",
                "client": {"type": "eval", "base_url": other.url},
                **QUICK,
            },
        )
        models = {one["model"] for one in other.seen}
    assert sorted(one.task.data.seat for one in scripted.traces) == [
        "customer_0001", "customer_0002", "customer_0003"
    ]  # fmt: skip
    assert models == {"other"}
    roles = {one.task.data.seat: one.agent for one in pinned.traces}
    assert roles["customer_0001"].name == "opponent"
    assert not roles["customer_0001"].trainable
    assert roles["business_0001"].name == "agent"
    assert rewards(pinned.model_dump(mode="json"))["mm"] == 1.0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"taskset": {"cells": ["mexican4_simple"]}}, "unknown cell 'mexican4_simple'"),
        ({"taskset": {"search": "best"}}, "unknown search rule 'best'"),
        ({"taskset": {"populations": "/nowhere"}}, "expected a folder of populations"),
        ({"opponents": "heuristic:menu-honset"}, "did you mean 'menu-honest'"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_a_line(settings, said):
    with pytest.raises(ValueError, match=said):
        asyncio.run(play(MAGENTIC, "http://127.0.0.1:1/v1", **settings))
