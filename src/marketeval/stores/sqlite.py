"""A journal in one SQLite file: write-ahead log, full durability, one writer.

The database is used from one thread of its own, so that the event loop never waits for a disk.
The writer's lock is a lock on a file beside the database, which ends with the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TypeVar

from marketeval.core.errors import DataError, StoreError, UsageError
from marketeval.stores.base import CHUNK, FORMAT, Batch, Line, foreign, other_format, taken

T = TypeVar("T")
_TABLES = """
CREATE TABLE IF NOT EXISTS market (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS journal (number INTEGER PRIMARY KEY, line TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS aside (number INTEGER NOT NULL, line TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS notes (number INTEGER PRIMARY KEY, at INTEGER NOT NULL,
                                  note TEXT NOT NULL);
"""
_OWN = {"market", "journal", "aside", "notes"}


class SqliteJournal:
    """One market in one file. `second` creates the tables of a second layout, if there is one."""

    def __init__(self, path: Path, *, second: str = "", others: frozenset[str] = frozenset()):
        self.path = path
        self.mended = ""  # what was done to a file that could not be read to its end
        self._second, self._others = second, others
        self._thread = ThreadPoolExecutor(1, "sqlite")
        self._database: sqlite3.Connection | None = None
        self._lock: IO[str] | None = None

    async def open(self, about: Mapping[str, str]) -> Mapping[str, str]:
        """As the port."""
        return await self._run(lambda: self._open(about))

    async def read(self) -> AsyncIterator[Sequence[Line]]:
        """As the port; what cannot be read is left to the writer to set aside."""
        number = 0
        while True:
            lines = await self._run(lambda after=number: self._lines(after))  # type: ignore[misc]
            if not lines:
                return
            yield lines
            number = lines[-1][0]

    async def set_aside(self, number: int) -> int:
        """As the port."""

        def work() -> int:
            with self._there:
                self._there.execute(
                    "INSERT INTO aside SELECT number, line FROM journal WHERE number >= ?",
                    (number,),
                )
                found = self._there.execute("DELETE FROM journal WHERE number >= ?", (number,))
                return found.rowcount

        return await self._run(work)

    async def append(self, batch: Batch) -> None:
        """As the port."""
        await self._run(lambda: self._append(batch))

    async def recover(self) -> int:
        """As the port. Room for a write is asked for as well, so that a full disk shows."""

        def work() -> int:
            with contextlib.suppress(sqlite3.Error):
                self._there.execute("ROLLBACK")
            self._there.execute("BEGIN IMMEDIATE")
            self._there.execute("REPLACE INTO market VALUES ('probe', ?)", ("." * 65_536,))
            self._there.execute("COMMIT")
            self._there.execute("DELETE FROM market WHERE key = 'probe'")
            (last,) = self._there.execute("SELECT max(number) FROM journal").fetchone()
            return int(last or 0)

        return await self._run(work)

    async def notes(
        self, *, after: int | None, before: int | None, offset: int, limit: int | None
    ) -> Sequence[str]:
        """As the port."""
        sql = "SELECT note FROM notes WHERE at > ? AND at < ? ORDER BY number LIMIT ? OFFSET ?"
        low, high = -(2**63) if after is None else after, 2**63 - 1 if before is None else before
        values = (low, high, -1 if limit is None else limit, min(offset, 2**62))
        return await self._run(lambda: [one for (one,) in self._there.execute(sql, values)])

    async def count_notes(self) -> int:
        """As the port."""
        sql = "SELECT count(*) FROM notes"
        return int(await self._run(lambda: self._there.execute(sql).fetchone()[0]))

    async def rows(self, sql: str, *values: object) -> Sequence[tuple[object, ...]]:
        """What a query gives; for the second layout."""
        return await self._run(lambda: self._there.execute(sql, values).fetchall())

    async def close(self) -> None:
        """As the port."""
        with contextlib.suppress(StoreError):
            await self._run(self._close)
        self._thread.shutdown(wait=False)

    # ---- in the thread

    @property
    def _there(self) -> sqlite3.Connection:
        if self._database is None:
            raise StoreError(f"{self.path} is not open")
        return self._database

    async def _run(self, work: Callable[[], T]) -> T:
        def guarded() -> T:
            try:
                return work()
            except sqlite3.Error as error:
                raise StoreError(f"{self.path}: {error}") from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, guarded)

    def _open(self, about: Mapping[str, str]) -> Mapping[str, str]:
        folder = self.path.absolute().parent
        if not folder.is_dir():
            raise DataError(f"{self.path}: there is no folder {folder}; make it first")
        if self.path.is_dir():
            raise DataError(f"{self.path} is a folder; expected a file for the database")
        self._take_lock()
        try:
            return self._ready(about)
        except BaseException:
            self._close()
            raise

    def _take_lock(self) -> None:
        lock = self.path.with_name(self.path.name + ".lock")
        try:
            self._lock = lock.open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock = None
            raise UsageError(taken(str(self.path))) from None
        except OSError as error:
            raise DataError(f"{self.path} cannot be written: {error.strerror}") from None

    def _ready(self, about: Mapping[str, str]) -> Mapping[str, str]:
        try:
            if self._is_cut():
                self._mend()
            self._connect()
            sql = "SELECT name FROM sqlite_master WHERE type = 'table'"
            tables = {one for (one,) in self._there.execute(sql)}
            if tables and not tables >= {"market", "journal"}:
                if not tables <= self._others:
                    raise DataError(foreign(str(self.path)))
            elif tables:
                known = dict(self._there.execute("SELECT key, value FROM market"))
                if known.get("format") != FORMAT:
                    raise DataError(other_format(str(self.path), str(known.get("format", ""))))
            self._there.execute("PRAGMA journal_mode=WAL")
            self._there.executescript("BEGIN;" + _TABLES + self._second + "COMMIT;")
            with self._there:
                self._there.executemany(
                    "INSERT OR IGNORE INTO market VALUES (?, ?)",
                    [] if tables >= _OWN else [("format", FORMAT), *about.items()],
                )
            return dict(self._there.execute("SELECT key, value FROM market"))
        except sqlite3.DatabaseError as error:
            raise DataError(
                f"{self.path} cannot be used as a database: {error}; choose another --database"
            ) from None

    def _connect(self) -> None:
        self._database = sqlite3.connect(
            self.path, check_same_thread=False, isolation_level=None, timeout=5
        )
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.execute("PRAGMA wal_autocheckpoint=4000")

    def _lines(self, after: int) -> list[Line]:
        sql = "SELECT number, line FROM journal WHERE number > ? ORDER BY number LIMIT ?"
        return self._there.execute(sql, (after, CHUNK)).fetchall()

    def _append(self, batch: Batch) -> None:
        there = self._there
        there.execute("BEGIN IMMEDIATE")
        try:
            there.executemany("INSERT INTO journal VALUES (?, ?)", batch.lines)
            if batch.notes:
                there.executemany("INSERT INTO notes VALUES (?, ?, ?)", batch.notes)
            for sql, values in batch.also:
                there.execute(sql, values)
            there.execute("COMMIT")
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):
                there.execute("ROLLBACK")
            raise

    def _is_cut(self) -> bool:
        """Whether the file is shorter than its own header says."""
        if not self.path.exists():
            return False
        with self.path.open("rb") as file:
            head = file.read(32)
        if not head.startswith(b"SQLite format 3\x00") or len(head) < 32:
            return False
        size = int.from_bytes(head[16:18], "big")
        pages = int.from_bytes(head[28:32], "big")
        return self.path.stat().st_size < pages * (65_536 if size == 1 else size)

    def _mend(self) -> None:
        """Keep what can be read of a file that breaks off in a new one.

        The broken file stays beside it.
        """
        kept: list[Line] = []
        with contextlib.closing(sqlite3.connect(self.path)) as old:
            old.execute("PRAGMA writable_schema=ON")  # lets a file be read that is too short
            known = old.execute("SELECT key, value FROM market").fetchall()
            with contextlib.suppress(sqlite3.DatabaseError):
                for line in old.execute("SELECT number, line FROM journal ORDER BY number"):
                    kept.append(line)
        broken = self.path.with_name(self.path.name + ".broken")
        os.replace(self.path, broken)
        for end in ("-wal", "-shm"):
            self.path.with_name(self.path.name + end).unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(self.path)) as new, new:
            new.executescript(_TABLES)
            new.executemany("INSERT INTO market VALUES (?, ?)", known)
            new.executemany("INSERT INTO journal VALUES (?, ?)", kept)
        self.mended = f"{self.path} broke off in the middle; the broken file is kept as {broken}"

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None
