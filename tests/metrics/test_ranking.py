"""Static order against market order."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pencil_logs import pencil
from slow import rho, tau_b

from marketeval.metrics.ranking import (
    KendallTau,
    Rank,
    SpearmanRho,
    StaticRank,
    kendall_tau_b,
    spearman_rho,
)

STATIC = {"A": 0.4, "B": 0.3, "C": 0.2, "D": 0.1}


def test_tau_b_with_ties_is_the_textbook_value() -> None:
    # pairs: 3 concordant, 1 discordant; 1 tied in x, 1 in y: (3 - 1) / sqrt(5 * 5)
    assert float(kendall_tau_b([1, 1, 2, 3], [1, 2, 2, 1.5])) == pytest.approx(
        tau_b([1, 1, 2, 3], [1, 2, 2, 1.5])
    )
    assert float(kendall_tau_b([1, 2, 2], [1, 2, 3])) == pytest.approx(2 / math.sqrt(2 * 3))


def test_rho_with_ties_takes_mean_ranks() -> None:
    # ranks 1, 2.5, 2.5 and 1, 2, 3
    assert float(spearman_rho([1, 2, 2], [1, 2, 3])) == pytest.approx(1.5 / math.sqrt(1.5 * 2))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8))
def test_correlations_equal_those_counted_pair_by_pair(pairs: list[tuple[int, int]]) -> None:
    x, y = [one for one, _ in pairs], [other for _, other in pairs]
    for found, expected in (
        (float(kendall_tau_b(x, y)), tau_b(x, y) if pairs else None),
        (float(spearman_rho(x, y)), rho(x, y) if pairs else None),
    ):
        assert math.isnan(found) if expected is None else found == pytest.approx(expected)


def test_market_ranks_share_the_smallest_place_when_tied() -> None:
    log = pencil("a:B a:B a:A a:C", agents="ABCD", static=STATIC)
    assert Rank().compute(log)["value"].to_list() == [2, 1, 2, 4]
    assert StaticRank().compute(log)["value"].to_list() == [1, 2, 3, 4]


def test_the_market_may_turn_the_benchmark_around() -> None:
    same = pencil("a:A a:A a:A a:B a:B a:C", agents="ABCD", static=STATIC)
    turned = pencil("a:D a:D a:D a:C a:C a:B", agents="ABCD", static=STATIC)
    for log, expected in ((same, 1.0), (turned, -1.0)):
        assert KendallTau().compute(log)["value"].item() == expected
        assert SpearmanRho().compute(log)["value"].item() == pytest.approx(expected)


def test_only_agents_in_the_market_are_ranked() -> None:
    log = pencil(
        "a:B a:C", "a:A", agents="ABC", entry={"A": 1}, static={one: STATIC[one] for one in "ABC"}
    )
    table = StaticRank(stop=1).compute(log)
    assert table.select("subject", "value").rows() == [("B", 1.0), ("C", 2.0)]


@pytest.mark.parametrize(
    ("story", "options", "reason"),
    [
        ("a:A a:B", {"static": {"A": 0.5, "B": 0.5}}, "all tied on one side"),
        ("a:A a:B", {"static": {"A": 0.6, "B": 0.5}}, "all tied on one side"),
        ("a:A", {"static": {"A": 0.6}}, "no static score for B"),
        ("a:A", {"static": None}, "the log has no static scores"),
        ("a:A", {"agents": "A", "static": {"A": 1}}, "fewer than two agents in the market"),
        ("", {"horizon": 1, "static": {"A": 1, "B": 0.5}}, "no interaction in the window"),
    ],
)
def test_an_undefined_correlation_is_null_with_its_reason(
    story: str, options: dict[str, object], reason: str
) -> None:
    for metric in (KendallTau(), SpearmanRho()):
        row = metric.compute(pencil(story, **options))
        assert row.select("value", "note").row(0) == (None, reason)
