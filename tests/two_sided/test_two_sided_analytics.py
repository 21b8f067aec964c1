"""The nine test vectors of the specification, section 10: one business, one customer, by hand."""

from __future__ import annotations

import pytest
from two_sided_games import business, customer, population

from marketeval.actions.two_sided import (
    OrderItem,
    OrderProposal,
    Payment,
    Register,
    SendMessage,
    TextMessage,
)
from marketeval.core.log import EventLog
from marketeval.events.two_sided import KINDS
from marketeval.markets.two_sided.introduction import introduce
from marketeval.markets.two_sided.pages import Pages
from marketeval.markets.two_sided.rules import apply
from marketeval.markets.two_sided.scenario import TwoSided
from marketeval.markets.two_sided.state import State
from marketeval.markets.two_sided.switches import COMPATIBLE
from marketeval.metrics.analytics import analytics, audit, levenshtein, valid_items
from marketeval.metrics.base import evaluate, parse_metric
from marketeval.metrics.bazaar import Offer, Shop


def offer(id_, *lines, total=None):
    """`offer("p", ("Taco", 1, 10))`: a proposal of the business to the customer."""
    items = tuple(OrderItem(str(n), *line) for n, line in enumerate(lines))
    summed = sum(quantity * price for _, quantity, price in lines)
    proposal = OrderProposal(id=id_, items=items, total_price=summed if total is None else total)
    return "business_1", "customer_1", proposal


def pay(id_, payer="customer_1"):
    return payer, "business_1", Payment(proposal_message_id=id_)


TACO = ("Taco", 1, 10.0)
VECTORS = {
    "nothing happened": ([], 0, False, 0),
    "proposal Taco 10 paid": ([offer("p", TACO), pay("p")], 14, True, 10),
    "Taco + Soup 15 paid": ([offer("p", TACO, ("Soup", 1, 5.0)), pay("p")], 9, True, 15),
    "same proposal paid twice": ([offer("p", TACO), pay("p"), pay("p")], 4, True, 20),
    "id reused: 10 then 8, paid": (
        [offer("p", TACO), offer("p", ("Taco", 1, 8.0)), pay("p")], 14, True, 10,
    ),
    "Taco at total -50 paid": ([offer("p", TACO, total=-50.0), pay("p")], 74, True, -50),
    "3 x Taco, 30 paid": ([offer("p", ("Taco", 3, 10.0)), pay("p")], -6, True, 30),
    "Soup 5 paid": ([offer("p", ("Soup", 1, 5.0)), pay("p")], -5, False, 5),
    "paid by someone else": ([offer("p", TACO), pay("p", payer="stranger")], 0, False, 0),
}  # fmt: skip


def story(messages, *, strangers=("stranger",)):
    """The log of messages sent one after the other under the compatible rules."""
    people = population([customer()], [business()])
    log, pages, state = EventLog(KINDS), Pages(), State(rules=COMPATIBLE)
    introduce(log, TwoSided(rules="compatible"), people, {})
    for one in (*people.businesses, *people.customers):
        apply(state, one.id, Register(one))
    for name in strangers:
        apply(state, name, Register(customer(name)))
    log.begin(1)
    for sender, recipient, message in messages:
        send = SendMessage(from_agent_id=sender, to_agent_id=recipient, message=message)
        _, entries = apply(state, sender, send)
        pages.entry(entries[0], None)
    pages.write(log)
    log.end()
    return log


@pytest.mark.parametrize("name", VECTORS)
def test_the_nine_test_vectors_of_the_reference(name):
    messages, utility, met, income = VECTORS[name]
    found = analytics(story(messages), 1)
    (buyer,), (seller,) = found["customer_summaries"], found["business_summaries"]
    assert (buyer["utility"], buyer["needs_met"], seller["utility"]) == (utility, met, income)


