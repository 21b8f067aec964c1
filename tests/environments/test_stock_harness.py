"""Seats on the harness that verifiers brings along, which starts a program for each turn."""

from __future__ import annotations

from evaluations import MAGENTIC, rewards, vf_eval
from scripted_traders import reply

from marketeval.testing.fake_endpoint import FakeEndpoint


def test_seats_on_the_stock_harness_play_as_well_with_the_schema_in_the_prompt(tmp_path):
    with FakeEndpoint(reply=reply) as endpoint:
        knobs = ["--env.taskset.cells", '["mexican3_optimal"]', "--env.agent.harness.id", "null"]
        _, found = vf_eval(MAGENTIC, endpoint.url, tmp_path, "-n", "1", *knobs)
    (episode,) = found.values()
    assert episode["ok"], episode["errors"]
    assert rewards(episode)["mm"] == 1.0
    assert {one["info"]["magentic_seat"]["structured"] for one in episode["traces"]} == {"prompt"}
    assert all(body["stream"] and "response_format" not in body for body in endpoint.seen)
