"""Two sellers, two items, two steps: every number below was worked out by hand.

Ann and Bob start with 200. Ten apples (base 10) and six pears (base 20) are offered per step; four
shoppers want four units each. With seed 110 they want, in order of arrival, apples, pears, apples,
apples in the first step and apples, pears, apples, pears in the second. All see both sellers.
Holding costs a tenth of what the stock cost. The whole log is kept in `playthrough.txt`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl
import pytest
from played import Scripted, bid, offer, play

from marketeval.metrics.base import evaluate, parse_metric

GOLDEN = Path(__file__).with_name("playthrough.txt")
SPEC = {
    "horizon": 2,
    "funds": 200,
    "items": [
        {"name": "apple", "category": "fruit", "quantity": 10, "base_price": 10},
        {"name": "pear", "category": "fruit", "quantity": 6, "base_price": 20},
    ],
    "auction": {"rounds": 1},
    "demand": {"buyers": 4, "ratio": 1.0},
    "holding": {"rate": 0.1},
}
ANN = Scripted(
    bids=lambda b: [bid(apple=(8, 11), pear=(2, 25)), bid(apple=(6, 10), pear=(1, 19))][b.step],
    offers=lambda b: [
        offer("Fair fruit from green farms.", apple=15, pear=40),
        offer("Fair fruit from green farms.", apple=20, pear=45),
    ][b.step],
)
BOB = Scripted(
    bids=lambda b: [bid(apple=(5, 12), pear=(5, 20)), bid(apple=(10, 30))][b.step],
    offers=lambda b: [offer("Cheap!", apple=14, pear=30), offer(apple=14)][b.step],
)


@cache
def log():
    return play(SPEC, {"ann": ANN, "bob": BOB}, seeds=[110])


def rows(kind, *columns):
    return log().scan(kind).select(columns).collect().rows()


def test_the_highest_bids_win_and_pay_what_they_bid():
    # step 0: Bob's 12 beats Ann's 11, so she gets 5 of 8; her 25 beats his 20, so he gets 4 of 5
    # step 1: Ann's pears at 19 are below the base of 20; Bob's 10 x 30 = 300 exceeds his 250
    assert rows("award", "step", "agent", "item", "asked", "won", "price") == [
        (0, 0, 0, 8, 5, 11), (0, 0, 1, 2, 2, 25), (0, 1, 0, 5, 5, 12), (0, 1, 1, 5, 4, 20),
        (1, 0, 0, 6, 6, 10),
    ]  # fmt: skip
    assert rows("bid", "step", "agent", "state", "asked", "commitment", "funds") == [
        (0, 0, "valid", 10, 138.0, 200), (0, 1, "valid", 10, 160.0, 200),
        (1, 0, "valid", 7, 60.0, 165), (1, 1, "overspent", 10, 300.0, 250),
    ]  # fmt: skip
    assert rows("fault", "step", "agent", "fault", "what") == [
        (1, 0, "below_reserve", "pear: (1, 19)")
    ]


def test_what_reaches_each_shelf():
    columns = (
        "sold",
        "revenue",
        "cogs",
        "empty_listed",
        "empty_unlisted",
        "partial",
        "outcompeted",
    )
    assert rows("shelf", "step", "agent", "item", *columns) == [
        (0, 0, 0, 5, 75, 55, 0, 0, 2, 4),
        (0, 0, 1, 0, 0, 0, 0, 0, 0, 4),
        (0, 1, 0, 5, 70, 60, 4, 0, 3, 0),
        (0, 1, 1, 4, 120, 80, 0, 0, 0, 0),
        (1, 0, 0, 6, 120, 60, 0, 0, 2, 0),
        (1, 0, 1, 2, 90, 50, 4, 0, 2, 0),
        (1, 1, 0, 0, 0, 0, 8, 0, 0, 0),
        (1, 1, 1, 0, 0, 0, 0, 8, 0, 0),
    ]
    assert rows("demand", "step", "item", "wanted", "bought") == [
        (0, 0, 12, 10), (0, 1, 4, 4), (1, 0, 8, 6), (1, 1, 8, 2),
    ]  # fmt: skip


def test_the_books():
    columns = ("opening", "spend", "revenue", "holding", "funds", "cogs", "inventory_cost")
    assert rows("account", "step", "agent", *columns) == [
        (0, 0, 200, 105, 75, 5, 165, 55, 50),
        (0, 1, 200, 140, 190, 0, 250, 140, 0),
        (1, 0, 165, 60, 210, 0, 315, 110, 0),
        (1, 1, 250, 0, 0, 0, 250, 0, 0),
    ]


@pytest.mark.parametrize(
    ("metric", "ann", "bob"),
    [
        ("Profit", 115, 50),
        ("NPM", 115 / 285, 50 / 190),
        ("Profit(basis=accrual)", 285 - 165 - 5, 190 - 140),
        ("RAR", 57.5 / (185 / 2**0.5), 25 / (50 / 2**0.5)),
        ("IEI", 165 / 190, 1),
        ("FillRate", 13 / 23, 9 / 32),
        ("StockoutRate", 4 / 23, 20 / 32),
        ("StockoutRate(scope=listed)", 4 / 23, 12 / 24),
        ("PartialRate", 6 / 23, 3 / 32),
        ("WinShare", 13 / 17, 9 / 20),
        ("PriceDiscipline", 150 / 165, 130 / 140),
        ("BidEfficiency", 13 / 17 * 150 / 165, 9 / 20 * 130 / 140),
        ("OSI", 1, 1),
        ("OSI(orders=won)", 1, 1),
        ("OverbidRate", 0, 1 / 2),
        ("InvalidRate", 0, 0),
        ("CapitalEfficiency", 115 / 170, 50 / 140),
        ("Drawdown", 35 / 200, 0),
        ("UnitsSold", 13, 9),
        ("LanguageLeverage", 0, 0),
    ],
)
def test_metrics_by_pencil(metric, ann, bob):
    values = evaluate(log(), [parse_metric(metric)])["value"].to_list()
    assert values == pytest.approx([ann, bob])


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("MarketIndex(gini)", 65 / 1130),
        ("MarketIndex(hhi)", (315**2 + 250**2) / 565**2),
        ("MarketIndex(cr4)", 1),
        ("MarketIndex(hhi, base=step_revenue)", 1),
        ("MarketIndex(gini, base=cumulative_revenue)", 95 / (2 * 475)),
        ("ActiveRatio", 0.75),
        ("RankMobility", 1.0),
    ],
)
def test_indices_by_pencil(metric, value):
    assert evaluate(log(), [parse_metric(metric)])["value"].to_list() == pytest.approx([value])


def test_the_whole_log_is_as_it_was():
    text = "\n".join(_table(kind) for kind in log().kinds if log().scan(kind).collect().height)
    assert text == GOLDEN.read_text("utf-8")


def _table(kind: str) -> str:
    frame = log().scan(kind).drop("seed", "turn").collect()
    cells = [frame.columns, *frame.cast(pl.String).fill_null("-").rows()]
    widths = [max(len(row[i]) for row in cells) for i in range(frame.width)]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
    return "\n".join([f"[{kind}]", *(line.rstrip() for line in lines), ""])
