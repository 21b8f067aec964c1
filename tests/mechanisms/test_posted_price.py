"""Buyers walk from the cheapest seller they see; what reaches a shelf is a request."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from marketeval.core.streams import Streams
from marketeval.mechanisms.posted_price import NOBODY, shop

ANY = 10**9


def visit(wants, prices, stock, *, seen=None, ceiling=ANY, seed=1):
    """Buyers 0, 1, ... want units of one item, in this order, and see all sellers."""
    sellers, buyers = len(prices), len(wants)
    everybody = np.tile(np.arange(sellers, dtype=np.int32), (buyers, 1))
    return shop(
        np.arange(buyers), np.zeros(buyers, np.int64), np.array(wants),
        everybody if seen is None else np.array(seen, np.int32),
        np.array(prices)[:, None], np.full((1, 1), ceiling), np.zeros(buyers, np.int64),
        np.array(stock)[:, None], Streams(seed).codes("tie", [f"s{i}" for i in range(sellers)]),
        0, buyers,
    )  # fmt: skip


def test_the_cheapest_seller_serves_first_and_the_next_one_the_rest():
    traffic = visit([5, 5], prices=[20, 10, 15], stock=[9, 3, 4])
    # buyer 0: 3 of the second at 10, 2 of the third at 15; buyer 1: 2 of the third, 3 of the first
    assert traffic.sold[:, 0].tolist() == [3, 3, 4]
    assert traffic.partial[:, 0].tolist() == [0, 2, 3]
    assert traffic.empty_listed[:, 0].tolist() == [0, 5, 0]
    assert traffic.outcompeted[:, 0].tolist() == [5, 0, 0]
    assert traffic.last.tolist() == [2, 0]


def test_a_shelf_empty_on_arrival_is_asked_for_all_listed_or_not():
    traffic = visit([4], prices=[0, 10, 12], stock=[0, 0, 9])
    assert traffic.empty_unlisted[:, 0].tolist() == [4, 0, 0]
    assert traffic.empty_listed[:, 0].tolist() == [0, 4, 0]
    assert traffic.sold[:, 0].tolist() == [0, 0, 4]


def test_stock_without_a_price_is_asked_for_nothing():
    traffic = visit([4], prices=[0], stock=[9])
    assert traffic.requested().sum() == 0
    assert traffic.outcompeted.sum() == 4


def test_no_price_above_the_ceiling_sells():
    assert visit([4], prices=[31], stock=[9], ceiling=30).sold.sum() == 0
    assert visit([4], prices=[30], stock=[9], ceiling=30).sold.sum() == 4


def test_unseen_sellers_are_not_asked():
    traffic = visit([4], prices=[10, 5], stock=[9, 9], seen=[[0, NOBODY]])
    assert traffic.sold[:, 0].tolist() == [4, 0]


def test_equal_prices_are_decided_by_keyed_chance():
    first = [visit([1], prices=[10, 10], stock=[1, 1], seed=s).last[0] for s in range(200)]
    assert 70 < sum(first) < 130


@given(
    wants=st.lists(st.integers(0, 6), min_size=1, max_size=8),
    shops=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=5),
)
def test_laws_of_shopping(wants, shops):
    prices, stock = zip(*shops, strict=True)
    traffic = visit(wants, prices, stock)
    assert (traffic.sold[:, 0] <= stock).all()
    listed = sum(s for p, s in shops if p)
    assert traffic.sold.sum() == min(sum(wants), listed)
    every = traffic.requested() + traffic.outcompeted
    assert (every[:, 0] <= sum(wants)).all()
