"""What the rules accept and refuse: the reference's behaviour, and the strict preset's reasons."""

from __future__ import annotations

import math

import pytest
from two_sided_games import business, customer

from marketeval.actions.two_sided import (
    FetchMessages,
    OrderItem,
    OrderProposal,
    Payment,
    Register,
    Search,
    SendMessage,
    TextMessage,
    plain,
    profile_document,
    read,
    read_profile,
    schema,
)
from marketeval.markets.two_sided.rules import apply, decide, evolve
from marketeval.markets.two_sided.state import Found, Mail, Refused, Sent, State
from marketeval.markets.two_sided.switches import COMPATIBLE, STRICT, rules_from
from marketeval.markets.two_sided.wire import result_document

C, D, B, A = "customer_1", "customer_2", "business_1", "business_2"


def floor(rules=STRICT, **switches):
    """Two customers and two businesses, registered."""
    state = State(rules=rules.model_copy(update=switches))
    for one in (business(B), business(A), customer(C), customer(D)):
        apply(state, one.id, Register(one))
    return state


def send(state, sender, recipient, message, *, caller=None):
    action = SendMessage(from_agent_id=sender, to_agent_id=recipient, message=message)
    return apply(state, caller or sender, action)[0]


def propose(id_="p1", item="Taco", quantity=1, price=10.0, total=None, **more):
    total = quantity * price if total is None else total
    line = OrderItem("Item-1", item, quantity, price)
    return OrderProposal(id=id_, items=(line,), total_price=total, **more)


def pay(id_="p1"):
    return Payment(proposal_message_id=id_)


def reason(result):
    return result.reason if isinstance(result, Refused) else "accepted"


# ---- what the compatible preset accepts (section 4), and what strict says to it


def _paid_twice(state):
    send(state, B, C, propose())
    send(state, C, B, pay())
    return send(state, C, B, pay())


def _stranger_pays(state):
    send(state, B, C, propose())
    return send(state, D, B, pay())


def _expired(state):
    send(state, B, C, propose(expiry_time="2025-01-01T00:00:03Z"))
    state.now = 4
    return send(state, C, B, pay())


def _reused(state):
    send(state, B, C, propose())
    return send(state, B, C, propose(price=9.0))


ABUSES = {
    "paid_before": _paid_twice,
    "not_the_addressee": _stranger_pays,
    "expired": _expired,
    "reused_id": _reused,
    "not_a_business": lambda state: send(state, C, B, propose()),
    "not_a_customer": lambda state: send(state, B, A, propose()),
    "spoofed_sender": lambda state: send(state, C, B, TextMessage("hi"), caller=D),
    "not_on_menu": lambda state: send(state, B, C, propose(item="Gold Bar")),
    "surcharge": lambda state: send(state, B, C, propose(price=10.01)),
    "below_floor": lambda state: send(state, B, C, propose(price=7.99)),
    "total_does_not_add_up": lambda state: send(state, B, C, propose(total=9.0)),
    "not_whole_cents": lambda state: send(state, B, C, propose(price=9.999, total=9.999)),
    "malformed": lambda state: send(state, B, C, propose(total=-50.0)),
    "already_expired": lambda state: send(state, B, C, propose(expiry_time="2024-12-31T00:00Z")),
    "too_long": lambda state: send(state, C, B, TextMessage("x" * 20_001)),
}


@pytest.mark.parametrize("name", ABUSES)
def test_the_compatible_preset_accepts_what_the_reference_accepts(name):
    assert reason(ABUSES[name](floor(COMPATIBLE))) == "accepted"


@pytest.mark.parametrize("name", ABUSES)
def test_the_strict_preset_refuses_each_abuse_with_its_reason(name):
    assert reason(ABUSES[name](floor())) == name


@pytest.mark.parametrize("rules", [STRICT, COMPATIBLE], ids=["strict", "compatible"])
def test_both_presets_refuse_an_unknown_recipient_and_an_unknown_proposal_with_the_same_texts(
    rules,
):
    state = floor(rules)
    gone = result_document(send(state, C, "nobody", TextMessage("hi")), C)
    assert gone["is_error"] is True
    assert gone["content"] == {"error": "to_agent_id nobody not found"}
    unknown = result_document(send(state, C, B, pay("zz")), C)
    assert unknown["is_error"] is True
    assert unknown["content"] == {
        "error_type": "invalid_proposal",
        "message": "No unexpired order proposals found with id zz",
    }


