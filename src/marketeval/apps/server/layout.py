"""`--layout reference`: the reference's three tables beside the journal, kept up to date.

They are written in the same transaction as the journal's lines, so the reference's own tools read
the file while it is served. Agents that others insert into its table enter the market.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import uuid
from typing import Any

from pydantic_core import from_json, to_json

from marketeval.actions import two_sided as act
from marketeval.apps.server.book import Json, moment
from marketeval.apps.server.host import Unavailable
from marketeval.core.errors import StoreError
from marketeval.markets.two_sided.journal import Recorded
from marketeval.markets.two_sided.wire import result_document
from marketeval.stores.base import Statement
from marketeval.stores.sqlite import SqliteJournal

TABLES = """
CREATE TABLE IF NOT EXISTS agents (id TEXT PRIMARY KEY, created_at TEXT NOT NULL,
                                   data TEXT NOT NULL, agent_embedding BLOB);
CREATE TABLE IF NOT EXISTS actions (id TEXT PRIMARY KEY, created_at TEXT NOT NULL,
                                    data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS logs (id TEXT PRIMARY KEY, created_at TEXT NOT NULL,
                                 data TEXT NOT NULL);
"""
OTHERS = frozenset({"agents", "actions", "logs"})
EVERY_S = 0.5
_AGENT = (
    "INSERT INTO agents (id, created_at, data) VALUES (?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET data = excluded.data"
)
_ACTION = "INSERT INTO actions (rowid, id, created_at, data) VALUES (?, ?, ?, ?)"
_LOG = "INSERT INTO logs (rowid, id, created_at, data) VALUES (?, ?, ?, ?)"
log = logging.getLogger("marketeval.server")


class Layout:
    """Writes the second layout, and looks for agents in it that came from outside."""

    def __init__(self, store: SqliteJournal) -> None:
        self._store = store
        self._refused: set[object] = set()

    def statements(self, one: Recorded, documents: Json) -> tuple[Statement, ...]:
        """What an entry adds to the tables."""
        entry = one.entry
        if entry is None:
            return ()
        at, action = moment(one.at), entry.action
        if isinstance(action, act.Register):
            data = json.dumps(one.document, ensure_ascii=False)
            return ((_AGENT, (entry.caller, at, data)),)
        result = result_document(entry.result, entry.caller)
        if isinstance(action, act.Search) and not result["is_error"]:
            shown = [documents[hit["id"]] for hit in result["content"]["businesses"]]
            result["content"]["businesses"] = shown
        document = {
            "agent_id": entry.caller,
            "request": {
                "name": type(action).__name__,
                "parameters": act.plain(action),
                "metadata": {},
            },
            "result": result,
        }
        data = to_json(document).decode()
        return ((_ACTION, (entry.row, str(uuid.uuid4()), at, data)),)

    def note(self, number: int, at: int, document: Json) -> tuple[Statement, ...]:
        """What a log document adds to the tables."""
        data = to_json(document).decode()
        return ((_LOG, (number, str(uuid.uuid4()), moment(at), data)),)

    async def watch(self, service: Any) -> None:  # any: the service, which makes this
        """Enter agents that others insert, for as long as the server runs."""
        version: object = None
        while True:
            await asyncio.sleep(EVERY_S)
            with contextlib.suppress(StoreError, Unavailable):
                seen = await self._store.rows("PRAGMA data_version")
                if seen != version:
                    version = seen
                    await self._enter(service)

    async def _enter(self, service: Any) -> None:  # any: as above
        for name, data in await self._store.rows("SELECT id, data FROM agents ORDER BY rowid"):
            if name in service.host.documents or name in self._refused:
                continue
            try:
                document = from_json(str(data), allow_inf_nan=False)
                document = {**document, "id": name, "metadata": document.get("metadata") or {}}
                service.checked(document)
            except Exception as error:  # whatever others wrote
                self._refused.add(name)
                log.warning("agent %r from outside is not readable: %s", name, error)
                continue
            await service.host.register(document)
