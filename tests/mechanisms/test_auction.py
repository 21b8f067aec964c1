"""The multi-unit auction and the double auction, by worked case, law and real rounds."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketeval.core.streams import Streams
from marketeval.mechanisms.auction import PRICINGS, TIES, allocate, cross, midpoint

A, B, C, D = range(4)


def one_item(quantity, price, *, supply=200, reserve=50, seed=1, **options):
    won, unit = allocate(
        np.array(quantity)[:, None],
        np.array(price)[:, None],
        supply=np.array([supply]),
        reserve=np.array([reserve]),
        codes=Streams(seed).codes("tie", [f"s{i}" for i in range(len(quantity))]),
        step=0,
        **options,
    )
    return won[:, 0], unit[:, 0]


def test_the_worked_case_gives_120_to_A_and_80_to_B_or_C():
    winners = set()
    for seed in range(20):
        won, unit = one_item([120, 100, 100, 80], [60, 55, 55, 49], seed=seed)
        assert won[A] == 120
        assert won[D] == 0
        assert sorted(won[[B, C]]) == [0, 80]
        assert sorted((won * unit)[[A, B, C]]) == [0, 4400, 7200]
        winners.add(int(won[B] == 80))
    assert winners == {0, 1}


def test_pro_rata_divides_what_is_left_among_equal_bids():
    won, _ = one_item([120, 100, 100, 80], [60, 55, 55, 49], ties="pro_rata")
    assert won.tolist() == [120, 40, 40, 0]
    won, _ = one_item([30, 20, 10], [55, 55, 55], supply=40, ties="pro_rata")
    assert won.sum() == 40
    assert won.tolist() == [20, 13, 7]  # shares 20, 13 1/3, 6 2/3: the largest remainder rounds up


def test_the_order_of_agents_may_decide_ties():
    won, _ = one_item([120, 100, 100], [60, 55, 55], ties="agent_order")
    assert won.tolist() == [120, 80, 0]
    won, _ = one_item([120, 100, 100], [60, 55, 55], ties="agent_order", rank=np.array([0, 2, 1]))
    assert won.tolist() == [120, 0, 80]


def test_uniform_prices_are_the_lowest_accepted_bid_or_the_reserve():
    _, unit = one_item([120, 100], [60, 55], pricing="uniform_lowest_accepted")
    assert unit.tolist() == [55, 55]
    _, unit = one_item([120, 70], [60, 55], pricing="uniform_lowest_accepted")
    assert unit.tolist() == [50, 50]
    _, unit = one_item([120, 100], [60, 55], pricing="uniform_reserve")
    assert unit.tolist() == [50, 50]


def test_a_bid_equal_to_the_base_price_is_accepted():
    won, unit = one_item([10], [50])
    assert (won[0], unit[0]) == (10, 50)


@given(
    lines=st.lists(st.tuples(st.integers(0, 40), st.integers(45, 60)), min_size=1, max_size=8),
    supply=st.integers(0, 60),
    ties=st.sampled_from(TIES),
    pricing=st.sampled_from(PRICINGS),
)
def test_laws_of_allocation(lines, supply, ties, pricing):
    quantity, price = (np.array(column) for column in zip(*lines, strict=True))
    won, unit = one_item(quantity, price, supply=supply, ties=ties, pricing=pricing)
    valid = (quantity > 0) & (price >= 50)
    assert (won >= 0).all()
    assert (won <= quantity).all()
    assert won.sum() == min(supply, quantity[valid].sum())
    assert not won[~valid].any()
    assert ((unit >= 50) & (unit <= price))[won > 0].all()
    short = valid & (won < quantity)
    if short.any() and (won > 0).any():
        assert price[short].max() <= price[won > 0].min()


def test_the_double_auction_crosses_best_bids_with_best_asks():
    buyers, sellers = cross(np.array([10, 14, 14, 7]), np.array([12, 9, 20, 8]))
    assert buyers.tolist() == [1, 2]
    assert sellers.tolist() == [3, 1]
    assert midpoint(np.array([14, 14]), np.array([8, 9])).tolist() == [11.0, 11.5]


DATA = Path(__file__).parents[2].parent / "shared" / "data" / "bazaar"


@pytest.mark.skipif(not DATA.exists(), reason="the shared data are not next to the repository")
def test_the_double_auction_agrees_with_1800_real_rounds():
    def by_round(name):
        rows = defaultdict(list)
        with (DATA / name).open() as file:
            for row in csv.DictReader(file):
                rows[row["game_id"], row["round"]].append(row)
        return rows

    quotes, trades = by_round("quotes_sample.csv"), by_round("trades_sample.csv")
    assert len(quotes) == 1800
    for key, rows in quotes.items():
        sides = {role: [row for row in rows if row["role"] == role] for role in ("buyer", "seller")}
        prices = {role: np.array([float(r["price"]) for r in side]) for role, side in sides.items()}
        buyers, sellers = cross(prices["buyer"], prices["seller"])
        found = {
            (sides["buyer"][b]["seat"], sides["seller"][s]["seat"])
            for b, s in zip(buyers, sellers, strict=True)
        }
        assert found == {(row["buyer"], row["seller"]) for row in trades[key]}, key
        for row in trades[key]:
            middle = midpoint(np.array(float(row["bid"])), np.array(float(row["ask"])))
            assert abs(float(row["price"]) - middle) <= 0.5
