"""What a market, a request, an action and an agent are: the contracts everything else keeps.

A market is a script. Its `play` reads like the pseudo-code of its paper: it yields the requests
of one turn, is sent back one action for each, and appends events to the log. It does no I/O,
never awaits, and knows no agent, no model, no metric and no database. An agent fills a seat: it
is asked with a request and answers with an action. Drivers (`core.drive`) bring the two together.

    def play(self, streams, log):
        for step in range(self.horizon):
            action, = yield [Request(seat="bidder", decision="bid", ...)]
            log.append("bid", step=step, amount=action.amount)
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from marketeval.core.log import EventKind, EventLog
from marketeval.core.streams import Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to one seat.

    A seat without memory needs `instructions` and `briefing`; a conversation that is held open
    needs the `instructions` once and then the `news`. A request may carry a `batch`: columns of
    equal length, one row per decision, to be answered by an action with as many rows.
    `privileged` knowledge reaches only agents that declare that they need it. `schema` is the JSON
    schema of an answer where the type of the action does not say it by itself (which items there
    are, say); such a type has a method `read` for answers of that form. The driver fills in
    `turn`, the place of the turn in its episode from 0, for agents that are not deterministic.
    """

    seat: str
    decision: str
    action: type[Any]  # any: each family declares the actions it takes, in `actions/`
    step: int
    draws: Streams
    instructions: str = ""
    briefing: Any = None  # any: what a seat may know differs by family and decision
    news: Any = None  # any: as above
    batch: Mapping[str, Any] = field(default_factory=dict)  # any: arrays of any type
    privileged: Any = None  # any: as above
    schema: Mapping[str, Any] | None = None  # any: a JSON schema
    turn: int = -1


@dataclass(frozen=True, slots=True)
class Failure:
    """What stands in for an action when an agent gave none that counts. Never an exception.

    `asked` is how often the agent was asked before it was given up; markets that ask again count
    with it.
    """

    reason: str
    asked: int = 1


@dataclass(frozen=True, slots=True)
class Noted:
    """An action with the events that tell how it came about, each the values of one row of an
    event kind; the driver appends them if the market declares the kind, and hands on the action."""

    action: Any  # any: as `Action`
    events: Sequence[tuple[str, Mapping[str, Any]]]  # any: as `EventLog.append` takes


Action = Any  # any: a frozen value of the type that the request names, or a `Failure`
Script = Generator[Sequence[Request], Sequence[Action], None]


@runtime_checkable
class Market(Protocol):
    """A set of rules, ready to be played once per seed.

    `events` are the kinds it may write. `play` is called anew for each episode and keeps nothing
    between them.
    """

    @property
    def events(self) -> Sequence[EventKind]: ...

    def play(self, streams: Streams, log: EventLog) -> Script: ...


@runtime_checkable
class Agent(Protocol):
    """Fills a seat. `act` answers one request, with a row per row of the request's batch.

    `immediate` says that `act` never waits for anything outside (then no event loop is needed);
    `deterministic` that the same request always gets the same action (then it need not be
    recorded); `privileged` that it wants to be told what its seat should not know.
    """

    @property
    def immediate(self) -> bool: ...

    @property
    def deterministic(self) -> bool: ...

    @property
    def privileged(self) -> bool: ...

    async def act(self, request: Request, /) -> Action: ...
