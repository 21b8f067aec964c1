"""Laws of the information-access market, over small random worlds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from worlds import World, asked, interactions, watched, worlds

from marketeval.agents.bernoulli import Bernoulli
from marketeval.core.drive import replay
from marketeval.core.log import EventLog
from marketeval.markets.information.market import Generator

SEEDS = st.integers(0, 2**63 - 1)


def digest(world: World, seed: int, **options: Any) -> str:
    return world.play(seed, **options).digests[seed]


@given(world=worlds(), seed=SEEDS)
def test_the_same_seed_gives_the_same_log_and_another_seed_another(world, seed):
    log = world.play(seed)
    assert world.play(seed).digest() == log.digest()
    played = asked(log)
    if played.height >= 20 and played["question"].n_unique() >= 6:
        assert digest(world, seed ^ 1) != log.digests[seed]


@given(world=worlds(), seed=SEEDS)
def test_replay_of_the_recorded_actions_equals_the_original(world, seed):
    turns: list[Any] = []
    log = world.play(seed, record=turns)
    again = EventLog(world.market.events)
    assert replay(world.market, turns, seed=seed, log=again) == log.digests[seed]
    assert again.digest() == log.digest()


@dataclass(frozen=True)
class Late:
    """Another agent, after a while."""

    agent: Any
    wait: float
    immediate: bool = False
    deterministic: bool = True
    privileged: bool = False

    async def act(self, request):
        await asyncio.sleep(self.wait)
        return await self.agent.act(request)


@settings(max_examples=10)
@given(world=worlds(), seed=SEEDS)
def test_slow_agents_in_any_order_of_completion_give_the_same_log(world, seed):
    slow = {
        seat: Late(agent, 0.0002 * (place % 3))
        for place, (seat, agent) in enumerate(world.agents.items())
    }
    assert digest(replace(world, agents=slow), seed) == digest(world, seed)


@given(
    world=worlds(plain=True, popularity=False),
    seed=SEEDS,
    name=st.sampled_from(["aaa", "middle", "zzz"]),
    late=st.integers(0, 24),
)
def test_an_entrant_leaves_the_incumbents_keyed_draws_as_they_were(world, seed, name, late):
    assume(late < world.spec.horizon)
    newcomer = Generator(seat=name, label=name, enters=late)
    larger = replace(
        world,
        generators=[*world.generators, newcomer],
        agents={**world.agents, name: Bernoulli(0.9, cost_usd=0.0, latency_s=0.0)},
    )
    without, with_it = interactions(world.play(seed)), interactions(larger.play(seed))
    for column in ("step", "slot", "user", "question", "explored"):
        assert without[column].to_list() == with_it[column].to_list()
    columns = ["seat", "score", "grade", "cost_usd", "latency_s", "signal", "utility", "status"]
    early = pl.col("step") < late
    if late:
        assert without.filter(early)[columns].equals(with_it.filter(early)[columns])
    same = (without["seat"] == with_it["seat"]).to_numpy()
    answers = ["score", "grade", "cost_usd", "latency_s", "status"]
    assert without[answers].filter(same).equals(with_it[answers].filter(same))


@given(world=worlds(), seed=SEEDS, data=st.data())
def test_with_keyed_ties_the_order_of_the_configuration_changes_nothing(world, seed, data):
    world = world.with_spec(ties="random")
    order = data.draw(st.permutations(list(world.generators)))
    assert digest(replace(world, generators=order), seed) == digest(world, seed)


@given(world=worlds(), seed=SEEDS, data=st.data())
def test_a_permuted_configuration_changes_only_what_ties_within_1e9_decide(world, seed, data):
    world = world.with_spec(ties="configuration")
    order = data.draw(st.permutations(list(world.generators)))
    with watched() as populations:
        world.play(seed)
        replace(world, generators=order).play(seed)
    one, other = (
        [(wave, place) for wave in population.waves for place in range(wave["slots"].size)]
        for population in populations
    )
    for (a, place), (b, _) in zip(one, other, strict=False):
        x, y = a["chosen"][place], b["chosen"][place]
        if x == y:
            continue
        row = a["rows"][place]
        kind = world.spec.kinds_of_user()[populations[0].segment[a["users"][place]]]
        first, second, shares = a["first"][row], a["second"][row], a["shares"]
        if kind.learning.kind == "beta":
            first = first / (first + second)
        assert kind.choice.rule in ("epsilon_greedy", "ucb1")
        if kind.choice.rule == "ucb1":
            assert second[x] == pytest.approx(second[y], abs=1e-9)
        if kind.choice.rule != "ucb1" or second[x] > 0:
            worth = first + kind.choice.popularity * shares
            known = np.nan_to_num(worth)  # nobody known: all are worth 0
            assert known[x] == pytest.approx(known[y], abs=1e-9)
        break


@given(world=worlds(timing="asynchronous", popularity=False), seed=SEEDS)
def test_waves_equal_one_at_a_time(world, seed):
    market = world.market
    market.__dict__["_stagger"] = 1
    assert digest(world, seed) == digest(world, seed, market=market)


@given(world=worlds(), seed=SEEDS)
def test_a_block_as_large_as_the_step_is_synchronous(world, seed):
    world = world.with_spec(timing="synchronous", stagger=None)
    market = world.market
    market.__dict__["_stagger"] = 8
    assert digest(world, seed) == digest(world, seed, market=market)


@given(world=worlds(timing="synchronous"), seed=SEEDS)
def test_all_choices_of_a_synchronous_step_are_made_from_its_start(world, seed):
    with watched() as populations:
        log = world.play(seed)
    steps = [wave["step"] for wave in populations[0].waves]
    assert steps == list(range(world.spec.horizon))
    played = interactions(log)
    assert (
        played.select("step", "slot").rows()
        == played.select("step", "slot").sort("step", "slot").rows()
    )


@given(world=worlds(), seed=SEEDS)
def test_users_who_left_never_come_back_and_nobody_comes_before_arriving(world, seed):
    log = world.play(seed)
    came = asked(log)
    arrived = dict(log.scan("user").select("user", "arrived").collect().rows())
    left = dict(log.scan("user_left").select("user", "step").collect().rows())
    assert len(left) == log.scan("user_left").collect().height
    for step, _, user, _ in came.rows():
        assert arrived[user] <= step <= left.get(user, step)
    if world.spec.outside is None:
        assert not left


@given(world=worlds(), seed=SEEDS)
def test_without_replacement_no_user_comes_twice_in_a_step(world, seed):
    users = world.spec.users
    world = world.with_spec(
        users=users.model_copy(
            update={"replacement": False, "per_step": min(users.per_step, users.population)}
        )
    )
    came = asked(world.play(seed))
    assert came.select("step", "user").is_unique().all()


@given(world=worlds(), seed=SEEDS)
def test_every_pass_of_the_pool_asks_each_question_once(world, seed):
    order = asked(world.play(seed))["question"].to_list()
    size = len(world.questions.items)
    for start in range(0, len(order), size):
        one_pass = order[start : start + size]
        assert len(set(one_pass)) == len(one_pass)
        if len(one_pass) == size:
            assert sorted(one_pass) == list(range(size))


@given(world=worlds(), seed=SEEDS)
def test_only_those_in_the_market_are_asked(world, seed):
    log = world.play(seed)
    names = dict(log.scan("generator").select("agent", "seat").collect().rows())
    entry = dict(log.scan("generator").select("seat", "entry_step").collect().rows())
    there = {seat for seat, step in entry.items() if step == 0}
    moves = log.scan("intervention").select("step", "agent", "change").collect().rows()
    played = interactions(log)
    for step in range(world.spec.horizon):
        for at, agent, change in moves:
            if at == step and change == "entry":
                there.add(names[agent])
            elif at == step and change == "exit":
                there.discard(names[agent])
        assert set(played.filter(step=step)["seat"]) <= there
        if not there:
            assert log.scan("unserved").filter(step=step).collect().height == (
                asked(log).filter(step=step).height
            )


@given(world=worlds(), seed=SEEDS)
def test_every_row_of_preferences_under_drift_sums_to_one(world, seed):
    with watched() as populations:
        world.play(seed)
    users = populations[0]
    kinds = [kind.learning.kind for kind in users.kinds]
    for row, values in enumerate(users.first):
        user = row // (users.first.shape[0] // users.segment.size)
        if kinds[users.segment[user]] == "drift" and not np.isnan(values).all():
            assert np.nansum(values) == pytest.approx(1.0, abs=1e-9)


@given(world=worlds(), seed=SEEDS)
def test_every_missing_outcome_has_a_reason_and_teaches_what_the_scenario_says(world, seed):
    log = world.play(seed)
    played = interactions(log)
    missing = log.scan("missing").select("step", "slot", "agent").collect()
    expected = played.filter(pl.col("status").cast(pl.String) == "missing")
    assert missing.rows() == expected.select("step", "slot", "agent").rows()
    if world.spec.on_missing == "skip":
        assert expected["score"].is_null().all()
        assert expected["signal"].is_null().all()
    else:
        assert set(expected["score"]) <= {world.spec.on_missing}
        assert expected["signal"].is_not_null().all()
    fine = played.filter(pl.col("status").cast(pl.String) != "missing")
    assert fine["score"].is_not_null().all()
