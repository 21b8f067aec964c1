"""The published optima and baselines of the reference's populations, reached by playing."""

from __future__ import annotations

import pytest
from two_sided_games import play, published

from marketeval.markets.two_sided.optimum import baselines
from marketeval.metrics.analytics import analytics, optimum
from marketeval.metrics.base import evaluate, parse_metric

# baseline_utilities.json of each population: pick_optimal_baseline, pick_cheapest_baseline
PUBLISHED = {
    "mexican_3_9": (63.78, 63.78),
    "mexican_10_30": (185.61, 111.31),
    "mexican_100_300": (2109.85, 1090.41),
    "contractors_10_30": (6091.94, 4438.54),
}


def welfare(log):
    return round(analytics(log, 1)["total_marketplace_customer_utility"], 2)


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("rules", ["strict", "compatible"])
def test_careful_buyers_who_can_find_everybody_reach_the_published_optimum(name, rules):
    log = play(published(name), search="optimal", rules=rules)
    assert welfare(log) == PUBLISHED[name][0]
    assert optimum(log) == PUBLISHED[name][0]


@pytest.mark.parametrize("name", PUBLISHED)
def test_buyers_of_the_cheapest_whatever_the_amenities_reach_the_published_baseline(name):
    log = play(published(name), buyer="cheapest-anyway", search="optimal")
    assert welfare(log) == PUBLISHED[name][1]


@pytest.mark.parametrize("name", PUBLISHED)
def test_hindsight_reaches_the_optimum_without_a_search(name):
    log = play(published(name), buyer="hindsight")
    assert welfare(log) == PUBLISHED[name][0]
    assert log.scan("search").collect().is_empty()


def test_lexical_search_with_the_request_as_query_gives_87_buyers_of_100():
    log = play(published("mexican_100_300"), search="lexical", limit=10)
    found = analytics(log, 1)
    assert found["customers_who_made_purchases"] == found["customers_with_needs_met"] == 87
    assert welfare(log) == 1935.68


@pytest.mark.parametrize("name", PUBLISHED)
def test_our_baselines_are_the_published_constants_and_within_the_published_draws(name):
    ours, theirs = baselines(published(name)), published(name).published
    for policy in ("pick_optimal_baseline", "pick_cheapest_baseline"):
        assert ours[policy]["constant"] == round(theirs[policy]["constant"], 2)
    for policy in ("pick_any_baseline", "pick_any_with_amenities_baseline"):
        assert theirs[policy]["q1"] <= ours[policy]["median"] <= theirs[policy]["q3"]


def test_the_four_components_of_the_evaluation_environment_are_all_one_at_the_optimum():
    log = play(published("mexican_10_30"), search="optimal")
    names = ("PurchaseCompletion", "NeedsMet", "WelfareOverOptimum", "ProposalValidity")
    tidy = evaluate(log, [parse_metric(one) for one in (*names, "EvaluationScore")])
    assert tidy["value"].to_list() == [1.0] * 5
