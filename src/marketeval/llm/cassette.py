"""The cassette: every call and every action that cannot simply be made again, in one SQLite file.

A call is found again by its key: the hash of the canonical request, the model, the endpoint and
the sample index, all known before anything is awaited. It is on disk before its answer is used
(write-ahead log, full synchronous): what was paid for survives kill -9 and power loss. One thread
writes and commits whatever has gathered while it committed before.

Beside calls, `action` holds what other seats did that are not deterministic (HTTP, Python,
people), by arm, seed, turn, seat and place among the seat's requests of that turn, with the hash of
the request that was answered.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import queue
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from marketeval.core.errors import DataError, ReplayError, RunError, UsageError
from marketeval.llm.client import Completion, Message, Model, Parameters, Schema

Mode = Literal["record", "replay-only", "off"]
MODES: Sequence[Mode] = ("record", "replay-only", "off")
VERSION = 2
REFUSED = "refused"  # the finish of a call that was asked again in another form

_TABLES = """
CREATE TABLE IF NOT EXISTS scenario (
  identity TEXT PRIMARY KEY,   -- hash of what was played; whose calls these are
  name     TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS call (
  key           TEXT PRIMARY KEY,
  endpoint      TEXT NOT NULL,
  model         TEXT NOT NULL,
  seat          TEXT NOT NULL,   -- who asked first
  sample        TEXT NOT NULL,
  request       TEXT NOT NULL,   -- canonical JSON
  response      TEXT,            -- null: failed for good, or refused and asked in another form
  finish        TEXT,
  input_tokens  INTEGER,
  output_tokens INTEGER,
  cached_tokens INTEGER,
  cost_usd      REAL,            -- null: unpriced
  latency_s     REAL NOT NULL,   -- of the last attempt
  attempts      INTEGER NOT NULL,
  failures      TEXT NOT NULL,   -- one reason per failed attempt, as JSON
  reason        TEXT,            -- why it failed for good
  ended         REAL NOT NULL    -- seconds since 1970
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS action (
  arm TEXT NOT NULL, seed INTEGER NOT NULL, turn INTEGER NOT NULL, seat TEXT NOT NULL,
  ordinal   INTEGER NOT NULL,    -- the how many-th request to the seat in that turn
  request   TEXT NOT NULL,       -- hash of the request that was answered
  action    TEXT,                -- JSON; null: failed
  reason    TEXT,
  latency_s REAL NOT NULL,
  PRIMARY KEY (arm, seed, turn, seat, ordinal)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS format (
  endpoint TEXT NOT NULL, model TEXT NOT NULL, schema TEXT NOT NULL,
  rung     TEXT NOT NULL,        -- the rung of structured output that the endpoint takes
  PRIMARY KEY (endpoint, model, schema)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One recorded call: a completion, or the reason for which there is none."""

    completion: Completion | None
    reason: str = ""
    cost_usd: float | None = None
    latency_s: float = 0.0
    attempts: int = 1
    failures: tuple[str, ...] = ()
    refused: bool = False  # the endpoint did not take the form that was asked for


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """One recorded action: JSON, or the reason for which there is none."""

    request: str
    action: str | None
    reason: str
    latency_s: float


def canonical(
    model: Model, messages: Sequence[Message], schema: Schema | None, parameters: Parameters
) -> str:
    """A request as JSON, the same text for the same request; headers as the scenario has them."""
    return json.dumps(
        {
            "model": model.name,
            "messages": [[one.role, one.text] for one in messages],
            "schema": schema,
            "temperature": parameters.temperature,
            "max_tokens": parameters.max_tokens,
            "reasoning_effort": parameters.reasoning_effort,
            "system": parameters.system,
            "headers": dict(parameters.headers),  # not timeout_s: patience changes no answer
        },
        sort_keys=True,
        ensure_ascii=False,
        separators=(",", ":"),
    )


def call_key(endpoint: str, request: str, sample: str) -> str:
    """The key of a call: SHA-256 over the endpoint, the canonical request and the sample index."""
    return hashlib.sha256("\0".join((endpoint, sample, request)).encode()).hexdigest()


class Cassette:
    """What was called and done so far; `mode` says whether more may be.

    `scenario` is the identity of what is played, `name` what a person calls it. Nothing is written
    before the first call ends, so that a run that fails at once leaves no file.

    Raises
    ------
    UsageError : replay-only without a cassette, or with the cassette of another scenario
    DataError : the file is no cassette
    """

    def __init__(
        self, path: Path | None, *, mode: Mode = "record", scenario: str = "", name: str = ""
    ) -> None:
        self.path = path
        self.mode: Mode = "off" if path is None else mode
        self._scenario, self._name = scenario, name
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._there = threading.Event()
        self._pending: list[_Write] = []
        self._committing = False
        self._queue: queue.SimpleQueue[Sequence[_Write]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        if self.path is not None and self.mode != "off":
            self._check(self.path)

    def call(self, key: str) -> Entry | None:
        """The recorded call of a key."""
        row = self._one(
            "SELECT response, finish, input_tokens, output_tokens, cached_tokens, reason, "
            "cost_usd, latency_s, attempts, failures FROM call WHERE key = ?",
            key,
        )
        if row is None:
            return None
        text, finish, inputs, outputs, cached, reason, cost, latency, attempts, failures = row
        completion = None
        if text is not None:
            completion = Completion(
                text=text,
                input_tokens=inputs,
                output_tokens=outputs,
                cached_tokens=cached,
                finish=finish,
            )
        return Entry(
            completion=completion,
            reason=reason or "",
            cost_usd=cost,
            latency_s=latency,
            attempts=attempts,
            failures=tuple(json.loads(failures)),
            refused=finish == REFUSED,
        )

    async def keep_call(
        self,
        key: str,
        entry: Entry,
        *,
        model: Model,
        seat: str,
        sample: str,
        request: str,
        alone: bool = False,
    ) -> None:
        """Record a call; returns once it is on disk. `alone` says that no other call is open."""
        done = entry.completion
        await self._write(
            "INSERT OR REPLACE INTO call VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                key, model.endpoint, model.name, seat, sample, request,
                done and done.text,
                done.finish if done else REFUSED if entry.refused else None,
                done and done.input_tokens,
                done and done.output_tokens, done and done.cached_tokens, entry.cost_usd,
                entry.latency_s, entry.attempts, json.dumps(entry.failures),
                entry.reason or None, time.time(),
            ),
            alone=alone,
        )  # fmt: skip

    async def sign(self) -> None:
        """Note that this scenario is played over the cassette, also if it makes no call of its own.

        A cassette that nobody wrote to yet is left alone.
        """
        if self.mode == "record" and self._there.is_set():
            values = (self._scenario, self._name)
            await self._write("INSERT OR IGNORE INTO scenario VALUES (?, ?)", values)

    async def forget_calls(self, keys: Sequence[str]) -> None:
        """Remove calls, so that a later run makes them again."""
        for key in keys:
            await self._write("DELETE FROM call WHERE key = ?", (key,))

    def action(
        self, arm: str, seed: int, turn: int, seat: str, ordinal: int = 0
    ) -> RecordedAction | None:
        """What a seat did on its `ordinal`-th request of a turn, from 0."""
        row = self._one(
            "SELECT request, action, reason, latency_s FROM action "
            "WHERE arm = ? AND seed = ? AND turn = ? AND seat = ? AND ordinal = ?",
            arm, seed, turn, seat, ordinal,
        )  # fmt: skip
        return None if row is None else RecordedAction(row[0], row[1], row[2] or "", row[3])

    async def keep_action(
        self, arm: str, seed: int, turn: int, seat: str, ordinal: int, action: RecordedAction
    ) -> None:
        """Record an action; returns once it is on disk."""
        await self._write(
            "INSERT OR REPLACE INTO action VALUES (?,?,?,?,?,?,?,?,?)",
            (
                arm, seed, turn, seat, ordinal,
                action.request, action.action, action.reason or None, action.latency_s,
            ),
        )  # fmt: skip

    def rung(self, model: Model, schema: str) -> str | None:
        """The rung of structured output that an endpoint was found to take for a schema."""
        row = self._one(
            "SELECT rung FROM format WHERE endpoint = ? AND model = ? AND schema = ?",
            model.endpoint, model.name, schema,
        )  # fmt: skip
        return None if row is None else str(row[0])

    async def keep_rung(self, model: Model, schema: str, rung: str) -> None:
        """Record the rung that an endpoint takes."""
        await self._write(
            "INSERT OR REPLACE INTO format VALUES (?,?,?,?)",
            (model.endpoint, model.name, schema, rung),
        )

    def totals(self) -> list[dict[str, Any]]:
        """Calls, failures, attempts, tokens, cost and mean latency per seat, endpoint and model.

        `cost_usd` sums what is priced; `unpriced` counts the calls that are not (any: as SQL).
        Refused forms are no calls: nothing was answered, and nothing is paid for.
        """
        rows = self._all(
            "SELECT seat, endpoint, model, count(*), sum(response IS NULL), sum(attempts), "
            "sum(input_tokens), sum(output_tokens), sum(cost_usd), "
            "sum(cost_usd IS NULL AND response IS NOT NULL), avg(latency_s) "
            "FROM call WHERE finish IS NOT ? "
            "GROUP BY seat, endpoint, model ORDER BY seat, endpoint, model",
            REFUSED,
        )
        names = (
            "seat", "endpoint", "model", "calls", "failures", "attempts", "input_tokens",
            "output_tokens", "cost_usd", "unpriced", "latency_s",
        )  # fmt: skip
        return [dict(zip(names, row, strict=True)) for row in rows]

    def close(self) -> None:
        """Close the file; what is being committed is committed first."""
        if self._thread is not None:
            self._queue.put(())
            self._thread.join()
            self._thread = None
        for file in (self._reader, self._writer):
            if file is not None:
                file.close()
        self._reader = self._writer = None

    def _check(self, path: Path) -> None:
        """Whether the file, if there is one, may be used as the mode says."""
        if not path.exists():
            if self.mode == "replay-only":
                raise UsageError(f"replay-only needs recorded calls, and there is no {path}")
            return
        try:
            file = _connected(path)
            version = file.execute("PRAGMA user_version").fetchone()[0]
            empty = not file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            known = {}
            if not empty:
                known = dict(file.execute("SELECT identity, name FROM scenario").fetchall())
            file.close()
        except sqlite3.Error as error:
            raise DataError(f"{path} is no cassette of calls: {error}") from None
        if empty and version == 0 and self.mode == "record":
            return  # killed before its tables were there: nothing was paid for yet
        if version != VERSION:
            raise DataError(
                f"{path}: expected a cassette of version {VERSION}, got {version}, which another "
                "version of marketeval wrote; choose another --out"
            )
        if self.mode == "replay-only" and self._scenario not in known:
            whose = ", ".join(sorted(set(known.values()))) or "no scenario"
            raise UsageError(
                f"{path} holds the calls of {whose}, not of this scenario ({self._name or '?'} as "
                "it is set now); replay-only plays the very scenario that was recorded"
            )
        self._there.set()

    def _one(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        rows = self._all(sql, *values)
        return rows[0] if rows else None

    def _all(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a query (any: as SQL); none as long as there is no file."""
        if self.mode == "off" or self.path is None or not self._there.is_set():
            return []
        if self._reader is None:
            self._reader = _connected(self.path)
        try:
            return self._reader.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise RunError(f"{self.path} cannot be read: {error}") from None

    async def _write(self, sql: str, values: Sequence[object], *, alone: bool = False) -> None:
        if self.mode == "off":
            return
        if self.mode == "replay-only":
            raise ReplayError(f"{self.path}: replay-only records nothing")
        if alone and not self._committing:
            # Nobody else waits for this loop: half a millisecond here beats two changes of thread.
            error = self._save(((sql, values),))
            if error is not None:
                raise RunError(error)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="cassette", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._pending.append(_Write(sql, values, future))
        if not self._committing:
            self._committing = True
            loop.call_soon(self._commit)  # once this turn of the loop has gathered what it has
        await future

    def _commit(self) -> None:
        """Hand all that has gathered to the writing thread, as one transaction."""
        self._committing = bool(self._pending)
        if self._pending:
            batch, self._pending = self._pending, []
            self._queue.put(batch)

    def _committed(self, batch: Sequence[_Write], error: str | None) -> None:
        """Wake those whose writes are on disk, and commit what has gathered meanwhile."""
        for write in batch:
            if not write.future.done():
                if error is None:
                    write.future.set_result(None)
                else:
                    write.future.set_exception(RunError(error))
        self._commit()

    def _work(self) -> None:
        """The writing thread: one transaction per batch."""
        while batch := self._queue.get():
            error = self._save([(write.sql, write.values) for write in batch])
            loop = batch[0].future.get_loop()
            if loop.is_closed():
                self._committing = False
            else:
                loop.call_soon_threadsafe(self._committed, batch, error)

    def _save(self, writes: Sequence[tuple[str, Sequence[object]]]) -> str | None:
        """Commit some writes, by one thread at a time; what went wrong, or None."""
        try:
            if self._writer is None:
                self._writer = self._opened()
            for sql, values in writes:
                self._writer.execute(sql, values)
            self._writer.commit()
        except (sqlite3.Error, OSError) as error:
            if self._writer is not None:
                self._writer.rollback()
            return f"{self.path} cannot be written: {error}"
        self._there.set()
        return None

    def _opened(self) -> sqlite3.Connection:
        if self.path is None:
            raise OSError("no path")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = _connected(self.path)
        file.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
        file.execute("INSERT OR IGNORE INTO scenario VALUES (?, ?)", (self._scenario, self._name))
        file.commit()
        return file


@dataclass(frozen=True, slots=True)
class _Write:
    sql: str
    values: Sequence[object]
    future: asyncio.Future[None]


def _connected(path: Path) -> sqlite3.Connection:
    file = sqlite3.connect(path, timeout=60.0, check_same_thread=False)
    file.execute("PRAGMA journal_mode = WAL")
    file.execute("PRAGMA synchronous = FULL")
    return file
