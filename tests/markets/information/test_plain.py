"""Plain markets, played in blocks of users and many seeds at once, are the general engine's."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from alike import assert_same, compiled_market, general
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import World, a_world

from marketeval.agents.bernoulli import Bernoulli
from marketeval.core.log import EventLog
from marketeval.core.threads import limited
from marketeval.markets.information import plain
from marketeval.markets.information.market import InformationMarket


@st.composite
def plain_worlds(draw: Any) -> World:
    seats = [f"agent-{number:02}" for number in range(draw(st.sampled_from([1, 2, 7, 8, 9, 17])))]
    horizon, population = draw(st.integers(1, 15)), draw(st.integers(1, 40))
    replacement, asynchronous = draw(st.booleans()), draw(st.booleans())
    minds = draw(st.booleans())
    changes = []
    for _ in range(draw(st.integers(0, 5))):
        kinds = ["entry", "exit", "price", "latency"][2 * (len(seats) == 1) :]
        kind = draw(st.sampled_from(kinds))
        one = {"kind": kind, "step": draw(st.integers(0, horizon - 1))}
        one["agent"] = draw(st.sampled_from(seats[1:] or seats))
        if kind in ("price", "latency"):
            one["factor"] = draw(st.sampled_from([0.0, 0.5, 3.0]))
        changes.append(one)
    spec = {
        "horizon": horizon,
        "users": {
            "population": population,
            "per_step": draw(st.integers(1, 50 if replacement else population)),
            "replacement": replacement,
        },
        "choice": {"epsilon": draw(st.sampled_from([0.0, 0.2, 1.0]))},
        "learning": {
            "rate": draw(st.sampled_from([0.1, 1.0])),
            "floor": draw(st.sampled_from([0.0, 0.01, 0.3])),
        },
        "utility": {"cost": 5.0 * minds, "latency": 0.1 * minds},
        "timing": "asynchronous" if asynchronous else "synchronous",
        "interventions": changes,
    }
    enters = {one: draw(st.integers(0, horizon - 1)) for one in seats[1:] if draw(st.booleans())}
    coins = {
        seat: Bernoulli(
            draw(st.sampled_from([0.0, 0.3, 1.0])),
            fixed=draw(st.booleans()),
            cost_usd=0.01 if minds else draw(st.sampled_from([None, 0.02])),
            latency_s=2.0 if minds else None,
        )
        for seat in seats
    }
    pool, topics = draw(st.integers(1, 12)), draw(st.integers(1, 2))
    return a_world(
        dict.fromkeys(seats, 0.5), enters=enters, agents=coins, pool=pool, topics=topics, **spec
    )


def rows_of(log: EventLog, kind: str) -> pl.DataFrame:
    return log.scan(kind).collect()


@given(
    world=plain_worlds(),
    block=st.sampled_from([1, 3, 13]),
    at_once=st.sampled_from([7, 10**6]),
    threads=st.sampled_from([1, 3]),
)
@settings(max_examples=60, deadline=None)
def test_a_plain_market_in_blocks_is_the_general_one_in_log_and_state(
    world: World, block: int, at_once: int, threads: int
) -> None:
    assert compiled_market(world).plan is not None
    with pytest.MonkeyPatch.context() as patch, limited(threads):
        patch.setattr(plain, "BLOCK", block)
        patch.setattr(plain, "FEWEST", 1)
        patch.setattr(plain, "PIECE", 20)
        patch.setattr(plain, "AT_ONCE", at_once)
        assert_same(world, 5)


@given(world=plain_worlds(), at_once=st.sampled_from([1, 700, 10**6]), hashed=st.booleans())
@settings(max_examples=60, deadline=None)
def test_many_seeds_side_by_side_are_the_seeds_one_by_one(
    world: World, at_once: int, hashed: bool
) -> None:
    seeds = [3, 4, 9, 10, 2**40]
    log = EventLog(InformationMarket.events, hashed=hashed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "AT_ONCE", at_once)
        compiled_market(world).play_seeds(seeds, log)
    assert log.seeds() == seeds
    alone = [general(world, seed)[0] for seed in seeds]
    for kind in ("interaction", "intervention"):
        whole = pl.concat([rows_of(one, kind) for one in alone])
        assert rows_of(log, kind).equals(whole), kind
    if hashed:
        assert log.digests == {seed: one.digests[seed] for seed, one in zip(seeds, alone)}  # noqa: B905


@pytest.mark.parametrize("threads", [1, 2])
def test_a_large_market_is_the_same_on_one_thread_and_on_two(threads: int) -> None:
    users = {"population": 20_000, "per_step": 30_000}
    world = a_world({"kimi": 0.4, "qwen3": 0.6, "aya": 0.2}, horizon=4, users=users, pool=500)
    with limited(threads):
        assert_same(world, 2)
    for hashed in (True, False):  # rows that are handed over are cut into parts
        log = EventLog(InformationMarket.events, rows_per_part=50_000, hashed=hashed)
        compiled_market(world).play_seeds([2], log)
        rows = rows_of(log, "interaction")
        assert rows.equals(rows_of(general(world, 2)[0], "interaction"))


@pytest.mark.parametrize(
    "change",
    [
        {"choice": {"rule": "logit"}},
        {"choice": {"inertia": 0.1}},
        {"choice": {"portfolio": 2}},
        {"choice": {"popularity": 0.5}},
        {"learning": {"kind": "exponential"}},
        {"learning": {"forgetting": 0.1}},
        {"utility": {"trust": 0.1}},
        {"utility": {"cost": 1.0}},
        {"outside": {"utility": 0.4}},
        {"ties": "random"},
        {"segments": [{"name": "a"}, {"name": "b"}]},
        {"segments": [{"name": "a", "preferences": {"kimi": 1.0}}]},
        {"users": {"arrivals": 0.5}},
        {"interventions": [{"kind": "outage", "agent": "kimi", "step": 1, "steps": 2}]},
        {"interventions": [{"kind": "quality", "agent": "kimi", "step": 1, "change": 0.2}]},
    ],
)
def test_what_is_not_plain_is_left_to_the_fused_kernel(change: dict[str, Any]) -> None:
    assert compiled_market(a_world({"kimi": 0.4, "aya": 0.2}, horizon=3)).plan is not None
    assert compiled_market(a_world({"kimi": 0.4, "aya": 0.2}, horizon=3, **change)).plan is None


def test_a_market_that_everybody_leaves_is_no_plain_one() -> None:
    away = [{"kind": "exit", "agent": "kimi", "step": 2}]
    assert compiled_market(a_world({"kimi": 0.4}, horizon=3, interventions=away)).plan is None


@pytest.mark.parametrize("seats", [2, 9])
@pytest.mark.parametrize("per_step", [200, 600])
def test_users_who_come_again_at_once_choose_by_what_they_have_just_learned(
    seats: int, per_step: int
) -> None:
    rates = {f"agent-{number}": 0.2 for number in range(seats)}
    users = {"population": 3, "per_step": per_step}
    assert_same(a_world(rates, horizon=4, users=users, learning={"rate": 0.5}), 3)


def test_a_market_whose_sums_may_be_infinite_is_no_plain_one() -> None:
    dear = {"kimi": Bernoulli(0.4, cost_usd=1.0), "aya": Bernoulli(0.2, cost_usd=1.0)}
    for weight, is_plain in ((1e90, True), (1e150, False)):
        utility = {"cost": weight}
        world = a_world(dict.fromkeys(dear, 0.5), agents=dear, horizon=3, utility=utility)
        assert (compiled_market(world).plan is not None) == is_plain


def test_the_rows_of_a_log_without_digests_are_told_once_and_not_hashed() -> None:
    log = EventLog(InformationMarket.events, hashed=False)
    compiled_market(a_world({"kimi": 0.4}, horizon=3)).play_seeds(range(1, 4), log)
    (part,) = log.batches("interaction", ["seed", "agent", "status"])
    assert np.array_equal(part["seed"], np.repeat([1, 2, 3], 15))
    assert log.digests == {1: "", 2: "", 3: ""}