def test_a_payment_to_another_business_than_the_proposals_own_is_refused_by_both():
    for rules in (STRICT, COMPATIBLE):
        state = floor(rules)
        send(state, B, C, propose())
        assert reason(send(state, C, A, pay())) == "unknown_proposal"


def test_refused_sends_are_delivered_by_the_reference_and_not_by_strict():
    for rules, count in ((COMPATIBLE, 1), (STRICT, 0)):
        state = floor(rules)
        send(state, C, B, pay("zz"))
        mail, _ = apply(state, B, FetchMessages())
        assert len(mail.messages) == count


@pytest.mark.parametrize("price", [math.nan, math.inf, -1.0])
def test_a_price_that_is_no_price_is_refused_under_any_rules(price):
    for rules in (STRICT, COMPATIBLE):
        assert reason(send(floor(rules), B, C, propose(price=price, total=1.0))) == "malformed"


def test_an_honest_discount_is_accepted_and_booked():
    state = floor()
    assert isinstance(send(state, B, C, propose(price=8.0)), Sent)
    assert isinstance(send(state, C, B, pay()), Sent)
    assert (state.accounts.balance(C), state.accounts.balance(B)) == (-800, 800)
    assert state.accounts.check()


def test_the_rules_own_end_of_an_offer_counts_from_when_it_was_made():
    state = floor(offers_last=3)
    state.now = 10
    send(state, B, C, propose())
    state.now = 13
    assert reason(send(state, C, B, pay())) == "accepted"
    send(state, B, C, propose("p2", expiry_time="whenever you like"))
    state.now = 17
    assert reason(send(state, C, B, pay("p2"))) == "expired"


def test_a_stated_balance_bounds_what_can_be_paid():
    state = floor(opening_balance=1500)
    send(state, B, C, propose())
    send(state, B, C, propose("p2"))
    assert reason(send(state, C, B, pay())) == "accepted"
    assert reason(send(state, C, B, pay("p2"))) == "balance_too_low"
    assert state.accounts.balance(C) == 500


def test_stock_runs_out():
    state = floor(stock=3)
    send(state, B, C, propose(quantity=2))
    send(state, B, D, propose("p2", quantity=2))
    assert reason(send(state, C, B, pay())) == "accepted"
    assert reason(send(state, D, B, pay("p2"))) == "out_of_stock"
    assert state.stock[B, "Taco"] == 1


def test_an_agent_may_do_so_much_per_tick_and_answer_what_it_receives():
    state = floor(actions_per_tick=3)
    results = [reason(send(state, C, B, TextMessage(str(n)))) for n in range(4)]
    assert results == ["accepted"] * 3 + ["too_many_actions"]
    answers = [reason(send(state, B, C, TextMessage(str(n)))) for n in range(10)]
    assert answers == ["accepted"] * 9 + ["too_many_actions"]  # 3, and 2 for each of 3 received
    state.now += 1
    assert reason(send(state, C, B, TextMessage("again"))) == "accepted"


def test_nobody_acts_who_is_not_registered():
    state = floor()
    send_ = SendMessage(from_agent_id="ghost", to_agent_id=B, message=TextMessage("boo"))
    assert reason(apply(state, "ghost", send_)[0]) == "unknown_caller"


def test_deciding_changes_nothing_and_evolving_decides_nothing():
    state, twin = floor(), floor()
    action = SendMessage(from_agent_id=B, to_agent_id=C, message=propose())
    before = state.book()
    entry = decide(state, B, action)
    assert state.book() == before
    evolve(state, entry)
    apply(twin, B, action)
    assert state.book() == twin.book()


def test_the_journal_replayed_over_an_empty_state_gives_the_state_again():
    state, journal = State(rules=STRICT), []
    for one in (business(B), customer(C)):
        journal += apply(state, one.id, Register(one))[1]
    for sender, recipient, message in (
        (C, B, TextMessage("Taco?")), (B, C, propose()), (C, B, pay()), (C, B, pay()),
    ):  # fmt: skip
        action = SendMessage(from_agent_id=sender, to_agent_id=recipient, message=message)
        journal += apply(state, sender, action)[1]
    again = State(rules=STRICT)
    for entry in journal:
        evolve(again, entry)
    assert again.book() == state.book()
    assert (again.rows, again.spent) == (state.rows, state.spent)


