"""Scheduled changes of the market, agents that misbehave, and users who leave, by pencil."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pytest
from worlds import a_world, interactions, watched

from marketeval.actions.information import Answers

ONE_USER = {"population": 1, "per_step": 1}
GREEDY = {"rule": "epsilon_greedy", "epsilon": 0.0}
EVEN = {"rule": "logit", "temperature": 1e9}  # everybody is equally likely


@dataclass
class Fixed:
    """Always the same answer, from arrays of its own."""

    answer: dict[str, Any]
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False
    made: list[Answers] = field(default_factory=list)

    async def act(self, request):
        rows = request.batch["slot"].size
        columns = {name: np.full(rows, value) for name, value in self.answer.items()}
        self.made.append(Answers(**columns))
        return self.made[-1]


def right(**more: Any) -> Fixed:
    return Fixed({"score": 1.0, **more})


def play(agents: dict[str, Any], **spec: Any):
    log = a_world(dict.fromkeys(agents, 0.5), agents=agents, **spec).play(1)
    return log, interactions(log)


def test_a_price_and_a_latency_change_multiply_what_was_recorded():
    _, played = play(
        {"a": right(cost_usd=0.02, latency_s=3.0)},
        horizon=4,
        users=ONE_USER,
        interventions=[
            {"step": 1, "agent": "a", "kind": "price", "factor": 2.0},
            {"step": 2, "agent": "a", "kind": "latency", "factor": 0.5},
            {"step": 3, "agent": "a", "kind": "price", "factor": 1.0},
        ],
    )
    assert played["cost_usd"].to_list() == [0.02, 0.04, 0.04, 0.02]
    assert played["latency_s"].to_list() == [3.0, 3.0, 1.5, 1.5]


def test_a_dearer_agent_loses_users_who_mind_the_price():
    _, played = play(
        {"a": right(cost_usd=0.1), "b": right(cost_usd=0.1)},
        horizon=60,
        users=ONE_USER,
        choice={"rule": "epsilon_greedy", "epsilon": 0.2},
        learning={"kind": "mean"},
        utility={"quality": 1.0, "cost": 5.0},
        interventions=[{"step": 20, "agent": "a", "kind": "price", "factor": 3.0}],
    )
    assert played["signal"].unique().sort().to_list() == pytest.approx([-0.5, 0.5])
    assert {*played.filter(pl.col("step") >= 20)["seat"]} == {"a", "b"}
    assert (played.filter((pl.col("step") > 35) & ~pl.col("explored"))["seat"] == "b").all()


def test_a_full_loss_of_quality_makes_right_answers_wrong_and_leaves_the_agents_own_arrays():
    agent = right(grade=1)
    _, played = play(
        {"a": agent},
        horizon=2,
        users=ONE_USER,
        interventions=[{"step": 1, "agent": "a", "kind": "quality", "change": -1.0}],
    )
    assert played["score"].to_list() == [1.0, 0.0]
    assert played["grade"].to_list() == ["correct", "incorrect"]
    assert played["signal"].to_list() == [1.0, -1.0]
    assert [made.grade.tolist() for made in agent.made] == [[1], [1]]
    assert [made.score.tolist() for made in agent.made] == [[1.0], [1.0]]


def test_a_loss_of_quality_leaves_refusals_as_they_are_and_a_gain_makes_anything_right():
    for change, grade in ((-1.0, "not_attempted"), (1.0, "correct")):
        _, played = play(
            {"a": Fixed({"score": 0.0, "grade": 2})},
            horizon=1,
            users=ONE_USER,
            interventions=[{"step": 0, "agent": "a", "kind": "quality", "change": change}],
        )
        assert played["grade"].to_list() == [grade]


@pytest.mark.parametrize("change", [-0.3, 0.3])
def test_a_change_of_quality_hits_its_share_of_the_answers(change):
    start = 1.0 if change < 0 else 0.0
    _, played = play(
        {"a": Fixed({"score": start})},
        horizon=100,
        users={"population": 10, "per_step": 50},
        interventions=[{"step": 0, "agent": "a", "kind": "quality", "change": change}],
    )
    assert played["score"].mean() == pytest.approx(start + change, abs=4 * math.sqrt(0.21 / 5000))


@pytest.mark.parametrize("utility", [{}, {"cost": 5.0, "latency": 0.1}])
def test_in_an_outage_the_agent_fails_whoever_asks_and_users_learn_it(utility):
    agent = right(cost_usd=0.02, latency_s=3.0)
    log, played = play(
        {"a": agent},
        horizon=6,
        users=ONE_USER,
        utility=utility,
        interventions=[{"step": 2, "agent": "a", "kind": "outage", "steps": 3}],
    )
    assert played["status"].to_list() == ["ok", "ok", "outage", "outage", "outage", "ok"]
    assert played["score"].to_list() == [1, 1, 0, 0, 0, 1]
    assert played["signal"].to_list()[2:5] == [-1.0] * 3
    assert len(agent.made) == 3
    assert log.scan("intervention").collect()["value"].to_list() == [5.0]
    assert log.scan("missing").collect().is_empty()


def test_a_hidden_outage_takes_the_agent_from_the_choice():
    log, played = play(
        {"a": right(), "b": right()},
        horizon=40,
        users={"population": 4, "per_step": 4},
        choice=EVEN,
        interventions=[
            {"step": 10, "agent": "a", "kind": "outage", "steps": 5, "mode": "hidden"},
            {"step": 30, "agent": "a", "kind": "outage", "steps": 2, "mode": "hidden"},
            {"step": 30, "agent": "b", "kind": "outage", "steps": 2, "mode": "hidden"},
        ],
    )
    of_a = set(played.filter(seat="a")["step"].to_list())
    assert not of_a & {*range(10, 15), 30, 31}
    for stretch in (range(10), range(15, 30), range(32, 40)):
        assert of_a & {*stretch}
    unserved = log.scan("unserved").collect()
    assert unserved.group_by("step").len().sort("step").rows() == [(30, 4), (31, 4)]


def test_who_leaves_is_forgotten_and_who_comes_back_starts_as_an_entrant():
    with watched() as populations:
        _, played = play(
            {"a": right(), "b": right(), "c": Fixed({"score": 0.5})},
            horizon=30,
            users=ONE_USER,
            choice=EVEN,
            utility={"trust": 0.5},
            interventions=[
                {"step": 10, "agent": "a", "kind": "exit"},
                {"step": 20, "agent": "a", "kind": "entry"},
            ],
        )
    assert not set(played.filter(seat="a")["step"]) & set(range(10, 20))
    waves = populations[0].waves
    assert math.isnan(waves[10]["first"][0, 0])
    assert waves[20]["first"][0, 0] == pytest.approx(1 / 3)
    assert waves[19]["first"][0, 1:].sum() == pytest.approx(1.0)


def test_several_entrants_at_one_step_all_enter_with_equal_shares():
    world = a_world(
        {"z": 0.5, "a": 0.5, "m": 0.5, "b": 0.5},
        enters={"z": 3, "m": 3},
        horizon=5,
        users=ONE_USER,
    )
    with watched() as populations:
        log = world.play(1)
    assert populations[0].waves[2]["first"][0, [2, 3]].tolist() != [0.25, 0.25]
    assert populations[0].waves[3]["first"][0, [2, 3]] == pytest.approx([0.25, 0.25])
    changes = log.scan("intervention").select("step", "change").collect().rows()
    assert changes == [(3, "entry"), (3, "entry")]


def test_a_market_where_all_are_late_serves_nobody_until_then():
    world = a_world({"a": 1.0, "b": 1.0}, enters={"a": 2, "b": 3}, horizon=5, users=ONE_USER)
    log = world.play(1)
    assert log.scan("unserved").collect()["step"].to_list() == [0, 1]
    assert interactions(log)["seat"].to_list()[0] == "a"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"score": np.ones(2)}, "expected 1 values in 'score'"),
        ({"score": [1.0]}, "expected 1 values in 'score'"),
        ({"score": np.array([1.5])}, "a score outside [0, 1]"),
        ({"score": np.array([-0.1])}, "a score outside [0, 1]"),
        ({"score": np.array(["good"])}, "expected numbers in 'score', got <U4"),
        ({"score": np.array([object()])}, "expected numbers in 'score', got object"),
        ({"score": np.ones(1), "grade": np.array([7])}, "an unknown grade"),
        ({"score": np.ones(1), "grade": np.array([-1])}, "an unknown grade"),
        (
            {"score": np.ones(1), "grade": np.array([1.0])},
            "expected numbers in 'grade', got float64",
        ),
        ({"score": np.ones(1), "cost_usd": np.array([-np.inf])}, "an infinite cost"),
        ({"score": np.ones(1), "latency_s": np.array([-1.0])}, "a negative or infinite latency"),
        ({"score": np.ones(1), "latency_s": np.array([np.inf])}, "a negative or infinite latency"),
        ({"score": np.ones(1), "latency_s": np.ones((1, 1))}, "expected 1 values in 'latency_s'"),
        ({"score": np.array([np.nan])}, "no recorded outcome"),
        ({"score": np.array([np.nan]), "reason": "lost"}, "lost"),
    ],
)
def test_an_answer_that_does_not_count_is_missing_and_the_episode_goes_on(answer, reason):
    class Odd(Fixed):
        async def act(self, request):
            return Answers(**answer)

    log, played = play({"a": Odd({}), "b": right()}, horizon=40, users=ONE_USER, choice=EVEN)
    assert set(played.filter(seat="a")["status"]) == {"missing"}
    assert set(played.filter(seat="b")["status"]) == {"ok"}
    assert set(log.scan("missing").collect()["reason"]) == {reason}
    assert played.filter(seat="a")["signal"].is_null().all()


def test_a_user_leaves_after_patience_interactions_in_a_row_below_the_outside_utility():
    log, played = play(
        {"a": Fixed({"score": 0.0})},
        horizon=10,
        users={"population": 2, "per_step": 2, "replacement": False},
        outside={"utility": 0.3, "patience": 3, "rate": 0.5},
    )
    assert played["step"].to_list() == [0, 0, 1, 1, 2, 2]
    assert log.scan("user_left").select("step", "user", "utility").collect().rows() == [
        (2, 0, 0.0),
        (2, 1, 0.0),
    ]


def test_arrivals_come_at_their_rate_and_know_what_a_fresh_user_knows():
    world = a_world(
        {"a": 0.5, "b": 0.5, "c": 0.5},
        enters={"c": 300},
        horizon=400,
        users={"population": 3, "per_step": 1, "arrivals": 1.25},
    )
    with watched() as populations:
        log = world.play(1)
    arrived = log.scan("user").filter(pl.col("arrived") > 0).collect()
    assert arrived.height == pytest.approx(1.25 * 400, abs=4 * math.sqrt(0.1875 * 400))
    fresh = populations[0].first[-1]
    assert fresh == pytest.approx([1 / 3] * 3)


def test_users_differ_in_activity_and_segments_have_their_shares_of_the_population():
    world = a_world(
        {"a": 0.5, "b": 0.5},
        horizon=400,
        users={"population": 10, "per_step": 10},
        segments=[
            {"name": "busy", "weight": 3, "activity": 4},
            {"name": "idle", "weight": 7, "activity": 1},
        ],
    )
    log = world.play(1)
    segments = log.scan("user").collect()["segment"].to_list()
    assert segments == [0] * 3 + [1] * 7
    busy = (interactions(log)["user"] < 3).mean()
    assert busy == pytest.approx(12 / 19, abs=4 * math.sqrt(0.25 / 4000))


def test_preferences_by_topic_are_learned_apart():
    class ByTopic(Fixed):
        async def act(self, request):
            topics = request.briefing.topics[request.batch["question"]]
            return Answers(score=(topics == self.answer["good_at"]).astype(float))

    world = a_world(
        {"a": 0.5, "b": 0.5},
        agents={"a": ByTopic({"good_at": 0}), "b": ByTopic({"good_at": 1})},
        topics=2,
        horizon=200,
        users={"population": 2, "per_step": 2},
        learning={"per": "topic"},
    )
    late = interactions(world.play(1)).filter((pl.col("step") > 100) & ~pl.col("explored"))
    assert late.filter(pl.col("topic") == 0)["seat"].unique().to_list() == ["a"]
    assert late.filter(pl.col("topic") == 1)["seat"].unique().to_list() == ["b"]


def test_popularity_is_each_agents_share_of_all_interactions_so_far():
    with watched() as populations:
        _, played = play(
            {"a": right(), "b": right()},
            horizon=6,
            users={"population": 3, "per_step": 4},
            choice={**EVEN, "popularity": 0.5},
            timing="asynchronous",
            stagger=2,
        )
    seats = played["seat"].to_list()
    for number, wave in enumerate(populations[0].waves):
        before = seats[: 2 * number]
        expected = [before.count(seat) / max(1, len(before)) for seat in ("a", "b")]
        assert wave["shares"].tolist() == pytest.approx(expected)
