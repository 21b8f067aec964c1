"""The live driver: whoever comes first is served first, and nothing is acknowledged before it is
committed.

Entries are decided and made in memory at once, one after the other; their lines are committed in
groups. If a commit fails, everything since the last commit is undone and answered as unavailable,
and nobody acts until the store is back. A reader never sees what is not committed yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from marketeval.actions import two_sided as act
from marketeval.apps.server.book import Book, Json, Kept, fingerprint
from marketeval.core.errors import StoreError
from marketeval.markets.two_sided import rules
from marketeval.markets.two_sided.journal import (
    TICK,
    Recorded,
    profile_of,
    read_line,
    write_line,
)
from marketeval.markets.two_sided.state import Entry, State, catalogue_of
from marketeval.mechanisms.search import RULES, Catalogue, Wanted
from marketeval.stores.base import Batch, Journal, Line, Note, Statement

RETRY_S = 0.25  # between attempts to reach a store that is away
log = logging.getLogger("marketeval.server")


class Unavailable(Exception):
    """The store takes nothing now; nothing was done."""


class KeyReused(Exception):
    """An idempotency key that stood for another action before."""


@dataclass(slots=True)
class _Pending:
    """A line on its way to the store."""

    line: Line
    recorded: Recorded | None
    undo: Callable[[], None]
    note: Note | None = None
    also: tuple[Statement, ...] = ()
    done: asyncio.Future[None] | None = None


@dataclass(slots=True)
class Tally:
    """What the driver has done since the server started."""

    commits: int = 0
    lines: int = 0
    failures: int = 0
    repeated: int = 0


Second = Callable[[Recorded, Json], tuple[Statement, ...]]


class Host(Book):
    """One market in memory, its journal, and those who wait for news."""

    def __init__(
        self,
        state: State,
        store: Journal,
        *,
        logical: bool = False,
        pending: int = 10_000,
        second: Second | None = None,
        second_note: Callable[[int, int, Json], tuple[Statement, ...]] | None = None,
    ) -> None:
        super().__init__(state, logical=logical)
        self.store = store
        self.tally = Tally()
        self.stopping = asyncio.Event()
        self._most = pending
        self._second, self._second_note = second, second_note
        self._number = 0  # of the last line made
        self._committed = 0  # of the last line committed
        self._committed_row = 0
        self._registered = 0  # line of the last registration
        self._notes = 0
        self._queue: list[_Pending] = []
        self._wake = asyncio.Event()
        self._turn: asyncio.Future[None] | None = None
        self._down = ""
        self._bells: dict[str, asyncio.Event] = {}
        self._task: asyncio.Task[None] | None = None

    # ---- life

    async def start(self) -> str:
        """Rebuild the state from the journal and begin to commit; a word on what was mended."""
        gc.disable()  # everything that is read stays: nothing to be collected while it grows
        try:
            said = await self._replay()
            gc.freeze()
        finally:
            gc.enable()
        if self.state.public:
            await self._index("lexical")
        self._notes = await self.store.count_notes()
        self._committed, self._committed_row = self._number, self.state.rows
        self._task = asyncio.get_running_loop().create_task(self._commit_forever())
        return said

    async def stop(self) -> None:
        """Commit what is pending and give the store back."""
        self.stopping.set()
        self.ring_all()
        if self._task is not None:
            while self._committed < self._number and not self._down:
                await asyncio.sleep(0.01)
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.store.close()

    def ring_all(self) -> None:
        """Wake everybody who waits for mail."""
        for bell in self._bells.values():
            bell.set()

    @property
    def down(self) -> str:
        """Why nothing can be stored now; empty if it can."""
        return self._down

    # ---- acting

    async def perform(self, caller: str, action: act.ProtocolAction, *, key: str = "") -> Entry:
        """Carry out an action; a message is committed once this returns.

        The same key of the same caller gives the first answer again, also after a restart.

        Raises
        ------
        Unavailable : the store takes nothing now, and nothing was done
        KeyReused : the key stood for another action
        """
        if not isinstance(action, act.SendMessage):
            return await self._read(caller, action)
        if key:
            known = self._kept.get((caller, key))
            if known is not None:
                return await self._again(known, fingerprint(action))
        self._check_room()
        entry = self._decide(caller, action)
        pending = self._make(Recorded(at=self._at, entry=entry, key=key))
        if key:
            self._keep(caller, key, (fingerprint(action), entry, pending.done))
        assert pending.done is not None  # given by _make
        await asyncio.shield(pending.done)
        return entry

    async def register(self, document: Json, *, token: str = "") -> None:
        """Enter an agent or replace its document; `token` is its new token's hash, if any."""
        self._check_room()
        profile = profile_of(document)
        entry = rules.decide(self._now(), profile.id, act.Register(profile))
        token = token or self.token_of.get(profile.id, "")
        pending = self._make(Recorded(at=self._at, entry=entry, document=document, token=token))
        self._registered = self._number
        assert pending.done is not None  # given by _make
        await asyncio.shield(pending.done)

    async def note(self, document: Json, text: str) -> None:
        """Store a log document."""
        self._check_room()
        self._now()
        self._notes += 1
        also = self._second_note(self._notes, self._at, document) if self._second_note else ()
        note = (self._notes, self._at, text)
        pending = _Pending((0, ""), None, self._forget_note, note=note, also=also)
        await asyncio.shield(self._enqueue(pending))

    async def tick(self, to: int) -> None:
        """Move the logical clock forward."""
        self._check_room()
        if to < self.state.now:
            raise ValueError(f"the clock stands at {self.state.now} and does not go back to {to}")
        pending = self._make(Recorded(at=to * TICK))
        assert pending.done is not None  # given by _make
        await asyncio.shield(pending.done)

    async def settled(self) -> None:
        """Wait until everything that can be seen is committed."""
        number = self._number
        while self._committed < number:
            await self._next_commit()

    async def wait_for_mail(self, agent: str, after: int, seconds: float) -> None:
        """Wait until an agent has committed mail after a row, or the time is over."""
        deadline = time.monotonic() + seconds
        while not self.stopping.is_set():
            mail = self.state.mail(agent, after)
            if mail and mail[0].index <= self._committed_row:
                return
            left = deadline - time.monotonic()
            if left <= 0:
                return
            bell = self._bells.get(agent)
            if bell is None:
                bell = self._bells[agent] = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await bell.wait()

    # ---- one after the other

    def _decide(self, caller: str, action: act.ProtocolAction) -> Entry:
        return rules.decide(self._now(), caller, action)

    async def _read(self, caller: str, action: act.FetchMessages | act.Search) -> Entry:
        """Reads are answered from memory, once what they show is committed; their lines follow."""
        if isinstance(action, act.Search):
            await self._index(action.search_algorithm)
        elif action.after is not None:
            after = max(self.row_at(action.after), action.after_index or 0)
            action = act.FetchMessages(
                from_agent_id=action.from_agent_id,
                limit=action.limit,
                offset=action.offset,
                after_index=after,
            )
        entry = self._decide(caller, action)
        seen = self._number
        if not self._down and len(self._queue) < self._most:
            self._make(Recorded(at=self._at, entry=entry), waits=False)
        if isinstance(action, act.Search):
            seen = self._registered
            while self._committed < seen:
                await self._next_commit()
        else:
            mail = getattr(entry.result, "messages", ())
            while mail and self._committed_row < mail[-1].index:
                await self._next_commit()
        return entry

    async def _index(self, rule: str) -> None:
        """Build the index of businesses beside the event loop, so that others are served."""
        for _ in range(3):
            if self.state.has_catalogue or rule not in RULES:
                return
            version = self.version
            built = await asyncio.to_thread(_built, list(self.state.public.values()), rule)
            if version == self.version:
                self.state.take_catalogue(built)

    async def _again(self, known: Kept, fingerprint: bytes) -> Entry:
        body, entry, done = known
        if body != fingerprint:
            raise KeyReused
        self.tally.repeated += 1
        if done is not None:
            await asyncio.shield(done)
        return entry

    def _check_room(self) -> None:
        if self._down:
            raise Unavailable(self._down)
        if len(self._queue) >= self._most:
            raise Unavailable("too much is waiting to be stored")

    def _make(self, recorded: Recorded, *, waits: bool = True) -> _Pending:
        """Make a change in memory and send its line on its way."""
        undo = self._remember(recorded)
        self._evolve(recorded)
        self._number += 1
        also = self._second(recorded, self.documents) if self._second else ()
        pending = _Pending((self._number, write_line(recorded)), recorded, undo, also=also)
        if waits:
            self._enqueue(pending)
        else:
            self._queue.append(pending)
            self._wake.set()
        return pending

    def _enqueue(self, pending: _Pending) -> asyncio.Future[None]:
        pending.done = asyncio.get_running_loop().create_future()
        pending.done.add_done_callback(_seen)
        self._queue.append(pending)
        self._wake.set()
        return pending.done

    def _forget_note(self) -> None:
        self._notes -= 1

    # ---- committing

    async def _commit_forever(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            queue, self._queue = self._queue, []
            if not queue:
                continue
            batch = Batch(
                [one.line for one in queue if one.line[0]],
                [one.note for one in queue if one.note],
                [statement for one in queue for statement in one.also],
            )
            try:
                await self.store.append(batch)
            except StoreError as error:
                await self._failed(queue, str(error))
            else:
                self._stored(queue)

    def _stored(self, queue: list[_Pending]) -> None:
        tally = self.tally
        tally.commits += 1
        tally.lines += len(queue)
        for one in queue:
            self._committed = max(self._committed, one.line[0])
            entry = None if one.recorded is None else one.recorded.entry
            if entry is not None:
                self.totals.count(entry, self.state)
                self._committed_row = max(self._committed_row, entry.row)
                if isinstance(entry.action, act.SendMessage):
                    bell = self._bells.pop(entry.action.to_agent_id, None)
                    if bell is not None:
                        bell.set()
            if one.done is not None and not one.done.done():
                one.done.set_result(None)
        self._turned(None)

    async def _failed(self, queue: list[_Pending], why: str) -> None:
        """Undo everything since the last commit, then wait for the store to come back.

        A batch whose fate is unknown (the connection broke while it was committed) is made again
        if it turns out to be stored.
        """
        self._down = why
        self.tally.failures += 1
        log.warning("nothing can be stored: %s", why)
        later, self._queue = self._queue, []
        for one in reversed(queue + later):
            one.undo()
        self._number = self._committed
        error = Unavailable(why)
        for one in (*queue, *later):
            if one.done is not None and not one.done.done():
                one.done.set_exception(error)
        self._turned(error)
        lines = [one for one in queue if one.line[0]]
        while True:
            with contextlib.suppress(StoreError):
                last = await self.store.recover()
                self._notes = await self.store.count_notes()
                break
            await asyncio.sleep(RETRY_S)
        if last > self._committed:
            if not lines or last != lines[-1].line[0]:
                log.error("the journal ends at %d: another writer has taken over", last)
                self._down = "another writer has taken over"
                await asyncio.Event().wait()
            for one in lines:
                assert one.recorded is not None  # lines have one
                self._evolve(one.recorded)
                entry, one.done = one.recorded.entry, None
                if one.recorded.key and entry is not None:
                    kept = (fingerprint(entry.action), entry, None)
                    self._keep(entry.caller, one.recorded.key, kept)
            self._number = last
            self._stored(lines)
        self._down = ""
        log.warning("the store is back; line %d is the last", last)

    async def _next_commit(self) -> None:
        """Wait for the commit under way; raises Unavailable if it fails."""
        if self._down:
            raise Unavailable(self._down)
        if self._turn is None:
            self._turn = asyncio.get_running_loop().create_future()
            self._turn.add_done_callback(_seen)
        await asyncio.shield(self._turn)

    def _turned(self, error: Unavailable | None) -> None:
        turn, self._turn = self._turn, None
        if turn is not None and not turn.done():
            if error is None:
                turn.set_result(None)
            else:
                turn.set_exception(error)

    # ---- starting again

    async def _replay(self) -> str:
        said = str(getattr(self.store, "mended", ""))
        reason = ""
        async for chunk in self.store.read():
            for number, text in chunk:
                try:
                    if number != self._number + 1:
                        raise ValueError(f"line {self._number + 1} is missing")
                    recorded = read_line(text)
                    self._check_next(recorded)
                except (ValueError, KeyError, TypeError, IndexError) as error:
                    reason = f"line {self._number + 1}: {error}"
                    break
                self._evolve(recorded)
                self._number = number
                entry = recorded.entry
                if entry is not None:
                    self.totals.count(entry, self.state)
                if recorded.key and entry is not None:
                    kept = (fingerprint(entry.action), entry, None)
                    self._keep(entry.caller, recorded.key, kept)
            if reason:
                break
        if reason:
            lost = await self.store.set_aside(self._number + 1)
            reason = " ".join(reason.split())[:200]
            said = f"{said}; {reason}" if said else reason
            said += f"; {lost} lines after it were set aside"
        if not said:
            return ""
        return (
            f"the journal breaks off after action {self.state.rows} (line {self._number}): {said}"
        )

    def _check_next(self, recorded: Recorded) -> None:
        entry = recorded.entry
        if entry is None or isinstance(entry.action, act.Register):
            return
        if entry.row != self.state.rows + 1:
            raise ValueError(f"action {entry.row} follows action {self.state.rows}")


def _built(businesses: Sequence[act.Business], rule: str) -> tuple[Sequence[str], Catalogue]:
    """An index that has answered once, so that nothing is left to be built or compiled."""
    ids, catalogue = catalogue_of(businesses)
    catalogue.search(rule, Wanted(query="warm", items=()), limit=10, page=1)
    return ids, catalogue


def _seen(future: asyncio.Future[None]) -> None:
    """An error that nobody waits for any more is no news."""
    if not future.cancelled():
        future.exception()
