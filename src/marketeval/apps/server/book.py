"""One market in memory: what the journal's lines have made of it."""

from __future__ import annotations

import asyncio
import hashlib
import time
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic_core import to_json

from marketeval.actions import two_sided as act
from marketeval.markets.two_sided import rules
from marketeval.markets.two_sided.journal import TICK, Recorded
from marketeval.markets.two_sided.state import Entry, Refused, State
from marketeval.markets.two_sided.undo import remember

Json = dict[str, Any]  # any: parsed JSON
Kept = tuple[bytes, Entry, asyncio.Future[None] | None]  # fingerprint, entry, its commit
START = rules.EPOCH.timestamp()
KEYS = 1_000_000  # idempotency keys remembered


@dataclass(slots=True)
class Totals:
    """What has happened in the market, of what is committed."""

    actions: dict[str, int] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    paid: int = 0  # cents

    def count(self, entry: Entry, state: State) -> None:
        """One more entry."""
        action, result = entry.action, entry.result
        _add(self.actions, type(action).__name__)
        if isinstance(result, Refused):
            _add(self.refusals, result.reason)
        elif isinstance(action, act.SendMessage):
            message = action.message
            _add(self.messages, message.type)
            if isinstance(message, act.Payment):
                offer = state.offers.get((action.to_agent_id, message.proposal_message_id))
                self.paid += 0 if offer is None else offer.amount


class Book:
    """A market's state and what a server knows beside it: documents, tokens, times, keys."""

    def __init__(self, state: State, *, logical: bool = False) -> None:
        self.state, self.logical = state, logical
        self.documents: dict[str, Json] = {}
        self.tokens: dict[str, str] = {}  # agent by hash
        self.token_of: dict[str, str] = {}  # hash by agent
        self.times = array("q")  # microseconds of each row
        self.offers: dict[str, dict[tuple[str, str], None]] = {}  # of an agent, made or received
        self.totals = Totals()
        self.version = 0  # of the documents
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()
        self._at = 0

    def moment(self, row: int) -> str:
        """The time of a row, as the protocol writes it."""
        return moment(self.times[row - 1])

    def row_at(self, when: datetime) -> int:
        """The last row that is not later than a moment."""
        return bisect_right(self.times, (when - rules.EPOCH) // timedelta(microseconds=1))

    def now(self) -> int:
        """The clock in microseconds."""
        self._now()
        return self._at

    def _now(self) -> State:
        """The state at the present time."""
        if not self.logical:
            self._at = max(self._at, int((time.time() - START) * TICK))
            self.state.now = self._at // TICK
        return self.state

    def _keep(self, caller: str, key: str, kept: Kept) -> None:
        self._kept[caller, key] = kept
        if len(self._kept) > KEYS:
            self._kept.popitem(last=False)

    def _evolve(self, recorded: Recorded) -> None:
        """Make the change of a line."""
        entry, state = recorded.entry, self.state
        if recorded.at > self._at:
            self._at = recorded.at
        if entry is None:
            state.now = recorded.at // TICK
            return
        rules.evolve(state, entry)
        action = entry.action
        if isinstance(action, act.Register):
            self._file(entry.caller, recorded.document, recorded.token)
            return
        self.times.append(recorded.at)
        if isinstance(action, act.SendMessage) and isinstance(action.message, act.OrderProposal):
            offer = (action.from_agent_id, action.message.id)
            made = state.offers.get(offer)
            if made is not None and made.buyer == action.to_agent_id:
                for name in (action.from_agent_id, action.to_agent_id):
                    self.offers.setdefault(name, {})[offer] = None

    def _remember(self, recorded: Recorded) -> Callable[[], None]:
        """What undoes a change that is about to be made."""
        entry, state, at, now = recorded.entry, self.state, self._at, self.state.now
        if entry is None:

            def back_in_time() -> None:
                state.now, self._at = now, at

            return back_in_time
        undo, name, action = remember(state, entry), entry.caller, entry.action
        document, token = self.documents.get(name), self.token_of.get(name, "")

        def back() -> None:
            undo()
            if isinstance(action, act.Register):
                self._file(name, document, token)
                return
            self.times.pop()
            if recorded.key:
                self._kept.pop((name, recorded.key), None)

        return back

    def _file(self, name: str, document: Json | None, token: str) -> None:
        self.version += 1
        if document is None:
            self.documents.pop(name, None)
        else:
            self.documents[name] = document
        self.tokens.pop(self.token_of.pop(name, ""), None)
        if token:
            self.tokens[token], self.token_of[name] = name, token


def moment(micros: int) -> str:
    """A time in microseconds as ISO text with +00:00."""
    return (rules.EPOCH + timedelta(microseconds=micros)).isoformat()


def hashed(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def fingerprint(action: act.Register | act.ProtocolAction) -> bytes:
    """What an action is known by: its content, so that it is the same after a restart."""
    return hashlib.blake2b(to_json(act.plain(action)), digest_size=16).digest()


def _add(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1
