"""A real model, small and without a network, in all twelve seats."""

from __future__ import annotations

import asyncio

import pytest
from evaluations import MAGENTIC, play, rewards

from marketeval.llm.local import weights

xllamacpp = pytest.importorskip("xllamacpp")
CONTEXT = 8192  # what the model was trained for; a conversation is held open in it


@pytest.fixture
def server():
    """The address of a llama.cpp server with the weights of SmolLM2."""
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights("smollm2"))
    settings.n_parallel = 2
    settings.n_ctx = CONTEXT * settings.n_parallel
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.verbosity = -1
    running = xllamacpp.Server(settings)
    yield f"{running.listening_address}/v1"
    del running  # it ends with its last reference


@pytest.mark.long
def test_a_small_real_model_plays_the_tight_cell_to_the_end(server):
    episode = asyncio.run(
        play(
            MAGENTIC,
            server,
            model="smollm2",
            sampling={"max_tokens": 256, "temperature": 0.7},
            taskset={"cells": ["mexican3_simple_tight"], "seeds": [1], "briefing": 3000},
            agent={
                "harness": {"id": "magentic-marketplace-eval", "max_length": 80, "max_items": 2}
            },
            max_concurrent_agents=2,
        )
    )
    assert episode.ok, episode.errors
    assert len(episode.traces) == 12
    told = rewards(episode.model_dump(mode="json"))
    assert 0.0 <= told["mm"] <= 1.0
    raw = episode.traces[0].info["magentic"]["raw"]
    assert raw["total_llm_calls"] >= 3
    turns = {one.task.data.seat: one.num_turns for one in episode.traces}
    assert all(1 <= turns[f"customer_000{n}"] <= 6 * 3 for n in (1, 2, 3))
