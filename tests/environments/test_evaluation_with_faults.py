"""A server that fails one call in four, says nothing one time in ten, and nonsense one in ten."""

from __future__ import annotations

import random
import re

import pytest
from evaluations import MAGENTIC, rewards, vf_eval
from scripted_traders import reply

from marketeval.testing.fake_endpoint import FakeEndpoint, Fault, status

CELLS = '["mexican3_simple_tight", "mexican3_optimal", "mexican5_lexical_tight"]'
ASKED = (
    "--env.taskset.cells", CELLS, "--max-concurrent", "2",
    "--env.agent.harness.id", MAGENTIC, "--env.agent.harness.backoff-s", "0.02",
)  # fmt: skip
STATUSES = (408, 425, 429, 500, 503)


def flaky(number, body):
    """The fault of the n-th call, drawn by its number; one customer never says a word."""
    talk = [str(one["content"]) for one in body["messages"] if one["role"] == "user"]
    if "(customer_0005)" in talk[0]:
        return Fault(text="")
    draw = random.Random(number).random()
    if draw < 0.25:
        return status(STATUSES[number % len(STATUSES)])
    if draw < 0.25 + 0.75 * 0.1:
        return Fault(text="")
    if draw < 0.25 + 0.75 * 0.2:
        return Fault(text='{"action_type": "send_mess') if number % 2 else Fault(broken=True)
    return None


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The first attempt, and what a healthy server was asked for the rest."""
    out = tmp_path_factory.mktemp("faults")
    with FakeEndpoint(reply=reply, faults=flaky, keep=False) as endpoint:
        port = endpoint.port
        first = vf_eval(MAGENTIC, endpoint.url, out, *ASKED)[1]
    with FakeEndpoint(reply=reply, port=port, keep=False) as endpoint:
        second = vf_eval(MAGENTIC, endpoint.url, out, *ASKED, "--resume")[1]
        asked = endpoint.requests
    return first, second, asked


def test_every_episode_ends_well_or_fails_loudly(run):
    first, _, _ = run
    assert len(first) == 6
    for episode in first.values():
        if episode["ok"]:
            assert all(one is not None for one in rewards(episode).values())
        else:
            (error,) = episode["errors"]
            assert "seat '" in error["message"]
            assert re.search("reply is empty, also after|answers no more: ", error["message"])


def test_a_failed_episode_has_no_rewards_rather_than_zeros(run):
    failed = {name: one for name, one in run[0].items() if not one["ok"]}
    assert {"mexican5_lexical_tight/seed-1", "mexican5_lexical_tight/seed-2"} <= set(failed)
    for episode in failed.values():
        assert set(rewards(episode).values()) == {None}
        assert not any(trace["ok"] for trace in episode["traces"])


def test_retries_nudges_and_heals_are_counted(run):
    seats = [trace["info"]["magentic_seat"] for one in run[0].values() for trace in one["traces"]]
    for what in ("retries", "nudges", "empty", "healed"):
        assert sum(one[what] for one in seats) > 0
    assert all(one["turns"] >= one["decisions"] + one["nudges"] for one in seats)


def test_resume_plays_only_what_is_missing(run):
    first, second, asked = run
    assert set(second) == set(first)
    assert all(one["ok"] for one in second.values())
    kept = {name for name, one in first.items() if one["ok"]}
    assert all(second[name]["id"] == first[name]["id"] for name in kept)
    again = [trace for name in set(first) - kept for trace in second[name]["traces"]]
    assert asked == sum(len(trace["calls"]) for trace in again)
