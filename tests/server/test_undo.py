"""What cannot be committed is undone: the state is as it was, whatever was done to it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketeval.actions import two_sided as act
from marketeval.apps.server.host import Host, Unavailable
from marketeval.markets.two_sided import rules
from marketeval.markets.two_sided.state import State
from marketeval.markets.two_sided.switches import COMPATIBLE, Rules
from marketeval.markets.two_sided.undo import remember
from marketeval.stores.memory import MemoryJournal

AGENTS = ("customer_1", "customer_2", "business_1", "business_2")
RULES = (Rules(opening_balance=1500, stock=2, actions_per_tick=4), COMPATIBLE)


def profile(name: str, price: float = 10.0) -> act.Profile:
    if name.startswith("customer"):
        return act.Customer(id=name, name=name, request="r", menu_features={"Taco": 12.0})
    return act.Business(
        id=name, name=name, description="d", rating=1.0, menu_features={"Taco": price},
        amenity_features={}, min_price_factor=0.5,
    )  # fmt: skip


def document(name: str) -> dict:
    return act.profile_document(profile(name))


def item(price: float) -> act.OrderItem:
    return act.OrderItem("1", "Taco", 1, price)


agents = st.sampled_from(AGENTS)
messages = st.one_of(
    st.builds(act.TextMessage, st.sampled_from(["a", "b"])),
    st.builds(
        lambda name, price: act.OrderProposal(id=name, items=(item(price),), total_price=price),
        st.sampled_from(["p", "q", "r"]), st.sampled_from([5.0, 10.0, 11.0]),
    ),
    st.builds(lambda name: act.Payment(proposal_message_id=name), st.sampled_from(["p", "q", "r"])),
)  # fmt: skip
actions = st.one_of(
    st.builds(
        lambda caller, to, message: (
            caller, act.SendMessage(from_agent_id=caller, to_agent_id=to, message=message),
        ),
        agents, agents, messages,
    ),
    st.builds(lambda caller: (caller, act.FetchMessages()), agents),
    st.builds(
        lambda name, price: (name, act.Register(profile(name, price))),
        agents, st.sampled_from([8.0, 10.0]),
    ),
)  # fmt: skip


def seen(state: State) -> tuple:
    return (
        state.book(), state.rows, state.now, dict(state.spent), dict(state.public),
        list(state.profiles),
    )  # fmt: skip


@given(st.sampled_from(RULES), st.lists(actions, max_size=12), st.lists(actions, max_size=12))
def test_undoing_in_reverse_restores_everything(switches, before, after):
    state = State(rules=switches)
    for name in AGENTS:
        rules.apply(state, name, act.Register(profile(name)))
    for caller, action in before:
        rules.apply(state, caller, action)
    was, undo = seen(state), []
    for caller, action in after:
        entry = rules.decide(state, caller, action)
        undo.append(remember(state, entry))
        rules.evolve(state, entry)
    for back in reversed(undo):
        back()
    assert seen(state) == was
    assert not switches.books or state.balances_hold()


def test_a_store_that_fails_leaves_the_host_as_it_was_and_a_key_can_be_used_again():
    async def play():
        store = MemoryJournal()
        host = Host(State(rules=COMPATIBLE), store)
        await host.start()
        for name in AGENTS:
            await host.register(document(name))
        was = seen(host.state)
        store.failing = True
        message = act.SendMessage(
            from_agent_id="customer_1", to_agent_id="business_1", message=act.TextMessage("x")
        )
        sent = [host.perform("customer_1", message, key=f"k{n}") for n in range(5)]
        sent.append(host.register(document("business_2") | {"metadata": {"new": True}}))
        failed = await asyncio.gather(*sent, return_exceptions=True)
        assert all(isinstance(one, Unavailable) for one in failed)
        now = seen(host.state)
        assert (now[0], now[1]) == (was[0], was[1])
        assert host.documents["business_2"] == document("business_2")
        with pytest.raises(Unavailable):
            await host.perform("customer_1", message)
        store.failing = False
        while host.down:
            await asyncio.sleep(0.05)
        entry = await host.perform("customer_1", message, key="k1")
        assert (entry.row, len(host.state.inboxes["business_1"])) == (1, 1)
        assert await host.perform("customer_1", message, key="k1") is entry
        lines = [text for _, text in store.lines]
        await host.stop()
        return lines

    lines = asyncio.run(play())
    assert len(lines) == len(AGENTS) + 1


def test_a_batch_that_was_stored_although_its_commit_broke_off_counts_once():
    class Doubtful(MemoryJournal):
        broken = False

        async def append(self, batch):
            await super().append(batch)
            if self.broken:
                self.broken = False
                from marketeval.core.errors import StoreError

                raise StoreError("the connection broke after the commit")

    async def play():
        store = Doubtful()
        host = Host(State(rules=COMPATIBLE), store)
        await host.start()
        for name in AGENTS:
            await host.register(document(name))
        message = act.SendMessage(
            from_agent_id="customer_1", to_agent_id="business_1", message=act.TextMessage("x")
        )
        store.broken = True
        with pytest.raises(Unavailable):
            await host.perform("customer_1", message, key="k")
        while host.down:
            await asyncio.sleep(0.05)
        again = await host.perform("customer_1", message, key="k")
        assert again.row == 1
        assert len(host.state.inboxes["business_1"]) == 1
        await host.stop()
        return len(store.lines)

    assert asyncio.run(play()) == len(AGENTS) + 1
