"""Two customers and two businesses, every number by pencil.

Ann wants a Taco (12.00 to her) and Wifi; Bob wants Soup (5.00) and Cake (4.00) and a Bar.

                Taco    Soup    Cake    Wifi  Bar   floor
    inn, 0.8   10.00    4.50    3.50    yes   no     0.90
    pub, 0.9    9.00    5.50    3.00    no    yes    0.80

Lexical search, Ann's words " taco and wifi please ": the inn shares the 4-grams " tac", "taco" and
"aco " (3), the pub those and " and", "and " of "Soup and cake" (5): the pub comes first. Both sell
as discounters; Ann is a careful buyer, Bob a patient negotiator. Everyone starts with 20.00.

Round 0   both search.
Round 1   both ask both. The inn offers Ann 10.00 and Bob 4.50 + 3.50 = 8.00; the pub offers Ann
          9.00 and Bob 5.50 + 3.00 = 8.50.
Round 2   The pub has no Wifi, so Ann pays the inn 10.00. The inn has no Bar, so Bob asks the pub
          again: 95 % of 5.50 is 5.225, which rounds to even 5.22, and 95 % of 3.00 is 2.85: 8.07.
Round 3   Ann leaves. Bob asks once more: 90 % is 4.95 + 2.70 = 7.65.
Round 4   Bob has asked twice and pays 7.65.
Round 5   Bob leaves.
"""

from __future__ import annotations

import pytest
from two_sided_games import Business, Customer, play, population

from marketeval.core.log import EventLog
from marketeval.metrics.analytics import analytics, audit
from marketeval.metrics.base import evaluate, parse_metric


def someone(id_, request, wants, *needs):
    return Customer(
        id=id_, name=id_.title(), request=request, menu_features=wants, amenity_features=needs
    )


def shop(id_, text, rating, menu, amenities, floor):
    return Business(
        id=id_, name=id_.title(), description=text, rating=rating, menu_features=menu,
        amenity_features=amenities, min_price_factor=floor,
    )  # fmt: skip


ANN = someone("ann", "Taco and Wifi please", {"Taco": 12.0}, "Wifi")
BOB = someone("bob", "Soup and Cake please", {"Soup": 5.0, "Cake": 4.0}, "Bar")
INN = shop(
    "inn", "Good food.", 0.8, {"Taco": 10.0, "Soup": 4.5, "Cake": 3.5},
    {"Wifi": True, "Bar": False}, 0.9,
)  # fmt: skip
PUB = shop(
    "pub", "Soup and cake.", 0.9, {"Soup": 5.5, "Cake": 3.0, "Taco": 9.0},
    {"Wifi": False, "Bar": True}, 0.8,
)  # fmt: skip


@pytest.fixture(scope="module")
def log() -> EventLog:
    return play(
        population([ANN, BOB], [INN, PUB]),
        seller="discounter",
        others={"bob": "patient-negotiator"},
        search="lexical",
        rules={"opening_balance": 2000},
    )


def rows(log, kind, *columns):
    return log.scan(kind).select(columns).collect().rows()


def test_the_search_shows_the_pub_first(log):
    assert rows(log, "shown", "row", "place", "business") == [
        (1, 0, "pub"), (1, 1, "inn"), (2, 0, "pub"), (2, 1, "inn"),
    ]  # fmt: skip


def test_the_offers_are_those_of_the_story(log):
    assert rows(log, "proposal", "round", "id", "total", "expires", "refused") == [
        (1, "inn_ann_1", 10.00, 21, ""),
        (1, "inn_bob_1", 8.00, 21, ""),
        (1, "pub_ann_1", 9.00, 21, ""),
        (1, "pub_bob_1", 8.50, 21, ""),
        (2, "pub_bob_2", 8.07, 22, ""),
        (3, "pub_bob_3", 7.65, 23, ""),
    ]


def test_every_decision_of_both_customers(log):
    assert [row for row in rows(log, "decision", "round", "agent", "kind", "reason") if row[3]] == [
        (0, "ann", "search_businesses", "look around"),
        (0, "bob", "search_businesses", "look around"),
        (1, "ann", "send_messages", "ask"),
        (1, "bob", "send_messages", "ask"),
        (2, "ann", "send_messages", "pay"),
        (2, "bob", "send_messages", "ask"),
        (3, "ann", "end_transaction", "paid"),
        (3, "bob", "send_messages", "ask"),
        (4, "bob", "send_messages", "pay"),
        (5, "bob", "end_transaction", "paid"),
    ]


