"""A journal in a PostgreSQL schema. A batch is one statement, so one round trip and one commit.

The writer's lock is an advisory lock of the connection that writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from marketeval.core.errors import DataError, StoreError, UsageError
from marketeval.stores.base import CHUNK, FORMAT, Batch, Line, foreign, other_format, taken

TIMEOUT_S = 10.0
_DOWN = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)
_TABLES = """
CREATE TABLE IF NOT EXISTS market (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE IF NOT EXISTS journal (number bigint PRIMARY KEY, line text NOT NULL);
CREATE TABLE IF NOT EXISTS aside (number bigint NOT NULL, line text NOT NULL);
CREATE TABLE IF NOT EXISTS notes (number bigint PRIMARY KEY, at bigint NOT NULL,
                                  note text NOT NULL);
"""
_ONE = "INSERT INTO journal VALUES ($1, $2)"
_LINES = "INSERT INTO journal SELECT * FROM unnest($1::bigint[], $2::text[])"
_BOTH = (
    "WITH told AS (INSERT INTO notes SELECT * FROM unnest($3::bigint[], $4::bigint[], $5::text[])) "
    + _LINES
)


class PostgresJournal:
    """One market in one schema, named by `schema=` in the address (default: marketeval)."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        asked = dict(parse_qsl(parts.query))
        self.schema = asked.pop("schema", "marketeval")
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,50}", self.schema):
            raise UsageError(
                f"schema '{self.schema}': expected lower-case letters, digits and underscores"
            )
        self._url = urlunsplit(parts._replace(query=urlencode(asked)))
        self.where = f"{parts.hostname or asked.get('host', 'localhost')}{parts.path}#{self.schema}"
        self._writer: asyncpg.Connection[Any] | None = None  # any: asyncpg's record class
        self._turn = asyncio.Lock()  # a connection does one thing at a time

    async def open(self, about: Mapping[str, str]) -> Mapping[str, str]:
        """As the port."""
        try:
            there = await self._connect()
        except _DOWN as error:
            raise UsageError(
                f"the database at {self.where} cannot be reached: {_words(error)}; is it running, "
                "and is the address right?"
            ) from None
        try:
            tables = {
                one["tablename"]
                for one in await there.fetch(
                    "SELECT tablename FROM pg_tables WHERE schemaname = $1", self.schema
                )
            }
            if tables and not tables >= {"market", "journal"}:
                raise DataError(foreign(self.where))
            if not await self._lock(there):
                raise UsageError(taken(self.where))
            if tables:
                known = await self._about(there)
                if known.get("format") != FORMAT:
                    raise DataError(other_format(self.where, known.get("format", "")))
            await there.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema};" + _TABLES)
            if not tables:
                await there.executemany(
                    "INSERT INTO market VALUES ($1, $2)", [("format", FORMAT), *about.items()]
                )
            self._writer = there
            return await self._about(there)
        except _DOWN as error:
            await self.close()
            raise DataError(f"{self.where} cannot be used: {_words(error)}") from None
        except UsageError:
            await there.close()
            raise

    async def read(self) -> AsyncIterator[Sequence[Line]]:
        """As the port."""
        number = 0
        sql = "SELECT number, line FROM journal WHERE number > $1 ORDER BY number LIMIT $2"
        while found := await self._fetch(sql, number, CHUNK):
            yield [(one["number"], one["line"]) for one in found]
            number = found[-1]["number"]

    async def set_aside(self, number: int) -> int:
        """As the port."""
        sql = (
            "WITH lost AS (DELETE FROM journal WHERE number >= $1 RETURNING number, line), "
            "kept AS (INSERT INTO aside SELECT * FROM lost) SELECT count(*) AS lost FROM lost"
        )
        return int((await self._fetch(sql, number))[0]["lost"])

    async def append(self, batch: Batch) -> None:
        """As the port."""
        if len(batch.lines) == 1 and not batch.notes:
            await self._fetch(_ONE, *batch.lines[0])
            return
        lines = list(zip(*batch.lines, strict=True)) or [(), ()]
        if batch.notes:
            await self._fetch(_BOTH, *lines, *zip(*batch.notes, strict=True))
        else:
            await self._fetch(_LINES, *lines)

    async def recover(self) -> int:
        """As the port: a new connection, the lock again, and the last line."""
        await self.close()
        try:
            there = await self._connect()
            if not await self._lock(there):
                await there.close()
                raise StoreError(taken(self.where))
            self._writer = there
        except _DOWN as error:
            raise StoreError(f"{self.where}: {_words(error)}") from error
        return int((await self._fetch("SELECT max(number) AS last FROM journal"))[0]["last"] or 0)

    async def notes(
        self, *, after: int | None, before: int | None, offset: int, limit: int | None
    ) -> Sequence[str]:
        """As the port."""
        sql = "SELECT note FROM notes WHERE at > $1 AND at < $2 ORDER BY number OFFSET $3 LIMIT $4"
        low, high = -(2**63) if after is None else after, 2**63 - 1 if before is None else before
        return [one["note"] for one in await self._fetch(sql, low, high, min(offset, 2**62), limit)]

    async def count_notes(self) -> int:
        """As the port."""
        return int((await self._fetch("SELECT count(*) AS notes FROM notes"))[0]["notes"])

    async def close(self) -> None:
        """As the port; the lock ends with the connection."""
        there, self._writer = self._writer, None
        if there is not None:
            with contextlib.suppress(*_DOWN):
                await there.close(timeout=2)
            there.terminate()

    async def _connect(self) -> asyncpg.Connection[Any]:  # any: as above
        try:
            return await asyncpg.connect(
                self._url,
                timeout=TIMEOUT_S,
                command_timeout=60,
                server_settings={"search_path": self.schema},
            )
        except ValueError as error:
            raise UsageError(f"the address of the database is not readable: {error}") from None

    async def _lock(self, there: asyncpg.Connection[Any]) -> bool:  # any: as above
        sql = "SELECT pg_try_advisory_lock(hashtextextended('marketeval ' || $1, 0)) AS got"
        return bool(await there.fetchval(sql, self.schema))

    async def _about(self, there: asyncpg.Connection[Any]) -> dict[str, str]:  # any: as above
        return {
            one["key"]: one["value"] for one in await there.fetch("SELECT key, value FROM market")
        }

    async def _fetch(self, sql: str, *values: object) -> Sequence[Any]:  # any: asyncpg's records
        there = self._writer
        if there is None:
            raise StoreError(f"{self.where} is not connected")
        try:
            async with self._turn:
                found: Sequence[Any] = await there.fetch(sql, *values)  # any: as above
                return found
        except _DOWN as error:
            raise StoreError(f"{self.where}: {_words(error)}") from error


def _words(error: BaseException) -> str:
    """The first line of an error, which never holds a password."""
    return (str(error) or type(error).__name__).splitlines()[0]
