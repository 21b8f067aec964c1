"""Two users, two generators, a router, two retrievers, four steps: every number by pencil.

    generator  price  closed book  ceiling          retriever  price  cats  law
    alpha       0.20     0.2         1.0             xeno       0.03  0.90  0.10
    beta        0.10     0.4         0.8             yeti       0.02  0.25  0.75

Users start with 0.50 and weigh quality 1 and a dollar 1. Alpha serves one question a step; beta
pays 0.01 itself for each. The router takes 0.01. Alpha reaches retrievers through the router alone,
beta the router and, past it, yeti. All choose greedily by the mean of what they learned (at first
0), the first in the scenario where that is equal. They learn 2 q - 1 - price.

The answers, q = closed book + (ceiling - closed book) e, less the price:

    u        none    xeno: cats  law     yeti: cats  law
    alpha    0.00          0.72  0.08          0.20  0.60
    beta     0.30          0.66  0.34          0.40  0.60

Seed 1544 draws user 0 then user 1 in every step, with the questions below.

Step 0  law, cats   Both choose alpha, the first in the scenario. User 0 is served: alpha goes to
                    the router (0.01), the router to xeno (0.03): e = 0.1, q = 0.28, u = 0.08. User
                    1 is turned away: q = 0, u = 0, and nothing to pay. Signals: 2(0.28) - 1 - 0.2 =
                    -0.64 to user 0, alpha and the router; -1 to user 1. Alpha's mean is now -0.64
                    for user 0, -1 for user 1, xeno's -0.64 for the router.
Step 1  cats, law   Both choose beta (0 > -0.64). Beta takes the router before yeti (equal, first in
                    the scenario), the router yeti (0 > -0.64). q = 0.4 + 0.4 (0.25) = 0.5 and
                    0.4 + 0.4 (0.75) = 0.7; u = 0.4 and 0.6; signals -0.1 and 0.3. Beta's mean of
                    the router is 0.1, so it never tries yeti itself.
Step 2  cats, law   as step 1
Step 3  law, law    q = 0.7 and u = 0.6 for both.
"""

from __future__ import annotations

import pytest
from ecosystems import play, rows, value, values

from marketeval.core.log import EventLog

MARKET = {
    "horizon": 4,
    "per_step": 2,
    "pool": {"cats": 1, "law": 1},
    "ties": "configuration",
    "populations": {
        "users": {
            "role": "user",
            "count": 2,
            "budget": 0.5,
            "choose": {"parameter": 0},
            "utility": {"quality": 1, "cost": 1},
        },
        "generators": {
            "role": "generator",
            "choose": {"parameter": 0},
            "members": {
                "alpha": {"price": {"query": 0.2}, "closed_book": 0.2, "capacity": 1},
                "beta": {"price": {"query": 0.1}, "closed_book": 0.4, "ceiling": 0.8, "cost": 0.01},
            },
        },
        "router": {"role": "router", "fee": 0.01, "choose": {"parameter": 0}},
        "retrievers": {
            "role": "retriever",
            "members": {
                "xeno": {"evidence": {"cats": 0.9, "law": 0.1}, "price": {"query": 0.03}},
                "yeti": {"evidence": {"cats": 0.25, "law": 0.75}, "price": {"query": 0.02}},
            },
        },
    },
    "edges": [
        "users -> generators",
        "alpha -> router",
        "beta -> router",
        "beta -> yeti",
        "router -> retrievers",
    ],
}
ALPHA, BETA, ROUTER, XENO, YETI = range(5)
USER, CATS, LAW = -1, 0, 1


@pytest.fixture(scope="module")
def log() -> EventLog:
    return play(MARKET, seeds=[1544])


def test_the_users_ask_what_the_story_says(log):
    assert rows(log, "interaction", "step", "user", "topic", "agent", "status") == [
        (0, 0, LAW, ALPHA, "ok"),
        (0, 1, CATS, ALPHA, "outage"),
        (1, 0, CATS, BETA, "ok"),
        (1, 1, LAW, BETA, "ok"),
        (2, 0, CATS, BETA, "ok"),
        (2, 1, LAW, BETA, "ok"),
        (3, 0, LAW, BETA, "ok"),
        (3, 1, LAW, BETA, "ok"),
    ]


def test_quality_price_signal_and_utility_of_every_answer(log):
    found = rows(log, "interaction", "score", "cost_usd", "signal", "utility")
    assert found == [
        pytest.approx(one, abs=1e-12)
        for one in [
            (0.28, 0.2, -0.64, 0.08),
            (0.0, 0.0, -1.0, 0.0),
            (0.5, 0.1, -0.1, 0.4),
            (0.7, 0.1, 0.3, 0.6),
            (0.5, 0.1, -0.1, 0.4),
            (0.7, 0.1, 0.3, 0.6),
            (0.7, 0.1, 0.3, 0.6),
            (0.7, 0.1, 0.3, 0.6),
        ]
    ]


def test_the_choices_of_the_first_two_steps_in_topological_order(log):
    steps = rows(log, "choice", "step", "slot", "chooser", "agent", "depth")
    assert [row for row in steps if row[0] < 2] == [
        (0, 0, USER, ALPHA, 0),
        (0, 1, USER, ALPHA, 0),
        (0, 0, ALPHA, ROUTER, 1),
        (0, 0, ROUTER, XENO, 2),
        (1, 0, USER, BETA, 0),
        (1, 1, USER, BETA, 0),
        (1, 0, BETA, ROUTER, 1),
        (1, 1, BETA, ROUTER, 1),
        (1, 0, ROUTER, YETI, 2),
        (1, 1, ROUTER, YETI, 2),
    ]


