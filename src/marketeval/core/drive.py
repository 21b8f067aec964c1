"""Drivers: they bring a market and its agents together, one episode at a time.

`lockstep` asks every seat named in a turn at once, waits for all, and hands the actions back in
the order of the requests; the same seed gives the same log, however long anyone takes. `replay`
hands back the actions of an earlier episode and asks nobody.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from marketeval.core.errors import ReplayError, UnknownNameError
from marketeval.core.log import EventLog
from marketeval.core.market import Action, Agent, Failure, Market, Request, Script
from marketeval.core.streams import Streams

Episode = Coroutine[Any, Any, str]  # any: what an event loop sends and receives
Turn = Sequence[tuple[str, Action]]  # the seats of a turn, each with its action


def lockstep(
    market: Market,
    seats: Mapping[str, Agent],
    *,
    seed: int,
    log: EventLog,
    record: list[Turn] | None = None,
) -> str:
    """Play one episode and return the digest of its events.

    Parameters
    ----------
    seats : the agent of each seat the market may name
    record : where given, every turn's actions are appended to it, for `replay`

    Raises
    ------
    UnknownNameError : the market named a seat that no agent fills
    """
    if all(agent.immediate for agent in seats.values()):
        return _finish(_play(market, seats, seed, log, record))
    return _in_a_loop_of_its_own(_play(market, seats, seed, log, record))


def replay(market: Market, turns: Sequence[Turn], *, seed: int, log: EventLog) -> str:
    """Play one episode over recorded actions and return the digest of its events.

    Raises
    ------
    ReplayError : the market asked for other seats than the recorded ones, or for more turns
    """
    log.begin(seed)
    script = market.play(Streams(seed), log)
    requests = next(script, None)
    for place, turn in enumerate(turns):
        asked = [request.seat for request in requests or ()]
        recorded = [seat for seat, _ in turn]
        if asked != recorded:
            raise ReplayError(
                f"seed {seed}, turn {place}: expected the recorded seats {recorded}, "
                f"the market asked {asked or 'nobody'}; was the scenario changed?"
            )
        requests = _answer(script, [action for _, action in turn])
    if requests is not None:
        raise ReplayError(f"seed {seed}: the recording ends after {len(turns)} turns")
    return log.end()


async def _play(
    market: Market,
    seats: Mapping[str, Agent],
    seed: int,
    log: EventLog,
    record: list[Turn] | None,
) -> str:
    log.begin(seed)
    script = market.play(Streams(seed), log)
    requests = next(script, None)
    while requests is not None:
        asked = [(_agent_for(request, seats), request) for request in requests]
        if all(agent.immediate for agent, _ in asked):
            actions = [await _ask(agent, request) for agent, request in asked]
        else:
            actions = await asyncio.gather(*(_ask(agent, request) for agent, request in asked))
        if record is not None:
            record.append([(q.seat, action) for q, action in zip(requests, actions, strict=True)])
        requests = _answer(script, actions)
    return log.end()


async def _ask(agent: Agent, request: Request) -> Action:
    """The agent's action, or a `Failure` if it raised or gave something else."""
    if request.privileged is not None and not agent.privileged:
        request = replace(request, privileged=None)
    try:
        action = await agent.act(request)
    except Exception as error:  # an agent's misbehaviour is an event, never a crash
        return Failure(f"{type(error).__name__}: {error}")
    if isinstance(action, (request.action, Failure)):
        return action
    return Failure(f"expected {request.action.__name__}, got {type(action).__name__}")


def _agent_for(request: Request, seats: Mapping[str, Agent]) -> Agent:
    try:
        return seats[request.seat]
    except KeyError:
        raise UnknownNameError("seat", request.seat, seats) from None


def _answer(script: Script, actions: Sequence[Action]) -> Sequence[Request] | None:
    """Send the actions of a turn; the next turn's requests, or None when the script has ended."""
    try:
        return script.send(actions)
    except StopIteration:
        return None


def _finish(episode: Episode) -> str:
    """Run a coroutine that never suspends to its end, without an event loop."""
    try:
        episode.send(None)
    except StopIteration as done:
        return str(done.value)
    raise RuntimeError("an agent that declares itself immediate waited for something")


def _in_a_loop_of_its_own(episode: Episode) -> str:
    """Run a coroutine in an event loop, also where one is running already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(episode)
    results: list[str | BaseException] = []

    def run() -> None:
        try:
            results.append(asyncio.run(episode))
        except BaseException as error:  # handed to the caller's thread below
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]
