"""Every agent of the zoo keeps the retailers' contract, in any economy."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketeval.actions.supply_chain import Bid, Briefing, Offer, PublicStep
from marketeval.agents.registry import HEURISTICS, make_agent
from marketeval.core.errors import ScenarioError, UnknownNameError
from marketeval.core.market import Request
from marketeval.core.streams import Streams

ZOO = sorted(HEURISTICS)
N = 3


@st.composite
def briefings(draw):
    """Anything a retailer may be told."""
    items = draw(st.integers(1, 4))
    whole = lambda high, low=0: np.array(  # noqa: E731
        draw(st.lists(st.integers(low, high), min_size=items, max_size=items)), np.int64
    )
    past = [
        PublicStep(
            step=step,
            price=np.array([whole(200) for _ in range(N)]),
            sold=np.array([whole(30) for _ in range(N)]),
            slogans=["Cheap!", "", "Green and fair."],
        )
        for step in range(draw(st.integers(0, 3)))
    ]
    stock = whole(40)
    return Briefing(
        stage="procurement", seat="s", me=1, retailers=N, step=len(past), steps=6, round=0,
        rounds=2, funds=draw(st.integers(-50, 10_000)), credit=0, overspent=False,
        items=[f"item{i}" for i in range(items)], quantity=whole(50), base_price=whole(99, 1),
        stock=stock, cost=stock * 7, max_markup=draw(st.sampled_from([None, 1.0, 3.0])),
        slogan_words=25, history=past, feedback=None, write=str,
    )  # fmt: skip


def ask(agent, decision, briefing):
    request = Request(
        seat="s", decision=decision, action=Bid if decision == "bid" else Offer,
        step=briefing.step, draws=Streams(1).of("s"), briefing=briefing,
    )  # fmt: skip

    try:
        agent.act(request).send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("waited")


@pytest.mark.parametrize("name", ZOO)
@settings(max_examples=30)
@given(briefing=briefings())
def test_bids_and_prices_are_legal(name, briefing):
    agent = make_agent(f"heuristic:{name}", seat="s")
    bid = ask(agent, "bid", briefing)
    assert bid.items is None
    quantity, price = np.asarray(bid.quantity), np.asarray(bid.price)
    assert quantity.dtype.kind == price.dtype.kind == "i"
    assert (quantity >= 0).all()
    assert (price[quantity > 0] >= briefing.base_price[quantity > 0]).all()
    assert (quantity * price).sum() <= max(briefing.funds, 0)
    offer = ask(agent, "offer", briefing)
    assert (np.asarray(offer.price) >= 0).all()
    assert not np.asarray(offer.price)[briefing.stock == 0].any()
    if briefing.max_markup is not None:
        assert (offer.price <= np.maximum(briefing.max_markup * briefing.base_price, 1)).all()
    assert len(offer.slogan.split()) <= 25


@pytest.mark.parametrize("name", ZOO)
@settings(max_examples=5)
@given(briefing=briefings())
def test_the_same_request_gets_the_same_answer(name, briefing):
    one, other = (make_agent(f"heuristic:{name}", seat="s") for _ in range(2))
    for decision, column in (("bid", "quantity"), ("offer", "price")):
        first, second = ask(one, decision, briefing), ask(other, decision, briefing)
        assert np.array_equal(getattr(first, column), getattr(second, column))


@pytest.mark.parametrize("name", ZOO)
def test_each_says_where_it_comes_from(name):
    module = importlib.import_module(HEURISTICS[name].__module__)
    assert len(module.__doc__) > 40
    assert HEURISTICS[name].__doc__
    assert make_agent(f"heuristic:{name}", seat="s").privileged == (name == "oracle")


def test_options_are_the_agents_fields():
    agent = make_agent("heuristic:markup", seat="s", options={"markup": 2, "slogan": "Hello"})
    assert (agent.markup, agent.slogan) == (2, "Hello")
    with pytest.raises(UnknownNameError, match="did you mean 'markup'"):
        make_agent("heuristic:markup", seat="s", options={"markupp": 2})
    with pytest.raises(ScenarioError, match="expected float"):
        make_agent("heuristic:markup", seat="s", options={"markup": "high"})
    with pytest.raises(UnknownNameError, match="known: gouger"):
        make_agent("heuristic:nobody", seat="s")
    with pytest.raises(UnknownNameError):
        make_agent("heuristic:oracle", seat="s", options={"privileged": False})