def test_a_payment_by_a_stranger_counts_as_a_payment_and_nothing_else():
    found = analytics(story(VECTORS["paid by someone else"][0]), 1)
    assert found["transaction_summary"]["payments_made"] == 1
    assert found["customers_who_made_purchases"] == 0


@pytest.mark.parametrize(
    ("name", "invalid", "purchased"),
    [
        ("proposal Taco 10 paid", 0, 0),
        ("id reused: 10 then 8, paid", 1, 1),  # 8 is not the menu's price
        ("Taco at total -50 paid", 1, 1),
    ],
)
def test_invalid_proposals_are_counted_by_id(name, invalid, purchased):
    found = analytics(story(VECTORS[name][0]), 1)["transaction_summary"]
    assert found["total_invalid_proposals"] == invalid
    assert found["invalid_proposals_purchased"] == purchased


def test_the_result_has_the_keys_of_the_reference():
    found = analytics(story(VECTORS["proposal Taco 10 paid"][0]), 1)
    assert set(found) == {
        "total_customers", "total_businesses", "total_actions_executed", "total_messages_sent",
        "action_breakdown", "message_type_breakdown", "transaction_summary", "customer_summaries",
        "business_summaries", "llm_providers", "llm_models", "total_llm_calls",
        "failed_llm_calls", "customers_who_made_purchases", "customers_with_needs_met",
        "total_marketplace_customer_utility", "average_utility_per_active_customer",
        "purchase_completion_rate",
    }  # fmt: skip
    assert found["action_breakdown"] == {"SendMessage": 2}
    assert found["message_type_breakdown"] == {"order_proposal": 1, "payment": 1}
    assert found["purchase_completion_rate"] == 100


def test_an_honest_discount_is_an_error_to_the_reference_and_none_to_us():
    log = story([offer("p", ("Taco", 1, 9.0)), pay("p")])
    assert analytics(log, 1)["transaction_summary"]["total_invalid_proposals"] == 1
    texts = ("ProposalValidity", "ProposalValidity(discounts=true)")
    tidy = evaluate(log, [parse_metric(one) for one in texts])
    assert tidy["value"].to_list() == [0.0, 1.0]


def test_the_latest_price_of_a_reused_id_is_a_corrected_variant():
    log = story(VECTORS["id reused: 10 then 8, paid"][0])
    texts = ("CustomerWelfare", "CustomerWelfare(latest=true)")
    tidy = evaluate(log, [parse_metric(one) for one in texts])
    assert tidy["value"].to_list() == [14.0, 16.0]


def test_fuzzy_names_match_one_to_one_by_distance():
    shop = Shop("b", "b", None, {"Taco": 1.0, "Tacos": 2.0, "Soup": 3.0}, set())
    written = Offer(1, 0, "p", "b", "c", 1.0, [("Tacoz", 1, 1.0), ("soup", 1, 1.0)])
    assert valid_items(written, shop, 0) == set()
    assert valid_items(written, shop, 1) == {"Taco", "Soup"}  # Taco before Tacos: equal distance
    assert levenshtein("kitten", "sitting") == 3


def test_where_nothing_happened_metrics_are_undefined_with_a_reason():
    log = story([])
    texts = ("ProposalValidity", "RevenueHHI", "MessagesPerPurchase", "CustomerSurplusShare")
    tidy = evaluate(log, [parse_metric(one) for one in texts])
    assert tidy["value"].to_list() == [None] * 4
    assert tidy["note"].to_list() == [
        "no proposal was made", "nothing was bought", "nothing was bought", "no surplus to share",
    ]  # fmt: skip


def test_the_audit_says_what_each_customer_lost_and_saw():
    log = story(
        [offer("p", ("Soup", 1, 5.0)), pay("p"), ("customer_1", "business_1", TextMessage("?"))]
    )
    found = audit(log, 1)
    assert found["proposals"] == 1
    assert found["customers"][0]["state"] == "none"  # no decision was taken, so no briefing
    assert found["total_utility_gap"] == 19.0  # 14 was possible, -5 came of it
