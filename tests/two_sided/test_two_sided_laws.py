"""What holds in every two-sided market: over random populations and over random actions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from two_sided_games import business, customer, play, population

from marketeval.actions.two_sided import (
    FetchMessages,
    OrderItem,
    OrderProposal,
    Payment,
    Register,
    Search,
    SendMessage,
    TextMessage,
)
from marketeval.agents.registry import HEURISTICS
from marketeval.core.drive import replay
from marketeval.core.log import EventLog
from marketeval.events.two_sided import KINDS
from marketeval.markets.two_sided.family import build
from marketeval.markets.two_sided.generator import Generated, generate
from marketeval.markets.two_sided.rules import apply
from marketeval.markets.two_sided.scenario import TwoSided
from marketeval.markets.two_sided.state import Refused, Sent, State
from marketeval.markets.two_sided.switches import COMPATIBLE, STRICT
from marketeval.metrics.analytics import analytics
from marketeval.metrics.base import evaluate, parse_metric

BUYERS = (
    "careful-buyer", "cheapest-anyway", "first-proposal", "random-buyer", "patient-negotiator",
    "hindsight",
)  # fmt: skip
SELLERS = ("menu-honest", "discounter", "overcharger", "amenity-liar", "injector")
people = st.builds(
    generate,
    st.builds(
        Generated,
        customers=st.integers(1, 5),
        seed=st.integers(0, 1000),
        matches=st.integers(1, 3),
        rating=st.just((0.2, 1.0)),
    ),
)
games = st.fixed_dictionaries(
    {
        "buyer": st.sampled_from(BUYERS),
        "seller": st.sampled_from(SELLERS),
        "search": st.sampled_from(["simple", "lexical", "optimal", "bm25", "hybrid"]),
        "limit": st.integers(0, 6),
        "order": st.sampled_from(["as_ranked", "reversed", "shuffled", "rotated"]),
        "steps": st.integers(2, 12),
    }
)


def test_all_heuristics_of_this_family_are_here():
    assert {*BUYERS, *SELLERS} <= set(HEURISTICS)


@given(people, games)
def test_the_same_seed_gives_the_same_digest(people, game):
    assert play(people, **game).digest() == play(people, **game).digest()


@given(people, games)
def test_recorded_turns_replayed_give_the_same_digest(people, game):
    turns = []
    log = play(people, turns=turns, **game)
    spec = {key: value for key, value in game.items() if key not in ("buyer", "seller")}
    again = EventLog(KINDS)
    digest = replay(build(TwoSided(**spec), (), population=people), turns, seed=1, log=again)
    assert digest == log.digests[1]


@given(people, games)
def test_welfare_is_never_above_the_floor_price_optimum_under_strict_rules(people, game):
    log = play(people, **game)
    ratio = evaluate(log, [parse_metric("WelfareOverOptimum(at=floor, raw=true)")])["value"][0]
    assert ratio is None or ratio <= 1 + 1e-9


@given(people, games)
def test_what_customers_pay_is_what_businesses_get(people, game):
    log = play(people, rules={"opening_balance": 3000}, **game)
    paid = log.scan("payment").filter(refused="").collect()
    found = analytics(log, 1)
    income = sum(one["utility"] for one in found["business_summaries"])
    assert round(income * 100) == paid["amount"].sum()
    spent = dict.fromkeys(paid["payer"], 0)
    for payer, amount in paid.select("payer", "amount").rows():
        spent[payer] += amount
    assert all(amount <= 3000 for amount in spent.values())
    assert paid["proposal"].is_unique().all()  # nobody pays twice


@given(people, games, st.randoms(use_true_random=False))
def test_the_order_of_the_files_changes_only_what_ties_decide(people, game, random):
    """Different ratings and different scores: then the order of businesses means nothing."""
    businesses = [
        replace(one, rating=0.2 + 0.001 * place) for place, one in enumerate(people.businesses)
    ]
    mixed = list(businesses)
    random.shuffle(mixed)
    game = {**game, "search": "simple", "order": "as_ranked", "buyer": "careful-buyer"}
    one = play(replace(people, businesses=businesses), **game)
    other = play(replace(people, businesses=mixed), **game)

    def paid(log):
        rows = log.scan("payment").select("payer", "business", "amount").collect().rows()
        return sorted(rows)

    def equal_offers(log):
        """Whether a customer had two equally cheap offers, so that arrival decided."""
        totals = log.scan("proposal").select("recipient", "total").collect()
        return not totals.is_unique().all()

    if not equal_offers(one):
        assert paid(one) == paid(other)
    shown = [log.scan("shown").select("row", "place", "business").collect() for log in (one, other)]
    assert shown[0].filter(row=1).equals(shown[1].filter(row=1))


# ---- random actions, one by one

AGENTS = ("c1", "c2", "b1", "b2")
ids = st.sampled_from([*AGENTS, "nobody"])
names = st.sampled_from(["p1", "p2", "p3"])
prices = st.one_of(
    st.sampled_from([10.0, 8.0, 5.0, 0.0, -50.0, 12.34, float("nan"), float("inf"), 1e308]),
    st.floats(allow_nan=True, allow_infinity=True),
)
texts = st.one_of(st.just("hi"), st.text(max_size=8))
items = st.builds(
    OrderItem, texts, st.sampled_from(["Taco", "Soup", "Gold"]), st.integers(-1, 3), prices
)
honest = st.builds(
    lambda name, price: OrderProposal(
        id=name, items=(OrderItem("1", "Taco", 1, price),), total_price=price
    ),
    names,
    st.sampled_from([8.0, 9.0, 10.0]),
)
messages = st.one_of(
    st.builds(TextMessage, texts),
    honest,
    st.builds(
        OrderProposal,
        id=names,
        items=st.lists(items, max_size=2).map(tuple),
        total_price=prices,
        expiry_time=st.sampled_from([None, "3", "soon", "2024-01-01T00:00:00Z"]),
    ),
    st.builds(Payment, proposal_message_id=names),
)
sends = st.builds(SendMessage, from_agent_id=ids, to_agent_id=ids, message=messages)
moves = st.tuples(
    ids,
    st.one_of(
        sends,
        sends,
        st.builds(FetchMessages, limit=st.none() | st.integers(-2, 3)),
        st.builds(
            Search, query=texts, search_algorithm=st.sampled_from(["lexical", "optimal"]),
            page=st.integers(-1, 2), limit=st.integers(-1, 2),
        ),
    ),
    st.booleans(),  # whether the sender tells the truth about itself
    st.booleans(),  # whether the clock ticks
)  # fmt: skip


def market(rules):
    state = State(rules=rules)
    for one in (customer("c1"), customer("c2"), business("b1"), business("b2")):
        apply(state, one.id, Register(one))
    return state


@pytest.mark.parametrize(
    "rules",
    [STRICT, STRICT.model_copy(update={"opening_balance": 1500, "stock": 2}), COMPATIBLE],
    ids=["strict", "strict with balance and stock", "compatible"],
)
@settings(max_examples=120)
@given(story=st.lists(moves, max_size=25))
def test_whatever_agents_do_the_books_hold_and_a_refusal_changes_nothing(rules, story):
    state = market(rules)
    paid = []
    for caller, action, honest, ticks in story:
        state.now += ticks
        if honest and isinstance(action, SendMessage):
            action = replace(action, from_agent_id=caller)
        before = state.book()
        result, (entry,) = apply(state, caller, action)
        if isinstance(result, Refused) and not rules.refused_are_delivered:
            assert state.book() == before
        if isinstance(result, Sent) and isinstance(action.message, Payment):
            paid.append((action.to_agent_id, action.message.proposal_message_id))
        assert state.accounts.check()
        assert all(left >= 0 for left in state.stock.values())
        assert entry.row == state.rows
    if rules.paid_once:
        assert len(paid) == len(set(paid))
    if rules.opening_balance is not None:
        assert all(
            balance >= 0 for name, balance in state.accounts.balances.items() if name in AGENTS
        )


def test_nobody_buys_where_nobody_sells_what_is_wanted():
    people = population([customer(wants={"Gold": 5.0})], [business()])
    for buyer in BUYERS:
        log = play(people, buyer=buyer)
        assert log.scan("payment").collect().is_empty()
        assert log.scan("left").collect()["how"].to_list() == ["ended"]
