"""Drivers: they bring a market and its agents together, one episode at a time.

`lockstep` asks every seat named in a turn at once, waits for all, and hands the actions back in
the order of the requests; the same seed gives the same log, however long anyone takes. `replay`
hands back the actions of an earlier episode and asks nobody.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from marketeval.core.errors import ReplayError, RunError, UnknownNameError, UsageError
from marketeval.core.log import EventLog
from marketeval.core.market import Action, Agent, Failure, Market, Noted, Request, Script
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
        return _finish(lockstep_async(market, seats, seed=seed, log=log, record=record))
    return _in_a_loop_of_its_own(lockstep_async(market, seats, seed=seed, log=log, record=record))


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
        requests = _answer(script, [_take(action, log) for _, action in turn])
    if requests is not None:
        raise ReplayError(f"seed {seed}: the recording ends after {len(turns)} turns")
    return log.end()


async def lockstep_async(
    market: Market,
    seats: Mapping[str, Agent],
    *,
    seed: int,
    log: EventLog,
    record: list[Turn] | None = None,
) -> str:
    """`lockstep` as a coroutine, so that many episodes can wait in one event loop."""
    log.begin(seed)
    script = market.play(Streams(seed), log)
    requests = next(script, None)
    for turn in itertools.count():
        if requests is None:
            break
        asked = [(_agent_for(request, seats), request) for request in requests]
        if all(agent.immediate for agent, _ in asked):
            actions: Sequence[Action] = [
                await _ask(agent, request, turn) for agent, request in asked
            ]
        else:
            actions = await _all_of([_ask(agent, request, turn) for agent, request in asked])
        if record is not None:
            record.append([(q.seat, action) for q, action in zip(requests, actions, strict=True)])
        requests = _answer(script, [_take(action, log) for action in actions])
    return log.end()


async def _all_of(asked: Sequence[Coroutine[Any, Any, Action]]) -> Sequence[Action]:
    """All actions, once all are there; then the first error, so that no open call is thrown away.

    (any: what an event loop sends and receives)
    """
    import asyncio

    done = await asyncio.gather(*asked, return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException):
            raise one
    return done


async def _ask(agent: Agent, request: Request, turn: int) -> Action:
    """The agent's action, or a `Failure` if it raised or gave something else.

    An error that says that the run has to stop, or that it was set up wrongly, is no misbehaviour.
    """
    if not agent.deterministic:
        request = replace(request, turn=turn)
    if request.privileged is not None and not agent.privileged:
        request = replace(request, privileged=None)
    try:
        action = await agent.act(request)
    except (RunError, UsageError):
        raise
    except Exception as error:  # an agent's misbehaviour is an event, never a crash
        return Failure(f"{type(error).__name__}: {error}")
    bare = action.action if isinstance(action, Noted) else action
    if isinstance(bare, (request.action, Failure)):
        return action
    return Failure(f"expected {request.action.__name__}, got {type(bare).__name__}")


def _take(action: Action, log: EventLog) -> Action:
    """The action itself, once what is noted with it stands in the log."""
    if not isinstance(action, Noted):
        return action
    for kind, row in action.events:
        if kind in log.kinds:
            log.append(kind, **row)
    return action.action


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
    import asyncio

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
