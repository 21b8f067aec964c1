"""What stops an episode, and what is only an agent's failure."""

from __future__ import annotations

import asyncio

import pytest
from test_drivers import Bazaar, Trader

from marketeval.core.drive import lockstep, lockstep_async, replay
from marketeval.core.errors import RunError, UsageError
from marketeval.core.log import Column, EventKind, EventLog
from marketeval.core.market import Noted

NOTE = EventKind("note", "what an agent notes", (Column("text", "text", "the note"),))


class Noting(Trader):
    """Offers as a trader, and notes it."""

    async def act(self, request):
        action = await super().act(request)
        return Noted(action, [("note", {"text": f"turn {request.turn}"}), ("unknown", {})])


class Stops(Trader):
    """Raises what it was given, at once."""

    async def act(self, request):
        raise self.wrong


class Slow(Trader):
    """Offers after a while, and remembers that it did."""

    async def act(self, request):
        action = await super().act(request)
        self.finished.append(request.step)
        return action


@pytest.mark.parametrize("error", [RunError("the limit"), UsageError("no key")])
def test_an_error_of_the_run_or_its_setting_up_is_not_a_failure_of_the_agent(error):
    market = Bazaar(seats=("ann", "bob"))
    slow = Slow(wait=0.02, immediate=False)
    seats = {"ann": Stops(wrong=error, immediate=False), "bob": slow}
    with pytest.raises(type(error), match=str(error)):
        lockstep(market, seats, seed=1, log=EventLog(market.events))
    assert slow.finished == [0]  # what was under way was waited for


def test_agents_that_are_not_deterministic_are_told_the_turn_and_notes_are_logged():
    class Noisy(Bazaar):
        events = (*Bazaar.events, NOTE)

    market, log, turns = Noisy(seats=("ann",)), EventLog(Noisy.events), []
    digest = lockstep(market, {"ann": Noting(deterministic=False)}, seed=1, log=log, record=turns)
    assert log.scan("note").collect()["text"].to_list() == [f"turn {turn}" for turn in range(4)]
    again = EventLog(Noisy.events)
    assert replay(market, turns, seed=1, log=again) == digest


def test_episodes_can_wait_together_in_one_loop():
    market = Bazaar()
    seats = {seat: Trader(wait=0.01, immediate=False) for seat in market.seats}

    async def both():
        logs = [EventLog(market.events) for _ in range(2)]
        return await asyncio.gather(
            *(lockstep_async(market, seats, seed=seed, log=log) for seed, log in enumerate(logs))
        )

    apart = [lockstep(market, seats, seed=seed, log=EventLog(market.events)) for seed in range(2)]
    assert asyncio.run(both()) == apart