def test_the_payments_move_whole_cents(log):
    assert rows(log, "payment", "round", "payer", "business", "proposal", "amount") == [
        (2, "ann", "inn", "inn_ann_1", 1000),
        (4, "bob", "pub", "pub_bob_3", 765),
    ]


def test_all_actions_share_one_numbering_without_gaps(log):
    numbers = sorted(
        row for kind in ("search", "fetch", "message") for (row,) in rows(log, kind, "row")
    )
    assert numbers == list(range(1, 31))  # 2 searches, 12 fetches, 16 messages


def test_the_analysis(log):
    found = analytics(log, 1)
    assert [one["utility"] for one in found["customer_summaries"]] == [14.00, 10.35]
    assert [one["utility"] for one in found["business_summaries"]] == [10.00, 7.65]
    assert found["message_type_breakdown"] == {"text": 8, "order_proposal": 6, "payment": 2}
    assert found["action_breakdown"] == {"SendMessage": 16, "FetchMessages": 12, "Search": 2}
    # the two lower offers to Bob are not at menu prices, and one of them was paid
    assert found["transaction_summary"]["total_invalid_proposals"] == 2
    assert found["transaction_summary"]["invalid_proposals_purchased"] == 1
    assert found["transaction_summary"]["average_proposal_value"] == pytest.approx(51.22 / 6)
    assert found["transaction_summary"]["average_paid_order_value"] == pytest.approx(8.825)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("PurchaseCompletion", 1.0),
        ("NeedsMet", 1.0),
        ("CustomerWelfare", 24.35),  # 24 - 10 and 18 - 7.65
        ("OptimalWelfare", 23.5),  # 24 - 10 and 18 - 8.50
        ("OptimalWelfare(at=floor)", 26.2),  # 24 - 9.00 and 18 - (4.40 + 2.40)
        ("WelfareOverOptimum", 1.0),
        ("WelfareOverOptimum(raw=true)", 24.35 / 23.5),
        ("WelfareOverOptimum(at=floor, raw=true)", 24.35 / 26.2),
        ("ProposalValidity", 4 / 6),
        ("ProposalValidity(discounts=true)", 1.0),
        ("EvaluationScore", (1 + 1 + 1 + 4 / 6) / 4),
        ("SellerRevenue", 17.65),
        ("SellerProfit", 1.85),  # 10 - 9 and 7.65 - 6.80
        ("CustomerSurplusShare", 24.35 / 26.2),
        ("RevenueHHI", (10**2 + 7.65**2) / 17.65**2),
        ("MessagesPerPurchase", 8.0),
        ("ProposalLatency", 0.0),
        ("ProposalsSeen", 1.0),
        ("Refusals", 0.0),
    ],
)
def test_the_metrics(log, text, value):
    tidy = evaluate(log, [parse_metric(text)])
    assert tidy["value"][0] == pytest.approx(value, abs=1e-12)
    assert tidy["metric"][0] == text


def test_which_arrival_and_which_place_was_paid(log):
    tidy = evaluate(log, [parse_metric("PaidByArrival"), parse_metric("PaidByPlace(places=2)")])
    # Ann paid the first of two proposals, Bob the fourth of four; the inn stood second
    assert tidy["value"].to_list() == [0.5, 0.0, 0.0, 0.5, 0.5]
    assert "equal share 0.375; 2 payments" in tidy["note"][0]


def test_the_audit(log):
    found = audit(log, 1)
    assert [one["state"] for one in found["customers"]] == ["all", "all"]
    assert found["suboptimal_customers"] == []  # Bob gained more than menu prices allow


def test_the_market_confirms_payments_in_the_businesss_name(log):
    texts = [row for row in rows(log, "message", "row", "sender", "content") if row[0] in (18, 29)]
    assert texts == [
        (18, "inn", "Thank you. Your payment of 10.00 for proposal inn_ann_1 is confirmed."),
        (29, "pub", "Thank you. Your payment of 7.65 for proposal pub_bob_3 is confirmed."),
    ]
