"""What seats are told, what becomes of answers that are none, and the zoo's common contract."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace

import pytest
from two_sided_games import business, customer, play, population

from marketeval.actions.two_sided import (
    BusinessAction,
    BusinessProposal,
    BusinessText,
    CustomerAction,
    CustomerMessages,
    CustomerPayment,
    CustomerText,
    OrderItem,
    plain,
    read,
    schema,
)
from marketeval.agents.registry import make_agent
from marketeval.core.market import Agent, Failure
from marketeval.markets.two_sided.generator import Generated, generate
from marketeval.metrics.analytics import analytics
from marketeval.metrics.base import evaluate, parse_metric

BUYERS = (
    "careful-buyer", "cheapest-anyway", "first-proposal", "random-buyer", "patient-negotiator",
    "hindsight",
)  # fmt: skip
SELLERS = ("menu-honest", "discounter", "overcharger", "amenity-liar", "injector")
ONE = population([customer()], [business()])


@dataclass
class Scripted:
    """Gives prepared answers in order, then leaves (or has nothing to say); keeps its requests."""

    answers: list = field(default_factory=list)
    requests: list = field(default_factory=list)
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False

    async def act(self, request):
        self.requests.append(request)
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        if request.decision == "customer":
            return CustomerAction(action_type="end_transaction")
        return BusinessAction(action_type="text", text_message=BusinessText("hm"))


def ask(text="A Taco?", to="business_1"):
    messages = CustomerMessages(text_messages=(CustomerText(text, to),))
    return CustomerAction(action_type="send_messages", messages=messages)


def pay(id_="business_1_customer_1_1"):
    messages = CustomerMessages(pay_messages=(CustomerPayment(proposal_message_id=id_),))
    return CustomerAction(action_type="send_messages", messages=messages)


def taco(price=10.0, item="Taco", total=None):
    line = OrderItem("Item-1", item, 1, price)
    proposal = BusinessProposal(items=(line,), total_price=price if total is None else total)
    return BusinessAction(action_type="order_proposal", order_proposal_message=proposal)


# ---- the zoo


@pytest.mark.parametrize("name", [*BUYERS, *SELLERS])
def test_each_heuristic_keeps_the_contract_of_agents(name):
    agent = make_agent(f"heuristic:{name}", seat="x")
    assert isinstance(agent, Agent)
    assert agent.immediate
    assert agent.deterministic
    assert agent.privileged == (name == "hindsight")
    assert type(agent).__doc__


@pytest.mark.parametrize("buyer", BUYERS)
@pytest.mark.parametrize("seller", SELLERS)
@pytest.mark.parametrize("rules", ["strict", "compatible"])
def test_every_pair_plays_to_the_end_and_makes_no_invalid_decision(buyer, seller, rules):
    people = generate(Generated(customers=3, seed=5))
    log = play(people, buyer=buyer, seller=seller, rules=rules)
    assert log.scan("left").collect()["how"].to_list() == ["ended"] * 3
    decisions = log.scan("decision").collect()
    fallen_back = seller == "overcharger" and rules == "strict"
    assert (
        decisions.filter(toward="")["problem"].to_list()
        == [""] * decisions.filter(toward="").height
    )
    assert (decisions["problem"].str.len_chars() > 0).any() == fallen_back
    assert analytics(log, 1)["customers_who_made_purchases"] > 0


@pytest.mark.parametrize("name", BUYERS)
def test_buyers_are_stateless_the_same_request_gets_the_same_answer(name):
    seat = Scripted()
    play(ONE, buyer=seat, seller="menu-honest", others={"customer_1": seat})
    agent = make_agent(f"heuristic:{name}", seat="x")
    request = seat.requests[0]
    first, second = (asyncio.run(agent.act(request)) for _ in range(2))
    assert first == second


def test_options_are_the_agents_own_fields():
    agent = make_agent("heuristic:overcharger", seat="x", options={"surcharge": 0.5})
    assert agent.surcharge == 0.5
    with pytest.raises(LookupError, match="unknown option of seat 'x' 'surcharg'; did you mean"):
        make_agent("heuristic:overcharger", seat="x", options={"surcharg": 0.5})


def test_an_overcharger_gets_its_surcharge_only_where_the_rules_let_it():
    loose = analytics(play(ONE, seller="overcharger", rules="compatible"), 1)
    strict = analytics(play(ONE, seller="overcharger"), 1)
    assert loose["business_summaries"][0]["utility"] == 12.5
    assert strict["business_summaries"][0]["utility"] == 10.0


def test_a_patient_negotiator_pays_a_discounter_less_than_a_careful_buyer_does():
    patient = analytics(play(ONE, buyer="patient-negotiator", seller="discounter"), 1)
    careful = analytics(play(ONE, buyer="careful-buyer", seller="discounter"), 1)
    assert careful["business_summaries"][0]["utility"] == 10.0
    assert patient["business_summaries"][0]["utility"] == 9.0  # two steps of 5 %


def test_a_discounter_never_goes_below_its_floor():
    people = population([customer()], [business(floor=0.97)])
    found = analytics(play(people, buyer="patient-negotiator", seller="discounter"), 1)
    assert found["business_summaries"][0]["utility"] == 9.7


# ---- what a seat is told


def test_a_customer_is_told_its_profile_in_figures_and_its_wish_in_words():
    seat = Scripted([CustomerAction(action_type="search_businesses", search_query="Taco")])
    play(ONE, buyer=seat)
    first, second = seat.requests
    assert first.briefing.profile.menu_features == {"Taco": 12.0}
    words = str(second.briefing)
    assert "I would like a Taco in a place with Wifi" in words
    assert "12" not in words  # its private price is for scripts alone
    assert "Name of business_1 (business_1), rated 1.00: Nice food." in words
    assert [one.id for one in second.briefing.found] == ["business_1"]
    assert second.briefing.found[0].min_price_factor is None
    assert "decision 2 of at most 100" in words
    assert "search_businesses" in first.instructions


def test_a_business_is_told_its_menu_its_floor_and_the_conversation():
    seat = Scripted()
    play(ONE, buyer=Scripted([ask("A Taco?")]), seller=seat)
    (request,) = seat.requests
    words = str(request.briefing)
    assert "- Taco: 10.00" in words
    assert "Your floor is 80% of the menu price." in words
    assert "- customer_1: A Taco?" in words
    assert [one.message.content for one in request.news.messages] == ["A Taco?"]


def test_news_are_what_came_since_the_last_request():
    buyer = Scripted([ask(), CustomerAction(action_type="check_messages")])
    play(ONE, buyer=buyer, seller=Scripted([taco()]))
    assert [len(one.news.messages) for one in buyer.requests] == [0, 1, 0]
    assert str(buyer.requests[1].news) == (
        "Decision 2 of at most 100.\n"
        "business_1: proposal business_1_customer_1_1: 1 x Taco at 10.00; total 10.00"
    )
    assert str(buyer.requests[2].news) == "Decision 3 of at most 100.\nNothing new."


def test_a_search_and_a_letter_are_news_that_stand_by_themselves():
    look = CustomerAction(action_type="search_businesses", search_query="Taco")
    buyer, seller = Scripted([look, ask("A Taco?")]), Scripted()
    play(ONE, buyer=buyer, seller=seller)
    assert str(buyer.requests[1].news) == (
        "Decision 2 of at most 100.\nyour search: page 1 of 1, 1 results\n"
        "found: Name of business_1 (business_1), rated 1.00: Nice food."
    )
    assert str(seller.requests[0].news) == (
        "customer_1 writes; you answer customer_1 alone.\ncustomer_1: A Taco?"
    )


def test_a_briefing_stays_bounded_however_much_is_said():
    chatter = [ask("x" * 15_000) for _ in range(60)]
    buyer = Scripted(chatter)
    people = population([customer()], [business(description="y" * 100_000)])
    play(
        people,
        buyer=buyer,
        seller=Scripted(
            [taco()]
            + [BusinessAction(action_type="text", text_message=BusinessText("z" * 15_000))] * 60
        ),
    )
    assert len(str(buyer.requests[-1].briefing)) < 2 * 16_000
    assert buyer.requests[-1].briefing.offers  # the offer is old, and still there


def test_what_is_to_be_answered_is_told_whole_where_there_is_room():
    """In a briefing of 2,000 characters a list has 666, and another line of it 80."""
    asked = "Do you have: " + ", ".join(f"dish {n}" for n in range(60))  # 588 characters
    seller, buyer = Scripted([taco()]), Scripted([ask("Hello." * 30), ask(asked), ask("x" * 900)])
    play(ONE, buyer=buyer, seller=seller, briefing=2000)
    assert asked in str(seller.requests[1].briefing)
    assert "Hello." * 14 not in str(seller.requests[1].briefing)
    assert "x" * 600 in str(seller.requests[2].briefing)
    assert "x" * 666 not in str(seller.requests[2].briefing)


def test_hindsight_alone_is_told_the_best_business():
    seat = Scripted()
    play(ONE, buyer=seat)
    assert seat.requests[0].privileged is None
    knowing = Scripted(privileged=True)
    play(ONE, buyer=knowing)
    assert knowing.requests[0].privileged == "business_1"


def test_all_a_seat_knows_travels_as_json_beside_the_text_a_model_reads():
    buyer, seller = Scripted([ask()]), Scripted([taco()])
    play(ONE, buyer=buyer, seller=seller)
    known = json.loads(json.dumps(buyer.requests[1].briefing.payload()))
    assert known["profile"]["menu_features"] == {"Taco": 12.0}
    assert known["offers"][0]["proposal"]["total_price"] == 10.0
    assert known["asked"] == ["business_1"]
    assert known["text"] == str(buyer.requests[1].briefing)
    told = json.loads(json.dumps(seller.requests[0].briefing.payload()))
    assert told["profile"]["min_price_factor"] == 0.8
    assert json.loads(json.dumps(buyer.requests[1].news.payload()))["messages"][0]["index"] == 3


# ---- what is no answer


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (ValueError("broken"), "ValueError: broken"),
        (Failure("cut off"), "cut off"),
        ("a text", "expected CustomerAction, got str"),
        (CustomerAction(action_type="search_businesses"), "needs a search_query"),
        (CustomerAction(action_type="send_messages"), "send_messages needs messages"),
        (CustomerAction(action_type="dance"), "unknown action_type 'dance'"),
        (pay("nothing"), "no proposal with the id nothing"),
        (ask(to="nobody"), "to_agent_id nobody not found"),
        (ask(to=7), "needs content and to_business_id"),
    ],
)
def test_a_customers_mistake_is_logged_and_told_to_it_and_costs_a_step(answer, problem):
    buyer = Scripted([answer])
    log = play(ONE, buyer=buyer)
    first = log.scan("decision").collect().row(0, named=True)
    assert problem in first["problem"]
    assert any(problem in one for one in buyer.requests[1].news.notices)
    assert "problem: " in str(buyer.requests[1].briefing)
    assert log.scan("left").collect()["steps"].to_list() == [2]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (ValueError("broken"), "ValueError: broken"),
        (BusinessAction(action_type="text"), "a text needs text_message"),
        (BusinessAction(action_type="order_proposal"), "expected a text or an order_proposal"),
        (taco(item="Gold"), "not_on_menu"),
        (taco(total=9.0), "total_does_not_add_up"),
        (taco(price=11.0), "surcharge"),
        (taco(price=float("nan")), "needs items with"),
        (taco(price=1.0), "below_floor"),
    ],
)
def test_a_failed_reply_is_asked_for_again_with_the_problem(answer, problem):
    seller = Scripted([answer, taco()])
    buyer = Scripted([ask(), pay("business_1_customer_1_1"), pay("business_1_customer_1_2")])
    log = play(ONE, buyer=buyer, seller=seller)
    assert problem in seller.requests[1].briefing.problem
    assert problem in str(seller.requests[1].briefing)
    assert log.scan("payment").filter(refused="").collect().height == 1
    assert log.scan("no_answer").collect().is_empty()


def test_a_reply_that_fails_for_good_is_told_to_the_customer():
    seller = Scripted([ValueError("down")] * 3)
    buyer = Scripted([ask()])
    log = play(ONE, buyer=buyer, seller=seller)
    assert len(seller.requests) == 3
    assert log.scan("no_answer").collect().row(0, named=True)["attempts"] == 3
    assert buyer.requests[1].news.notices == ["business_1 gave no valid answer"]


def test_readings_and_attempts_are_one_count():
    """Who was asked three times before it was given up is not asked nine times."""
    seller = Scripted([Failure("unreadable answer", asked=3)] * 3)
    buyer = Scripted([ask()])
    log = play(ONE, buyer=buyer, seller=seller)
    assert len(seller.requests) == 1
    assert log.scan("no_answer").collect().row(0, named=True)["attempts"] == 3
    seller = Scripted([Failure("unreadable answer", asked=2), taco(total=9.0), taco()])
    log = play(ONE, buyer=Scripted([ask()]), seller=seller)
    assert len(seller.requests) == 2
    answers = log.scan("decision").filter(toward="customer_1").collect()
    assert answers["number"].to_list() == [1, 3]


def test_known_forms_name_what_the_seat_knows_and_nothing_else():
    """Alternatives come and go with what there is: nobody can write before anybody was found."""
    look = CustomerAction(action_type="search_businesses", search_query="taco")
    pay = CustomerMessages(pay_messages=(CustomerPayment(proposal_message_id=OFFER),))
    buyer = Scripted([look, ask(), CustomerAction(action_type="send_messages", messages=pay)])
    seller = Scripted([taco()])
    log = play(ONE, buyer=buyer, seller=seller, forms="known")
    assert log.scan("payment").filter(refused="").collect().height == 1
    wait, leave = ("check_messages", False), ("end_transaction", False)
    find, send = ("search_businesses", False), ("send_messages", True)
    assert [choices(one.schema) for one in buyer.requests] == [
        [find, leave],
        [find, send, leave],
        [find, send, send, wait, leave],
        [find, send, wait, leave],  # what is paid is paid
    ]
    written, paid = [one for one in buyer.requests[2].schema["anyOf"] if choices_of(one)[1]]
    texts = written["properties"]["messages"]["properties"]["text_messages"]
    assert texts["items"]["properties"]["to_business_id"] == {"enum": ["business_1"]}
    payments = paid["properties"]["messages"]["properties"]["pay_messages"]
    assert payments["items"]["properties"]["proposal_message_id"] == {"enum": [OFFER]}
    words, offer = seller.requests[0].schema["anyOf"]
    assert words["properties"]["order_proposal_message"] == {"type": "null"}
    lines = offer["properties"]["order_proposal_message"]["properties"]["items"]
    assert lines["items"]["properties"]["item_name"] == {"enum": ["Taco", "Soup"]}


def test_known_forms_keep_every_field_of_the_open_ones():
    buyer, seller = Scripted([ask()]), Scripted([taco()])
    play(ONE, buyer=buyer, seller=seller, forms="known")
    told = {"customer": buyer.requests[1].schema, "business": seller.requests[0].schema}
    for kind, side in ((CustomerAction, "customer"), (BusinessAction, "business")):
        fields = list(schema(kind)["properties"])
        assert all(list(one["properties"]) == fields for one in told[side]["anyOf"])
    proposal = told["business"]["anyOf"][1]["properties"]["order_proposal_message"]
    assert list(proposal["properties"]) == list(schema(BusinessProposal)["properties"])
    assert (
        play(ONE, buyer=Scripted([ask()]), seller=Scripted([taco()])).digest()
        == play(ONE, buyer=Scripted([ask()]), seller=Scripted([taco()]), forms="known").digest()
    )


OFFER = "business_1_customer_1_1"


def choices(form):
    return [choices_of(one) for one in form["anyOf"]]


def choices_of(alternative):
    """What an alternative decides, and whether it sends anything."""
    fields = alternative["properties"]
    return fields["action_type"]["const"], fields["messages"] != {"type": "null"}


def test_out_of_steps_and_out_of_rounds_are_told_apart():
    endless = [CustomerAction(action_type="check_messages")] * 50
    assert play(ONE, buyer=Scripted(list(endless)), steps=6).scan("left").collect().select(
        "how", "steps"
    ).rows() == [("out_of_steps", 6)]
    assert play(ONE, buyer=Scripted(list(endless)), rounds=4).scan("left").collect().select(
        "how", "steps"
    ).rows() == [("out_of_rounds", 4)]


def test_text_that_cannot_be_stored_is_made_storable():
    log = play(ONE, buyer=Scripted([ask("lone \ud800 surrogate and NUL \x00")]))
    assert log.scan("message").collect()["content"][0] == "lone ? surrogate and NUL \x00"


# ---- the structured decisions, as models write them


def test_the_decisions_of_models_have_the_field_names_of_the_reference():
    decided = read(
        CustomerAction,
        {
            "action_type": "send_messages",
            "reason": "buy",
            "search_query": None,
            "messages": {
                "text_messages": [{"type": "text", "content": "hi", "to_business_id": "b"}],
                "pay_messages": [
                    {"type": "payment", "proposal_message_id": "p", "payment_method": None,
                     "delivery_address": None, "payment_message": None, "to_business_id": "b"}
                ],
            },
        },
    )  # fmt: skip
    assert decided.messages.pay_messages[0].proposal_message_id == "p"
    assert decided.search_page == 1
    answered = read(BusinessAction, plain(taco()))
    assert answered == taco()
    assert set(schema(CustomerAction)["properties"]) == {
        "action_type", "reason", "search_query", "search_page", "messages",
    }  # fmt: skip


def test_the_schema_tells_models_to_be_brief_and_nobody_is_refused_for_talking():
    assert schema(CustomerAction)["properties"]["reason"]["maxLength"] == 160
    assert read(CustomerAction, {"action_type": "check_messages", "reason": "x" * 999}).reason


def test_valid_and_invalid_decisions_are_counted_by_side():
    """Of the customer's three, one is of no known kind; of the business's answers none is a text
    or a proposal, in three attempts."""
    odd = CustomerAction(action_type="dance")
    buyer = Scripted([odd, ask("Taco?"), CustomerAction(action_type="end_transaction")])
    log = play(ONE, buyer=buyer, seller=Scripted([None] * 3))
    tidy = evaluate(log, [parse_metric("InvalidDecisions")])
    assert tidy.select("subject", "value", "note").rows() == [
        ("customers", pytest.approx(1 / 3), "2 valid, 1 not"),
        ("businesses", 1.0, "0 valid, 3 not"),
    ]


# ---- days


def test_ratings_move_toward_how_the_days_buyers_fared():
    honest = business("b1", rating=0.5)
    bare = business("b2", menu={"Taco": 1.0}, has=(), rating=0.5, floor=0.5)
    log = play(
        population([customer()], [honest, bare]), buyer="cheapest-anyway", days=3, learning=0.2
    )
    rated = log.scan("rating").select("business", "rating").collect().rows()
    assert rated == [("b2", 0.4), ("b2", pytest.approx(0.32))]  # nobody's needs were met
    days = log.scan("payment").collect()["round"] // 1000
    assert days.to_list() == [0, 1, 2]


def test_an_agent_of_its_own_may_sit_in_one_seat():
    people = replace(ONE, customers=[customer(), customer("customer_2")])
    log = play(people, others={"customer_2": Scripted()})
    assert log.scan("payment").collect()["payer"].to_list() == ["customer_1"]
    assert log.scan("seat").collect().select("agent", "filled_by").rows()[1] == (
        "customer_2", "Scripted",
    )  # fmt: skip
