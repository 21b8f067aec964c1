"""The compiled engine gives the general engine's log and the bits of its final state."""

from dataclasses import replace

import numpy as np
import pytest
from alike import assert_same
from hypothesis import given, settings
from worlds import World, a_world, worlds

from marketeval.actions.information import TableBacked
from marketeval.agents.bernoulli import Bernoulli
from marketeval.core.drive import lockstep
from marketeval.core.log import EventLog
from marketeval.markets.information.compiled import CompiledMarket, can_compile
from marketeval.markets.information.market import InformationMarket


@given(world=worlds())
@settings(max_examples=60)
def test_both_engines_give_the_same_log_and_final_state_in_any_world(world: World) -> None:
    agents = {
        seat: agent if isinstance(agent, TableBacked) else Bernoulli(0.5)
        for seat, agent in world.agents.items()
    }
    assert can_compile(world.market)
    assert_same(replace(world, agents=agents), 1)


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_the_engines_agree_with_many_agents_and_where_everybody_fails(rate: float) -> None:
    names = [f"agent-{number:02}" for number in range(12)]
    assert_same(a_world(dict.fromkeys(names, rate), horizon=150), 3)


def test_a_compiled_market_is_driven_like_any_other_and_asks_nobody() -> None:
    world = a_world({"kimi": 0.4, "qwen3": 0.6}, enters={"qwen3": 5}, horizon=20)
    tables = {seat: agent.as_table() for seat, agent in world.agents.items()}
    log = EventLog(InformationMarket.events)

    digest = lockstep(CompiledMarket(market=world.market, tables=tables), {}, seed=7, log=log)

    assert digest == world.play(7).digests[7]


def test_a_market_on_the_references_stream_is_left_to_the_general_engine() -> None:
    assert not can_compile(a_world({"kimi": 0.4}, draws="mersenne").market)
    assert can_compile(a_world({"kimi": 0.4}).market)


def test_weighted_users_without_replacement_are_drawn_alike() -> None:
    segments = [{"name": "idle"}, {"name": "busy", "activity": 3.0}]
    users = {"population": 30, "per_step": 10, "replacement": False}
    world = a_world({"kimi": 0.4, "qwen3": 0.6}, horizon=30, segments=segments, users=users)
    assert_same(world, 2)
    drawn = world.play(2).scan("interaction").collect()["user"].to_numpy()
    assert np.bincount(drawn, minlength=30)[15:].sum() > np.bincount(drawn, minlength=30)[:15].sum()
