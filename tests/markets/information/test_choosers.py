"""Users who are agents: whom they can ask, what they remember, and what their choices do."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from worlds import a_world
from worlds import interactions as with_turns

from marketeval.actions.information import Choice
from marketeval.core.drive import lockstep, replay
from marketeval.core.errors import ScenarioError
from marketeval.core.log import EventLog
from marketeval.core.market import Failure
from marketeval.experiments.scenario import validated
from marketeval.markets.information.choosers import LAST
from marketeval.markets.information.compiled import can_compile
from marketeval.markets.information.scenario import Information


def interactions(log):
    """All interactions, without their place among the other events."""
    return with_turns(log).drop("turn")


RATES = {"good": 1.0, "bad": 0.0}


class Scripted:
    """A user that does as a function of the request says."""

    immediate = True
    deterministic = privileged = False

    def __init__(self, says):
        self.says, self.asked = says, []

    async def act(self, request):
        self.asked.append(request)
        return self.says(request)


def by_label(*labels):
    """Ask, in its n-th request, for the n-th label; for the last one from then on."""
    turns = iter([*labels])
    last = labels[-1]

    def says(request):
        wanted = next(turns, last)
        return Choice(agent=np.array([row.index(wanted) for row in request.batch["options"]]))

    return Scripted(says)


def first_option():
    return Scripted(lambda request: Choice(agent=np.zeros(len(request.batch["slot"]), np.int64)))


def with_user(user, *, rates=RATES, segment=None, **spec):
    spec = {"horizon": 6, "users": {"population": 1, "per_step": 1}, **spec}
    segments = [{"name": "asked", "agent": "me", **(segment or {})}]
    spec["segments"] = [*segments, *spec.get("segments", ())]
    return a_world(rates, agents={"me": user}, **spec)


def test_a_user_that_is_an_agent_asks_whom_it_names_and_the_others_do_as_they_would():
    spec = {"horizon": 30, "users": {"population": 6, "per_step": 4}}
    others = [{"name": "rest", "weight": 2.0}]
    log = with_user(by_label("bad"), segments=others, **spec).play()
    plain = a_world(RATES, segments=[{"name": "asked"}, *others], **spec).play()
    mine, without = interactions(log), interactions(plain)
    own = mine["user"] < 2  # a third of six users
    assert set(mine.filter(own)["seat"]) == {"bad"}
    assert not mine.filter(own)["explored"].any()
    assert mine.filter(~own).equals(without.filter(~own))
    assert log.scan("missing_choice").collect().is_empty()


def test_what_a_user_remembers_by_pencil():
    user = by_label("good", "good", "bad", "good")
    with_user(user, horizon=5).play()
    batch, (told,) = user.asked[-1].batch, user.asked[-1].briefing
    (options,), (times,) = batch["options"], batch["times_asked"]
    good, bad = options.index("good"), options.index("bad")
    assert (times[good], times[bad]) == (3, 1)
    assert (batch["mean_score"][0][good], batch["last_scores"][0][bad]) == (1.0, [0.0])
    assert told.splitlines()[0] == "You can ask:"
    assert sorted(told.splitlines()[1:]) == sorted(
        [
            f"{good}: good - asked by you 3 times, mean score 1.00, "
            "last scores (newest first) 1, 1, 1",
            f"{bad}: bad - asked by you 1 time, mean score 0.00, last scores (newest first) 0",
        ]
    )
    (before,) = user.asked[0].briefing
    assert before.count("never asked by you") == 2


def test_the_memory_is_bounded_however_long_the_market_goes_on():
    user = by_label("good")
    with_user(user, horizon=80).play()
    assert user.asked[-1].batch["times_asked"][0].count(79) == 1
    assert max(len(one) for one in user.asked[-1].batch["last_scores"][0]) == LAST
    lengths = [len(request.briefing[0]) for request in user.asked]
    assert max(lengths[20:]) == min(lengths[20:]) < 200


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (lambda request: Failure("asleep"), "asleep"),
        (lambda request: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda request: 0, "expected Choice, got int"),
        (lambda request: Choice(agent=[0] * 9), "expected 3 whole numbers in 'agent'"),
        (lambda request: Choice(agent=np.zeros(3)), "expected 3 whole numbers in 'agent'"),
        (lambda request: Choice(agent=np.full(3, 2)), "expected an option from 0 to 1, got 2"),
        (lambda request: Choice(agent=np.full(3, -1), reason=["?"] * 3), "?"),
        (lambda request: Choice(agent=np.zeros(3, int), reason=["?"]), "expected 3 values in"),
    ],
)
def test_where_it_chooses_nobody_valid_the_rule_of_its_segment_does(says, reason):
    spec = {"horizon": 8, "users": {"population": 5, "per_step": 3}}
    log = with_user(Scripted(says), **spec).play()
    plain = a_world(RATES, segments=[{"name": "asked"}], **spec).play()
    assert interactions(log).equals(interactions(plain))
    missing = log.scan("missing_choice").collect()
    assert missing.height == 24
    assert all(one.startswith(reason) for one in missing["reason"])
    assert missing.select("step", "slot", "user").equals(
        interactions(log).select("step", "slot", "user")
    )


def test_one_bad_choice_of_a_wave_leaves_the_others_as_they_were():
    user = Scripted(lambda request: Choice(agent=np.array([0, 7, 0])))
    log = with_user(user, horizon=4, users={"population": 5, "per_step": 3}).play()
    missing = log.scan("missing_choice").collect()
    assert missing["slot"].to_list() == [1] * 4
    rows = interactions(log)
    shown = [request.batch["options"][place][0] for request in user.asked for place in (0, 2)]
    assert rows.filter(rows["slot"] != 1)["seat"].to_list() == shown


@pytest.mark.parametrize("timing", ["synchronous", "asynchronous"])
def test_the_same_seed_gives_the_same_log_and_so_does_the_replay(timing):
    world = with_user(
        first_option(), rates={"a": 0.7, "b": 0.4, "c": 0.5}, horizon=20, timing=timing,
        users={"population": 4, "per_step": 6},
    )  # fmt: skip
    turns, log = [], EventLog(world.market.events)
    digest = lockstep(world.market, world.agents, seed=3, log=log, record=turns)
    assert world.play(seed=3).digests[3] == digest != world.play(seed=4).digests[4]
    again = EventLog(world.market.events)
    assert replay(world.market, turns, seed=3, log=again) == digest
    assert len(set(interactions(log)["seat"])) == 3  # the order of the options is drawn


def test_synchronous_users_choose_at_once_asynchronous_ones_from_what_just_happened():
    spec = {"horizon": 4, "users": {"population": 2, "per_step": 6}}
    together, waves = by_label("good"), by_label("good")
    with_user(together, **spec).play()
    log = with_user(waves, timing="asynchronous", **spec).play()
    assert [len(one.batch["slot"]) for one in together.asked] == [6] * 4
    when = interactions(log).select("user", place=pl.col("step") * 6 + pl.col("slot"))
    for request in waves.asked:
        for row, (user, slot) in enumerate(
            zip(request.batch["user"], request.batch["slot"], strict=True)
        ):
            earlier = (when["user"] == user) & (when["place"] < request.step * 6 + slot)
            assert sum(request.batch["times_asked"][row]) == earlier.sum()


def test_the_options_are_the_generators_that_are_there_and_an_exit_is_forgotten():
    user = by_label("good")
    with_user(
        user, rates={**RATES, "late": 0.5}, horizon=8,
        interventions=[
            {"step": 2, "agent": "late", "kind": "entry"},
            {"step": 4, "agent": "bad", "kind": "outage", "steps": 1, "mode": "hidden"},
            {"step": 6, "agent": "late", "kind": "exit"},
            {"step": 6, "agent": "bad", "kind": "exit"},
            {"step": 7, "agent": "bad", "kind": "entry"},
        ],
    ).play()  # fmt: skip
    shown = [set(request.batch["options"][0]) for request in user.asked]
    two, three = {"good", "bad"}, {"good", "bad", "late"}
    assert shown == [two, two, three, three, {"good", "late"}, three, {"good"}, two]


def test_an_exit_is_forgotten():
    user = Scripted(lambda request: Choice(agent=np.array([len(request.batch["options"][0]) - 1])))
    with_user(
        user, rates={"one": 1.0}, horizon=4,
        interventions=[
            {"step": 2, "agent": "one", "kind": "exit"},
            {"step": 3, "agent": "one", "kind": "entry"},
        ],
    ).play()  # fmt: skip
    assert [request.step for request in user.asked] == [0, 1, 3]  # nobody to ask at step 2
    assert [request.batch["times_asked"][0][0] for request in user.asked] == [0, 1, 0]


def test_a_user_is_offered_the_generators_that_its_segment_knows():
    user = first_option()
    with_user(user, segment={"preferences": {"bad": 1.0}}).play()
    assert {tuple(request.batch["options"][0]) for request in user.asked} == {("bad",)}


def test_a_market_with_users_that_are_agents_is_not_compiled():
    world = with_user(first_option())
    assert not can_compile(world.market)
    assert can_compile(a_world(RATES, segments=[{"name": "asked"}]).market)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"segments": [{"name": "s", "agent": "judge"}]}, "'judge' grades answers"),
        (
            {
                "segments": [{"name": "s", "agent": "me"}],
                "interventions": [{"step": 1, "agent": "me", "kind": "exit"}],
            },
            "'me' chooses for users, so the exit at step 1 cannot be",
        ),
        (
            {"segments": [{"name": "s", "agent": "me", "preferences": {"me": 1.0}}]},
            "'me' chooses for users, so nobody can prefer it",
        ),
        (
            {"segments": [{"name": "s", "agent": "me"}], "draws": "mersenne"},
            "which has no users that are agents",
        ),
    ],
)
def test_a_seat_that_chooses_for_users_does_nothing_else(spec, message):
    with pytest.raises(ScenarioError, match=message):
        validated(Information, spec)
