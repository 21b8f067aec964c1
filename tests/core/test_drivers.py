"""Lockstep and replay, over a market of three lines."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from marketeval.core.drive import lockstep, replay
from marketeval.core.errors import ReplayError, UnknownNameError
from marketeval.core.log import Column, EventKind, EventLog
from marketeval.core.market import Agent, Failure, Market, Request

OFFER = EventKind(
    "offer",
    "what a seat answered",
    (
        Column("step", "int32", "step", low=0),
        Column("seat", "text", "seat"),
        Column("price", "float64", "price", nullable=True),
        Column("reason", "text", "why there is none"),
    ),
)


@dataclass(frozen=True)
class Offer:
    price: float


@dataclass(frozen=True)
class Bazaar:
    """Every step, every seat names a price; the sum of the last step's prices is briefed."""

    seats: Sequence[str] = ("ann", "bob", "cat")
    steps: int = 4
    events: ClassVar[Sequence[EventKind]] = (OFFER,)

    def play(self, streams, log):
        total = 0.0
        for step in range(self.steps):
            actions = yield [
                Request(
                    seat=seat,
                    decision="offer",
                    action=Offer,
                    step=step,
                    draws=streams.of(seat),
                    briefing=total,
                    privileged="the secret",
                )
                for seat in self.seats
            ]
            for seat, action in zip(self.seats, actions, strict=True):
                failed = isinstance(action, Failure)
                price = float("nan") if failed else action.price
                total += 0.0 if failed else price
                reason = action.reason if failed else ""
                log.append("offer", step=step, seat=seat, price=price, reason=reason)


@dataclass
class Trader:
    """Offers a keyed price on top of what it is told; may wait, may misbehave."""

    wait: float | None = None
    wrong: object = None
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False
    told: list[object] = field(default_factory=list)
    finished: list[int] = field(default_factory=list)

    async def act(self, request: Request) -> object:
        self.told.append(request.privileged)
        if self.wait is not None:
            await asyncio.sleep(self.wait)
        if isinstance(self.wrong, Exception):
            raise self.wrong
        if self.wrong is not None:
            return self.wrong
        return Offer(request.draws["price"].uniform(request.step, 1)[0] + 0.1 * request.briefing)


def play(seats, *, market=None, seed=1, record=None):
    log = EventLog([OFFER])
    digest = lockstep(market or Bazaar(), seats, seed=seed, log=log, record=record)
    return digest, log.scan("offer").collect()


def traders(**options):
    return {seat: Trader(**options) for seat in ("ann", "bob", "cat")}


def test_the_toys_keep_the_contracts():
    assert isinstance(Bazaar(), Market)
    assert isinstance(Trader(), Agent)


def test_immediate_agents_need_no_event_loop(monkeypatch):
    def no_loop(*_, **__):
        raise AssertionError("an event loop was started")

    monkeypatch.setattr(asyncio, "run", no_loop)
    assert play(traders())[1].height == 12


def test_the_log_is_the_same_however_long_anyone_takes():
    expected, _ = play(traders())
    waits = random.Random(3)
    for _ in range(4):
        slow = {
            seat: Trader(wait=waits.choice([0, 0.001, 0.004]), immediate=False)
            for seat in ("ann", "bob", "cat")
        }
        assert play(slow)[0] == expected
    mixed = traders()
    mixed["bob"] = Trader(wait=0.002, immediate=False)
    assert play(mixed)[0] == expected


def test_all_seats_of_a_turn_are_asked_at_once():
    open_now, most = 0, 0

    class Counting(Trader):
        async def act(self, request):
            nonlocal open_now, most
            open_now += 1
            most = max(most, open_now)
            await asyncio.sleep(0.002)
            open_now -= 1
            return Offer(1.0)

    play({seat: Counting(immediate=False) for seat in ("ann", "bob", "cat")})
    assert most == 3


def test_an_episode_can_be_played_where_a_loop_is_running_already():
    async def notebook():
        return play({seat: Trader(wait=0.001, immediate=False) for seat in ("ann", "bob", "cat")})

    assert asyncio.run(notebook())[0] == play(traders())[0]


def test_an_error_in_a_notebook_reaches_the_caller():
    async def notebook():
        play({"ann": Trader(immediate=False)})

    with pytest.raises(UnknownNameError, match="unknown seat 'bob'"):
        asyncio.run(notebook())


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (ValueError("no idea"), "ValueError: no idea"),
        (KeyError("x"), "KeyError: 'x'"),
        ("twelve", "expected Offer, got str"),
        ([Offer(1.0)], "expected Offer, got list"),
        (Failure("I pass"), "I pass"),
    ],
)
@pytest.mark.parametrize("wait", [None, 0.0])
def test_what_an_agent_does_wrong_is_an_event_and_the_episode_goes_on(wrong, reason, wait):
    seats = traders()
    seats["bob"] = Trader(wrong=wrong, wait=wait, immediate=wait is None)
    _, offers = play(seats)
    assert offers.height == 12
    assert set(offers.filter(seat="bob")["reason"]) == {reason}
    assert set(offers.filter(seat="ann")["reason"]) == {""}


def test_an_agent_that_wrongly_calls_itself_immediate_is_found_out():
    with pytest.raises(RuntimeError, match="declares itself immediate"):
        play(traders(wait=0))


def test_privileged_knowledge_reaches_only_those_who_declare_that_they_need_it():
    seats = traders()
    seats["cat"] = Trader(privileged=True)
    play(seats)
    assert set(seats["ann"].told) == {None}
    assert set(seats["cat"].told) == {"the secret"}


def test_a_seat_nobody_fills_is_named():
    with pytest.raises(UnknownNameError, match="unknown seat 'cat'; known: ann, bob"):
        play({"ann": Trader(), "bob": Trader()})


def test_replay_of_the_recorded_turns_equals_the_original():
    turns = []
    seats = traders()
    seats["bob"] = Trader(wrong=ValueError("broken"))
    digest, _ = play(seats, record=turns)
    log = EventLog([OFFER])
    assert replay(Bazaar(), turns, seed=1, log=log) == digest


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            Bazaar(seats=("ann", "bob")),
            r"turn 0: expected the recorded .*'bob', 'cat'\]",
        ),
        (Bazaar(seats=("ann", "cat", "bob")), r"the market asked \['ann', 'cat', 'bob'\]"),
        (Bazaar(steps=5), "the recording ends after 4 turns"),
        (Bazaar(steps=3), "turn 3: .* the market asked nobody"),
    ],
)
def test_replay_in_another_scenario_stops_and_says_where(other, words):
    turns = []
    play(traders(), record=turns)
    with pytest.raises(ReplayError, match=words):
        replay(other, turns, seed=1, log=EventLog([OFFER]))