# ---- facts 3 and 5 to 9 of the specification's section 18


def test_registering_again_replaces_the_profile_and_its_kind():
    state = floor()
    apply(state, C, Register(business(C, name="Now a shop")))
    found, _ = apply(state, D, Search(query="", search_algorithm="simple"))
    assert [one.id for one in found.businesses] == [B, A, C]
    assert state.profiles[C].name == "Now a shop"


def test_a_sent_message_is_echoed_with_its_defaults_and_the_status_sent():
    answer = result_document(send(floor(), C, B, TextMessage("hi")), C)
    assert answer == {
        "content": {
            "from_agent_id": C,
            "to_agent_id": B,
            "message": {"content": "hi", "type": "text"},
            "created_at": None,
            "metadata": {},
            "type": "send_message",
        },
        "is_error": False,
        "metadata": {"status": "sent"},
    }


def test_the_inbox_is_whole_oldest_first_and_numbered_over_all_actions_from_1():
    state = floor()
    send(state, C, B, TextMessage("one"))  # row 1
    apply(state, D, Search(query="", search_algorithm="simple"))  # row 2
    send(state, D, B, TextMessage("two"))  # row 3
    first, _ = apply(state, B, FetchMessages())  # row 4; reading takes nothing away
    again, _ = apply(state, B, FetchMessages())
    assert [one.index for one in first.messages] == [1, 3]
    assert first == again
    after, _ = apply(state, B, FetchMessages(after_index=1))
    assert [one.message.content for one in after.messages] == ["two"]
    by_sender, _ = apply(state, B, FetchMessages(from_agent_id=C))
    assert [one.sender for one in by_sender.messages] == [C]


@pytest.mark.parametrize(
    ("limit", "offset", "expected", "more"),
    [
        (None, None, [0, 1, 2, 3, 4], False),
        (2, None, [0, 1], True),  # the reference gives one fewer; this is what it documents
        (1, None, [0], True),
        (0, None, [], True),
        (5, None, [0, 1, 2, 3, 4], False),
        (2, 4, [4], False),
        (-1, None, [], True),
        (3, -7, [0, 1, 2], True),
    ],
)
def test_pages_of_mail_hold_exactly_what_was_asked_for(limit, offset, expected, more):
    state = floor()
    for number in range(5):
        send(state, C, B, TextMessage(str(number)))
    mail, _ = apply(state, B, FetchMessages(limit=limit, offset=offset))
    assert [int(one.message.content) for one in mail.messages] == expected
    assert mail.has_more is more


def test_fetched_mail_on_the_wire_has_the_clocks_time_and_the_index():
    state = floor()
    state.now = 7
    send(state, C, B, TextMessage("hi"))
    answer = result_document(apply(state, B, FetchMessages())[0], B)["content"]
    assert answer == {
        "messages": [
            {
                "from_agent_id": C,
                "to_agent_id": B,
                "created_at": "2025-01-01T00:00:07+00:00",
                "message": {"content": "hi", "type": "text"},
                "index": 1,
            }
        ],
        "has_more": False,
    }


def test_only_later_mail_comes_after_a_timestamp():
    state = floor()
    for tick in (0, 5):
        state.now = tick
        send(state, C, B, TextMessage(str(tick)))
    action = read(FetchMessages, {"type": "fetch_messages", "after": "2025-01-01T00:00:00Z"})
    mail, _ = apply(state, B, action)
    assert [one.message.content for one in mail.messages] == ["5"]


def test_a_search_answers_with_full_profiles_and_counts():
    found, _ = apply(floor(COMPATIBLE), C, Search(query="x", search_algorithm="simple", limit=1))
    answer = result_document(found, C)["content"]
    assert {key: answer[key] for key in answer if key != "businesses"} == {
        "search_algorithm": "simple",
        "total_possible_results": 2,
        "total_pages": 2,
    }
    (one,) = answer["businesses"]
    assert one["metadata"] == {"type": "business"}
    assert one["business"]["menu_features"] == {"Taco": 10.0, "Soup": 5.0}
    assert one["business"]["min_price_factor"] == 0.8


