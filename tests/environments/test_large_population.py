"""Forty seats, which the published environment could not run: 10 customers, 30 businesses."""

from __future__ import annotations

import asyncio

import pytest
from evaluations import MAGENTIC, play, rewards
from scripted_traders import reply

from marketeval.testing.fake_endpoint import FakeEndpoint


@pytest.mark.parametrize("gate", [8, 32])
def test_forty_seats_play_to_the_end(gate):
    with FakeEndpoint(reply=reply, delay=0.05, keep=False) as endpoint:
        episode = asyncio.run(
            play(
                MAGENTIC,
                endpoint.url,
                taskset={"cells": ["mexican10_lexical"]},
                max_concurrent_agents=gate,
            )
        )
        assert 2 <= endpoint.most_at_once <= gate  # seats are served at once, within the gate
    assert episode.ok, episode.errors
    assert len(episode.traces) == 40
    told = rewards(episode.model_dump(mode="json"))
    assert told["mm_purchase_completion"] == 1.0
    assert told["mm_proposal_validity"] == 1.0
