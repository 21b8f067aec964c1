"""Bradley and Terry's ratings: by the equation they solve, by symmetry, by a known tournament."""

from __future__ import annotations

import doctest
import importlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketeval.core.errors import UsageError
from marketeval.metrics import leaderboard
from marketeval.metrics.rating import rate, strengths


def test_two_players_solve_the_equation_of_the_likelihood():
    # 3 wins of a, with half a win and half a loss each against strength 1: with b = 1 / a,
    # 3.5 = 3 a / (a + b) + a / (a + 1)
    a, b = strengths(np.array([[0.0, 3.0], [0.0, 0.0]]))
    assert a * b == pytest.approx(1.0)
    assert 3 * a / (a + b) + a / (a + 1) == pytest.approx(3.5)


@given(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=3, max_size=3))
def test_expected_wins_are_the_wins(rows):
    wins = np.array(rows, np.float64)
    np.fill_diagonal(wins, 0.0)
    s = strengths(wins)
    expected = (wins + wins.T) * s[:, None] / (s[:, None] + s[None, :])
    assert expected.sum(axis=1) + s / (s + 1) == pytest.approx(wins.sum(axis=1) + 0.5)


def test_players_who_never_met_are_compared_through_others():
    games = [{"a": 3, "b": 1}] * 8 + [{"b": 3, "c": 1}] * 8 + [{"a": 1, "b": 2}, {"b": 1, "c": 2}]
    found = {one.player: one for one in rate(games)}
    assert [one.player for one in rate(games)] == ["a", "b", "c"]
    assert found["a"].games == 9
    assert found["b"].rating == pytest.approx(1500, abs=1e-6)
    assert found["a"].low < found["a"].rating < found["a"].high


def test_four_hundred_points_are_odds_of_ten_to_one():
    a, b = (one.rating for one in rate([{"a": 1, "b": 0}] * 1000 + [{"a": 0, "b": 1}] * 100))
    assert a - b == pytest.approx(400, abs=4)


def test_ties_leave_players_equal_and_lonely_games_are_refused():
    assert {one.rating for one in rate([{"a": 1, "b": 1}] * 3)} == {1500.0}
    with pytest.raises(UsageError):
        rate([{"a": 1}])


def test_places_have_intervals():
    import polars as pl

    rows = [
        {"seed": seed, "metric": "Profit", "step": None, "subject": seat, "value": value}
        for seed in range(20)
        for seat, value in (("low", 0.0), ("top", 10.0), ("odd", 5.0 * (seed % 2)), ("gone", None))
    ]
    tidy = pl.DataFrame(rows, schema_overrides={"step": pl.Int64, "value": pl.Float64})
    found = {
        one.seat: (one.place, one.low, one.high) for one in leaderboard.standings(tidy, "Profit")
    }
    assert found == {"top": (1, 1, 1), "odd": (2, 2, 2), "low": (3, 3, 3), "gone": (4, 4, 4)}


def test_examples_run():
    module = importlib.import_module("marketeval.metrics.rating")
    assert doctest.testmod(module).failed == 0
    assert math.isfinite(strengths(np.zeros((1, 1)))[0])


def test_ratings_game_by_game_agree_with_the_published_update():
    skill = pytest.importorskip("openskill", reason="needs marketeval[rating]")
    assert skill
    from marketeval.metrics.skill import skills

    # Weng and Lin (2011), algorithm 4, two players at mu 25 and sigma 25 / 3, which drifts by 25 /
    # 300 before a game: with c^2 = 2 (sigma^2 + beta^2), beta = 25 / 6, the winner's p is 1/2, and
    # mu moves by sigma^2 / c * 1/2
    sigma = math.hypot(25 / 3, 25 / 300)
    c = math.sqrt(2 * (sigma**2 + (25 / 6) ** 2))
    won, lost = skills([{"a": 3.0, "b": 1.0}])
    assert (won.player, lost.player) == ("a", "b")
    assert won.rating == pytest.approx(25 + sigma**2 / c / 2)
    assert lost.rating == pytest.approx(25 - sigma**2 / c / 2)
    # many players of whom few meet: the order of strength comes out
    games = [
        {name: strength for name, strength in zip("abcdefgh", range(8), strict=True)
         if (strength + first) % 8 < 3}
        for first in range(8)
    ] * 20  # fmt: skip
    assert [one.player for one in skills(games)] == list("hgfedcba")
    with pytest.raises(UsageError):
        skills([{"a": 1.0}])
