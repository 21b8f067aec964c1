"""Construct validity: what should harm an agent harms it, and the more the more."""

from __future__ import annotations

import copy
import itertools

import pytest
from ecosystems import play, value

SEEDS = range(1, 21)
MARKET = {
    "horizon": 60,
    "per_step": 10,
    "populations": {
        "users": {
            "role": "user",
            "count": 20,
            "choose": {"policy": "epsilon_greedy", "parameter": 0.1, "learning": "exponential"},
            "utility": {"quality": 1, "cost": 1, "latency": 0.1},
        },
        "gens": {
            "role": "generator",
            "closed_book": 0.6,
            "draw": True,
            "strategy": {"kind": "none"},
            "members": {"one": {}, "two": {}, "three": {}},
        },
    },
    "edges": ["users -> gens"],
}


def worse(name: str, amount: float) -> dict:
    """The market with generator `one` made worse in one respect."""
    market = copy.deepcopy(MARKET)
    change = {"price": {"price": {"query": amount}}}.get(name, {name: amount})
    market["populations"]["gens"]["members"]["one"] = change
    return market


@pytest.mark.parametrize(
    ("name", "grid"),
    [
        ("latency_s", [0.0, 2.0, 5.0, 10.0]),
        ("price", [0.0, 0.2, 0.5, 1.0]),
        ("errors", [0.0, 0.3, 0.6, 1.0]),
    ],
)
def test_a_generator_that_gets_worse_keeps_fewer_users(name, grid):
    kept = [value(play(worse(name, one), seeds=SEEDS), "Retention(m=10)", "one") for one in grid]
    assert all(a > b for a, b in itertools.pairwise(kept)), kept
    assert kept[0] - kept[-1] > 0.1


def collections(exclusive: bool) -> dict:
    """Two retrievers; the law collection is both's, or `owner`'s alone."""
    return {
        "horizon": 60,
        "per_step": 10,
        "pool": {"law": 50, "other": 50},
        "populations": {
            "users": {"role": "user"},
            "gen": {"role": "generator", "closed_book": 0.1},
            "router": {"role": "router", "choose": {"policy": "ucb1", "per": "topic"}},
            "rets": {
                "role": "retriever",
                "members": {
                    "owner": {"evidence": {"law": 0.8, "other": 0.5}},
                    "rival": {"evidence": {"law": 0.0 if exclusive else 0.8, "other": 0.5}},
                },
            },
        },
        "edges": ["users -> gen", "gen -> router", "router -> rets"],
    }


@pytest.mark.parametrize("routing", ["traffic", "best"])
def test_an_exclusive_collection_raises_its_owners_marginal_contribution(routing):
    shared, owned = (play(collections(one), seeds=SEEDS) for one in (False, True))
    law = f"MarginalContribution(routing={routing}, topic=law)"
    other = f"MarginalContribution(routing={routing}, topic=other)"
    assert value(owned, law, "owner") > value(shared, law, "owner") + 0.1
    assert value(owned, other, "owner") == pytest.approx(value(shared, other, "owner"), abs=0.02)


def test_playing_again_without_the_owner_shows_the_same():
    def lost(exclusive):
        with_, without = (
            play({**collections(exclusive), "without": gone}, seeds=SEEDS)
            for gone in ([], ["owner"])
        )
        return value(with_, "LongitudinalUtility") - value(without, "LongitudinalUtility")

    assert lost(True) > lost(False) + 0.1


@pytest.mark.parametrize("overflow", ["reject", "degrade"])
def test_capacity_below_demand_spreads_the_traffic(overflow):
    def hhi(capacity):
        market = copy.deepcopy(MARKET)
        gens = market["populations"]["gens"]
        gens["members"] = {"one": {"closed_book": 0.9}, "two": {}, "three": {"closed_book": 0.3}}
        gens["draw"] = False
        gens |= {"capacity": capacity, "overflow": overflow}
        return value(play(market, seeds=SEEDS), "HHI")

    # ten questions a step; three providers serve nine or six of them
    free, *bound = (hhi(capacity) for capacity in (None, 3, 2))
    assert max(bound) < free, (free, bound)


@pytest.mark.parametrize(
    ("behaviour", "raises"),
    [
        ({"popularity": 1.0}, True),
        ({"exposure": 0.3}, True),
        ({"framing": {"three": 2.0}}, True),
        ({"network": 1.0}, True),
    ],
)
def test_behavioural_effects_concentrate_the_market(behaviour, raises):
    market = copy.deepcopy(MARKET)
    market["populations"]["users"]["choose"] = {"policy": "logit", "parameter": 0.5}
    plain = value(play(market, seeds=SEEDS), "HHI")
    market["populations"]["users"]["behaviour"] = behaviour
    assert (value(play(market, seeds=SEEDS), "HHI") > plain) == raises


def test_switching_costs_keep_users_where_they_are():
    market = copy.deepcopy(MARKET)
    market["populations"]["users"]["choose"] = {"policy": "logit", "parameter": 0.5}
    plain = value(play(market, seeds=SEEDS), "SwitchRate")
    market["populations"]["users"]["behaviour"] = {"switching_cost": 1.0}
    assert value(play(market, seeds=SEEDS), "SwitchRate") < plain - 0.1


def test_a_router_that_serves_its_own_house_alone_costs_utility():
    def utility(exclusive):
        market = collections(True)
        market["populations"]["router"]["choose"]["exclusive"] = exclusive
        return value(play(market, seeds=SEEDS), "LongitudinalUtility")

    assert utility([]) > utility(["rival"]) + 0.1


@pytest.mark.parametrize("policy", ["epsilon_greedy", "ucb1", "best_response"])
def test_a_seller_that_sets_its_price_finds_one_that_pays(policy):
    market = copy.deepcopy(MARKET)
    market["horizon"] = 400
    market["populations"]["users"]["utility"]["cost"] = 4
    one = market["populations"]["gens"]["members"]["one"]

    def income(price, **more):
        one.clear()
        one.update({"price": {"query": price}, **more})
        return value(play(market, seeds=range(1, 4)), "NetIncome", "one")

    prices = [0.001, 0.02, 0.5]
    fixed = [income(price) for price in prices]
    levers = {"lever": "price", "options": prices, "policy": policy, "every": 10, "scale": 0.1}
    adaptive = income(prices[0], adapt=levers)
    assert adaptive > fixed[0]  # where it started
    assert adaptive > 0.5 * max(fixed)  # it does not know the others' prices, only its own income