def test_every_call_of_a_retriever(log):
    found = rows(log, "retrieval", "step", "caller", "router", "agent", "evidence", "micros")
    assert found == [
        (0, ALPHA, ROUTER, XENO, 0.1, 30_000),
        (1, BETA, ROUTER, YETI, 0.25, 20_000),
        (1, BETA, ROUTER, YETI, 0.75, 20_000),
        (2, BETA, ROUTER, YETI, 0.25, 20_000),
        (2, BETA, ROUTER, YETI, 0.75, 20_000),
        (3, BETA, ROUTER, YETI, 0.75, 20_000),
        (3, BETA, ROUTER, YETI, 0.75, 20_000),
    ]


def test_the_money_of_the_first_step(log):
    found = rows(log, "payment", "step", "payer", "payee", "micros", "purpose")
    assert [row[1:] for row in found if row[0] == 0] == [
        ("user 0", "alpha", 200_000, "answer"),
        ("alpha", "router", 10_000, "routing"),
        ("alpha", "xeno", 30_000, "retrieval"),
    ]


def test_what_is_left_in_every_account(log):
    assert rows(log, "balance", "account", "opening", "closing") == [
        ("user 0", 500_000, 0),  # 0.2 + 3 (0.1)
        ("user 1", 500_000, 200_000),  # 3 (0.1)
        ("alpha", 0, 160_000),  # 0.2 - 0.01 - 0.03
        ("beta", 0, 360_000),  # 6 (0.1 - 0.01 - 0.01 - 0.02)
        ("router", 0, 70_000),
        ("xeno", 0, 30_000),
        ("yeti", 0, 120_000),
        ("(bank)", -1_000_000, -940_000),  # beta's own costs, 6 (0.01)
    ]


def test_what_everybody_has_learned(log):
    found = {(a, b): worth for a, b, worth in rows(log, "preference", "chooser", "agent", "worth")}
    yeti = (2 * -0.1 + 4 * 0.3) / 6
    assert found == {
        ("users", ALPHA): pytest.approx((-0.64 - 1.0) / 2),
        ("users", BETA): pytest.approx(((-0.1 - 0.1 + 0.3) / 3 + 0.3) / 2),
        ("alpha", ROUTER): pytest.approx(-0.64),
        ("beta", ROUTER): pytest.approx(yeti),
        ("beta", YETI): 0.0,
        ("router", XENO): pytest.approx(-0.64),
        ("router", YETI): pytest.approx(yeti),
    }


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("LongitudinalUtility", 3.28 / 8),
        ("HHI", (2 / 8) ** 2 + (6 / 8) ** 2),
        ("In(retrievers, HHI)", (1 / 7) ** 2 + (6 / 7) ** 2),
        # beta and yeti for all: 3 cats (0.4) + 5 law (0.6)
        ("Regret", (4.2 - 3.28) / 8),
        # alpha and xeno for cats, yeti with either for law: 3 (0.72) + 5 (0.6)
        ("Regret(best=topic)", (5.16 - 3.28) / 8),
        ("Regret(best=item)", (5.16 - 3.28) / 8),
        # with the providers as they were, yeti: 0.6 + 0.2 for alpha's two, 2 (0.4) + 4 (0.6)
        ("Regret(of=retrieval)", (4.0 - 3.28) / 8),
        ("AllocationEfficiency", 3.28 / 5.16),
        ("CostPerUtility", 0.8 / 3.28),
    ],
)
def test_the_metrics_of_the_market(log, text, number):
    assert value(log, text) == pytest.approx(number, abs=1e-12)


def test_who_lost_the_utility(log):
    assert values(log, "LostUtility") == pytest.approx(
        {
            "generation": 0.0,  # alpha from perfect evidence is perfect
            "retrieval": 1 - 5.16 / 8,
            "choice": 2 * (0.72 - 0.66) / 8,  # two cats went to beta, not to alpha
            "routing": ((0.6 - 0.08) + 2 * (0.66 - 0.4)) / 8,  # xeno for law, yeti for cats
            "congestion": 0.72 / 8,  # alpha would have given 0.72 to whom it turned away
        },
        abs=1e-12,
    )


def test_what_the_retrievers_add(log):
    # v() = 6 (0.3) / 8, v(x) = (0.08 + 0.72 + 2 (0.66) + 4 (0.34)) / 8, v(y) = (0.6 + 0.2 +
    # 2 (0.4) + 4 (0.6)) / 8; with both, alpha goes to xeno and beta to yeti, as they did
    none, x, y, both = 0.225, 0.435, 0.5, 0.5
    assert values(log, "MarginalContribution") == pytest.approx(
        {"xeno": both - y, "yeti": both - x}, abs=1e-12
    )
    assert values(log, "Contribution") == pytest.approx(
        {
            "xeno": ((x - none) + (both - y)) / 2,
            "yeti": ((y - none) + (both - x)) / 2,
            "(none)": none,
        },
        abs=1e-12,
    )


def test_who_earned_what_and_who_was_full(log):
    assert values(log, "NetIncome") == pytest.approx(
        {"alpha": 0.16, "beta": 0.36, "router": 0.07, "xeno": 0.03, "yeti": 0.12}
    )
    assert values(log, "Congestion") == {
        "alpha": 0.5, "beta": 0.0, "router": None, "xeno": 0.0, "yeti": 0.0,
    }  # fmt: skip