def test_strict_keeps_the_sellers_floor_to_itself():
    found, _ = apply(floor(), C, Search(query="x", search_algorithm="simple"))
    assert isinstance(found, Found)
    assert {one.min_price_factor for one in found.businesses} == {None}


def test_the_optimal_search_is_for_customers():
    result, _ = apply(floor(), B, Search(query="", search_algorithm="optimal"))
    assert reason(result) == "not_allowed_to_search"


# ---- fact 4, 7, 11, 12: the JSON forms


@pytest.mark.parametrize(
    "tree",
    [
        {"type": "text", "content": "hi"},
        {
            "type": "order_proposal",
            "id": "p1",
            "items": [{"id": "Item-1", "item_name": "Taco", "quantity": 2, "unit_price": 3.5}],
            "total_price": -7.0,
            "special_instructions": None,
            "estimated_delivery": "soon",
            "expiry_time": None,
        },
        {
            "type": "payment",
            "proposal_message_id": "p1",
            "payment_method": "cash",
            "delivery_address": None,
            "payment_message": None,
        },
    ],
)
def test_messages_read_and_write_the_protocols_json(tree):
    action = {
        "metadata": {}, "type": "send_message", "from_agent_id": C, "to_agent_id": B,
        "created_at": "2025-01-01T00:00:00Z", "message": tree,
    }  # fmt: skip
    assert plain(read(SendMessage, action)) == action


@pytest.mark.parametrize(
    "change",
    [
        {"items": []},
        {"id": ""},
        {"items": [{"id": "i", "item_name": "Taco", "quantity": 0, "unit_price": 1}]},
        {"items": [{"id": "i", "item_name": "Taco", "quantity": 1, "unit_price": -1}]},
        {"items": [{"id": "i", "item_name": "Taco", "quantity": 1, "unit_price": math.nan}]},
    ],
)
def test_item_minimums_are_those_of_the_protocol(change):
    line = {"id": "i", "item_name": "Taco", "quantity": 1, "unit_price": 1.0}
    tree = {"type": "order_proposal", "id": "p", "items": [line], "total_price": 1.0, **change}
    with pytest.raises(ValueError, match="validation error"):
        read(SendMessage, {"from_agent_id": C, "to_agent_id": B, "message": tree})


def test_missing_optional_fields_and_nulls_are_tolerated_and_times_need_a_zone():
    assert read(FetchMessages, {"type": "fetch_messages", "limit": None}) == FetchMessages()
    least = read(Search, {"type": "search", "query": "q", "search_algorithm": "rnr"})
    assert (least.limit, least.page, least.constraints) == (10, 1, None)
    with pytest.raises(ValueError, match="timezone"):
        read(FetchMessages, {"after": "2025-01-01T00:00:00"})


def test_profiles_travel_as_agent_documents():
    document = profile_document(business(B))
    assert set(document) == {"id", "metadata", "business"}
    assert read_profile(document) == business(B)
    assert read_profile(profile_document(customer(C))).id == C


def test_each_action_has_a_json_schema():
    for kind, name in ((SendMessage, "message"), (FetchMessages, "after_index"), (Search, "query")):
        assert name in schema(kind)["properties"]


def test_rules_are_named_by_a_preset_or_by_a_preset_and_what_differs():
    assert rules_from("compatible") is COMPATIBLE
    assert rules_from({"preset": "compatible", "stock": 2})["stock"] == 2
    with pytest.raises(
        LookupError, match="unknown preset of rules 'strickt'; did you mean 'strict'"
    ):
        rules_from("strickt")


def test_mail_is_only_ones_own():
    state = floor()
    send(state, C, B, TextMessage("hi"))
    mail, _ = apply(state, A, FetchMessages())
    assert mail == Mail((), False)


@pytest.mark.parametrize(
    "rules",
    [STRICT, COMPATIBLE, STRICT.model_copy(update={"stock": 3, "paid_once": False})],
)
def test_rules_are_written_as_a_preset_and_what_differs_and_read_back(rules):
    written = rules.model_dump()
    assert type(rules).model_validate(rules_from(written)) == rules
    assert len(written) == (3 if rules.stock else 1)
