"""Double entry: nothing is made or lost, whatever is bought, sold, paid or lost."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketeval.mechanisms.ledger import Ledger, Outside

MOVES = st.lists(
    st.tuples(
        st.sampled_from(["buy", "sell", "pay", "lose"]),
        st.integers(0, 2),
        st.integers(0, 1),
        st.integers(0, 30),
        st.integers(0, 99),
    ),
    max_size=30,
)


@given(MOVES)
def test_money_and_stock_are_conserved_to_the_unit(moves):
    ledger = Ledger(3, 2, funds=1000)
    for move, trader, item, units, price in moves:
        amounts = np.zeros((3, 2), np.int64)
        prices = np.full((3, 2), price)
        if move == "buy":
            amounts[trader, item] = units
            ledger.buy(Outside.SUPPLIER, amounts, prices)
        elif move == "sell":
            amounts[trader, item] = min(units, ledger.stock[trader, item])
            ledger.sell(Outside.BUYERS, amounts, amounts * prices)
        elif move == "pay":
            ledger.pay(Outside.BANK, np.array([units, -units, 0]))
        else:
            ledger.lose(np.arange(3) == trader)
        assert ledger.check()


def test_the_cost_of_goods_sold_is_the_weighted_average():
    ledger = Ledger(1, 1, funds=10_000)
    ledger.buy(Outside.SUPPLIER, np.array([[10]]), np.array([[50]]))
    ledger.buy(Outside.SUPPLIER, np.array([[30]]), np.array([[70]]))  # 40 units at 65 on average
    cost = ledger.sell(Outside.BUYERS, np.array([[20]]), np.array([[2000]]))
    assert cost.tolist() == [[1300]]
    assert ledger.cost.tolist() == [[1300]]
    assert ledger.funds.tolist() == [10_000 - 500 - 2100 + 2000]
    assert ledger.outside(Outside.SUPPLIER) == 2600
    assert ledger.outside(Outside.BUYERS) == -2000


def test_what_is_not_there_cannot_be_sold():
    with pytest.raises(ValueError, match="at most the stock"):
        Ledger(1, 1, funds=1).sell(Outside.BUYERS, np.array([[1]]), np.array([[1]]))


def test_balances_cannot_be_written_from_outside():
    ledger = Ledger(1, 1, funds=1)
    with pytest.raises(ValueError, match="read-only"):
        ledger.funds[0] = 5


def test_first_in_first_out_sells_the_oldest_units():
    ledger = Ledger(2, 1, funds=10_000, costing="fifo")
    for units, price in (((10, 5), 50), ((30, 5), 70)):
        ledger.buy(Outside.SUPPLIER, np.array(units)[:, None], np.full((2, 1), price))
    # 10 at 50 and 10 at 70; the other trader 5 at 50 and 1 at 70
    cost = ledger.sell(Outside.BUYERS, np.array([[20], [6]]), np.array([[0], [0]]))
    assert cost.tolist() == [[1200], [320]]
    assert ledger.cost.tolist() == [[20 * 70], [4 * 70]]
    cost = ledger.sell(Outside.BUYERS, np.array([[20], [4]]), np.array([[0], [0]]))
    assert cost.tolist() == [[1400], [280]]
    assert ledger.check()


@given(MOVES)
def test_however_stock_is_costed_the_goods_are_the_same_and_the_costs_sum_up(moves):
    average, fifo = (Ledger(3, 2, funds=1000, costing=one) for one in ("average", "fifo"))
    spent = sold = lost = 0
    for move, trader, item, units, price in moves:
        amounts = np.zeros((3, 2), np.int64)
        if move == "buy":
            amounts[trader, item] = units
            for ledger in (average, fifo):
                ledger.buy(Outside.SUPPLIER, amounts, np.full((3, 2), price))
            spent += units * price
        elif move == "sell":
            amounts[trader, item] = min(units, fifo.stock[trader, item])
            average.sell(Outside.BUYERS, amounts, amounts)
            sold += int(fifo.sell(Outside.BUYERS, amounts, amounts).sum())
        elif move == "lose":
            lost += int(fifo.cost[trader].sum())
            for ledger in (average, fifo):
                ledger.lose(np.arange(3) == trader)
        assert fifo.check()
        assert (average.stock == fifo.stock).all()
        assert spent == sold + lost + fifo.cost.sum()


@given(MOVES)
def test_first_in_first_out_costs_what_a_list_of_single_units_does(moves):
    ledger, shelf = Ledger(3, 2, funds=1000, costing="fifo"), {}
    for move, trader, item, units, price in moves:
        amounts, mine = np.zeros((3, 2), np.int64), shelf.setdefault((trader, item), [])
        if move == "buy":
            amounts[trader, item] = units
            ledger.buy(Outside.SUPPLIER, amounts, np.full((3, 2), price))
            mine += [price] * units
        elif move == "sell":
            amounts[trader, item] = min(units, len(mine))
            cost = ledger.sell(Outside.BUYERS, amounts, amounts)
            assert cost[trader, item] == cost.sum() == sum(mine[:units])
            del mine[:units]
        elif move == "lose":
            ledger.lose(np.arange(3) == trader)
            shelf.update({(trader, one): [] for one in range(2)})
        assert all(ledger.cost[key] == sum(left) for key, left in shelf.items())


def test_a_sale_looks_at_the_purchases_it_takes_from_however_many_there_are():
    """Lines run per sale of one unit, with 10 purchases on the shelf and with 10,000."""
    lines = {}
    for purchases in (10, 10_000):
        ledger, one = Ledger(1, 1, funds=0, costing="fifo"), np.array([[1]])
        for _ in range(purchases):
            ledger.buy(Outside.SUPPLIER, one, one)
        count = 0

        def trace(frame, event, argument):
            nonlocal count
            count += frame.f_code.co_filename.endswith("ledger.py")
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            ledger.sell(Outside.BUYERS, one, one)
        finally:
            sys.settrace(before)
        lines[purchases] = count
    assert lines[10] == lines[10_000] > 0
