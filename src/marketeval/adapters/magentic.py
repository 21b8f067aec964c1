"""The Magentic Marketplace's SQLite file: writing one from a log, and reading one as a log.

Three tables (agents, actions, logs), one JSON document per row, in row order; the layout its own
analysis, audit and user interface read. Row ids are made from seed and row, so that the same log
gives the same file content.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from marketeval.actions import two_sided as act
from marketeval.adapters.magentic_calls import is_call, statistics
from marketeval.core.errors import DataError
from marketeval.core.log import EventLog, LogReader
from marketeval.events.two_sided import KINDS
from marketeval.markets.two_sided.wire import moment

Json = dict[str, Any]  # any: parsed JSON
Row = tuple[int, int, Json]  # row number, round, document
_NAMESPACE = uuid.UUID("8f1d3a52-6b0e-5c39-9d57-2f6f1c1f0a11")
_TABLES = """
CREATE TABLE agents (id TEXT PRIMARY KEY, created_at TEXT NOT NULL, data TEXT NOT NULL,
                     agent_embedding BLOB);
CREATE TABLE actions (id TEXT PRIMARY KEY, created_at TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE logs (id TEXT PRIMARY KEY, created_at TEXT NOT NULL, data TEXT NOT NULL);
"""
_DIALOGUE = ("SendMessage", "FetchMessages", "Search")


def write_database(
    log: LogReader, path: Path, *, seed: int, llm_calls: Iterable[tuple[int, Json]] = ()
) -> None:
    """Write one episode as the reference's SQLite file; the file must not be there yet.

    `llm_calls` are rounds and log documents of model calls (`magentic_calls`), if there were any.
    """
    profiles = dict(_profiles(log))
    rows = sorted(_actions(log, seed, profiles), key=lambda one: one[0])
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(_TABLES)
        database.executemany(
            "INSERT INTO agents (id, created_at, data) VALUES (?, ?, ?)",
            [(name, moment(0), _dump(one)) for name, one in profiles.items()],
        )
        database.executemany(
            "INSERT INTO actions (rowid, id, created_at, data) VALUES (?, ?, ?, ?)",
            [(row, _uuid(seed, "action", row), moment(now), _dump(one)) for row, now, one in rows],
        )
        notes = [*llm_calls, *_notes(log, seed), *_last_briefings(log, seed)]
        notes.sort(key=lambda one: one[0])
        database.executemany(
            "INSERT INTO logs (id, created_at, data) VALUES (?, ?, ?)",
            [
                (_uuid(seed, "log", number), moment(now), _dump(one))
                for number, (now, one) in enumerate(notes)
            ],
        )


def read_database(path: Path) -> EventLog:
    """An episode of the reference, or one we exported, as a log with the seed 0.

    Rounds are whole seconds since the first action. Profiles that are neither a customer nor a
    business are left out, as are actions that are not the protocol's three.
    """
    agents, actions, logs = _read_tables(path)
    log = EventLog(KINDS)
    log.begin(0)
    customers, businesses = _people(path, agents)
    _introduce(log, path, customers, businesses)
    start = _time(actions[0][1]) if actions else None
    for row, created, document in actions:
        now = int((_time(created) - start).total_seconds()) if start else 0
        try:
            _replay(log, row, max(now, 0), document)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}: action {row} is not readable: {error!r}") from None
    _seen(log, customers, actions, logs)
    log.end()
    return log


def is_database(path: Path) -> bool:
    """Whether a file is SQLite."""
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\x00"


def llm_statistics(path: Path) -> Json:
    """The reference's keys on model calls, from the logs of its file."""
    return statistics(one for _, _, one in _read_tables(path)[2])


# ---- writing


def _profiles(log: LogReader) -> Iterator[tuple[str, Json]]:
    """Agent documents, businesses first, in the order of registration."""
    menus: dict[str, dict[str, float]] = {}
    for name, item, price in _select(log, "menu", "business", "item", "price"):
        menus.setdefault(name, {})[item] = price
    amenities: dict[str, dict[str, bool]] = {}
    for name, amenity, has in _select(log, "amenity", "business", "amenity", "has"):
        amenities.setdefault(name, {})[amenity] = has
    columns = ("business", "name", "description", "rating", "floor", "progenitor")
    for id_, name, text, rating, floor, progenitor in _select(log, "business", *columns):
        made = act.Business(
            id=id_,
            name=name,
            description=text,
            rating=rating,
            menu_features=menus.get(id_, {}),
            amenity_features=amenities.get(id_, {}),
            min_price_factor=floor,
            progenitor_customer=progenitor,
        )
        yield id_, act.profile_document(made)
    wants: dict[str, dict[str, float]] = {}
    for name, item, price in _select(log, "want", "customer", "item", "price"):
        wants.setdefault(name, {})[item] = price
    needs: dict[str, list[str]] = {}
    for name, amenity in _select(log, "need", "customer", "amenity"):
        needs.setdefault(name, []).append(amenity)
    for id_, name, request in _select(log, "customer", "customer", "name", "request"):
        wish = act.Customer(
            id=id_,
            name=name,
            request=request,
            menu_features=wants.get(id_, {}),
            amenity_features=needs.get(id_, []),
        )
        yield id_, act.profile_document(wish)


def _actions(log: LogReader, seed: int, profiles: Mapping[str, Json]) -> Iterator[Row]:
    messages = list(_messages(log, seed))
    inboxes: dict[str, list[tuple[int, Json]]] = {}
    for row, now, agent, parameters, refused in messages:
        error = _error(refused, parameters)
        if not error:
            heard = {
                "from_agent_id": parameters["from_agent_id"],
                "to_agent_id": parameters["to_agent_id"],
                "created_at": moment(now),
                "message": parameters["message"],
                "index": row,
            }
            inboxes.setdefault(parameters["to_agent_id"], []).append((row, heard))
        result = _result(error or parameters, failed=bool(error))
        if not error:
            result["metadata"] = {"status": "sent"}
        yield row, now, _document(agent, "SendMessage", parameters, result)
    for row, now, agent, after, upto in _of_seed(
        log, "fetch", seed, "row", "round", "agent", "after", "upto"
    ):
        asked = act.plain(act.FetchMessages(after_index=after or None))
        heard_now = [one for at, one in inboxes.get(agent, ()) if after < at <= upto]
        content = {"messages": heard_now, "has_more": False}
        yield row, now, _document(agent, "FetchMessages", asked, _result(content))
    shown: dict[int, list[str]] = {}
    for row, business in _of_seed(log, "shown", seed, "row", "business"):
        shown.setdefault(row, []).append(business)
    columns = (
        "row",
        "round",
        "agent",
        "query",
        "rule",
        "page",
        "limit",
        "found",
        "pages",
        "refused",
    )
    for row, now, agent, query, rule, page, limit, found, pages, refused in _of_seed(
        log, "search", seed, *columns
    ):
        asked = act.plain(act.Search(query=query, search_algorithm=rule, page=page, limit=limit))
        content = {
            "businesses": [profiles[one] for one in shown.get(row, ())],
            "search_algorithm": rule,
            "total_possible_results": found,
            "total_pages": pages,
        }
        error = _error(refused, asked)
        result = _result(error or content, failed=bool(error))
        yield row, now, _document(agent, "Search", asked, result)


def _messages(log: LogReader, seed: int) -> Iterator[tuple[int, int, str, Json, str]]:
    lines: dict[int, list[act.OrderItem]] = {}
    for row, id_, item, quantity, price in _of_seed(
        log, "proposal_item", seed, "row", "item_id", "item", "quantity", "unit_price"
    ):
        lines.setdefault(row, []).append(act.OrderItem(id_, item, quantity, price))
    offers = {
        row: (total, delivery)
        for row, total, delivery in _of_seed(log, "proposal", seed, "row", "total", "delivery")
    }
    payments = {
        row: (method, address)
        for row, method, address in _of_seed(log, "payment", seed, "row", "method", "address")
    }
    columns = (
        "row", "round", "agent", "sender", "recipient", "kind", "content", "proposal", "refused",
    )  # fmt: skip
    for row, now, agent, sender, recipient, kind, content, proposal, refused in _of_seed(
        log, "message", seed, *columns
    ):
        message: act.Message
        if kind == "text":
            message = act.TextMessage(content)
        elif kind == "payment":
            method, address = payments[row]
            message = act.Payment(
                proposal_message_id=proposal,
                payment_method=method,
                delivery_address=address,
                payment_message=content,
            )
        else:
            total, delivery = offers[row]
            message = act.OrderProposal(
                id=proposal,
                items=tuple(lines.get(row, ())),
                total_price=total,
                special_instructions=content,
                estimated_delivery=delivery,
            )
        action = act.SendMessage(from_agent_id=sender, to_agent_id=recipient, message=message)
        yield row, now, agent, {**act.plain(action), "created_at": moment(now)}, refused


def _notes(log: LogReader, seed: int) -> Iterator[tuple[int, Json]]:
    """Every decision, with its round, as a log entry of its agent."""
    columns = ("round", "agent", "toward", "kind", "reason", "problem")
    for now, agent, toward, kind, reason, problem in _of_seed(log, "decision", seed, *columns):
        document = {
            "level": "warning" if problem else "info",
            "name": agent,
            "message": problem or reason or kind,
            "data": {"type": "decision", "decision": kind, "toward": toward or None},
            "metadata": {"agent_id": agent},
        }
        yield now, document


def _last_briefings(log: LogReader, seed: int) -> Iterator[tuple[int, Json]]:
    """The proposals before each customer at its last decision, also where no model took it."""
    ids = dict(_of_seed(log, "proposal", seed, "row", "id"))
    seen: dict[str, list[str]] = {}
    for customer, row in _of_seed(log, "in_last_briefing", seed, "customer", "row"):
        seen.setdefault(customer, []).append(ids[row])
    for now, customer in _of_seed(log, "left", seed, "round", "customer"):
        document = {
            "level": "debug",
            "name": customer,
            "message": "last decision",
            "data": {"type": "last_briefing", "proposals": seen.get(customer, [])},
            "metadata": {"agent_id": customer},
        }
        yield now, document


def _document(agent: str, name: str, parameters: Json, result: Json) -> Json:
    request = {"name": name, "parameters": parameters, "metadata": {}}
    return {"agent_id": agent, "request": request, "result": result}


def _result(content: Json, *, failed: bool = False) -> Json:
    return {"content": content, "is_error": failed, "metadata": {}}


def _error(refused: str, parameters: Json) -> Json:
    """The error's content, empty where there was none."""
    if not refused:
        return {}
    if refused == "unknown_recipient":
        return {"error": f"to_agent_id {parameters['to_agent_id']} not found"}
    if refused in ("unknown_proposal", "expired"):
        name = parameters["message"]["proposal_message_id"]
        words = f"No unexpired order proposals found with id {name}"
        return {"error_type": "invalid_proposal", "message": words}
    return {"error_type": refused, "message": refused.replace("_", " ")}


def _uuid(seed: int, kind: str, row: int) -> str:
    return str(uuid.uuid5(_NAMESPACE, f"{seed}/{kind}/{row}"))


def _dump(document: Json) -> str:
    return json.dumps(document, ensure_ascii=False)


def _select(log: LogReader, kind: str, *columns: str) -> Sequence[tuple[Any, ...]]:  # any: values
    return log.scan(kind).select(columns).collect().rows()


def _of_seed(
    log: LogReader, kind: str, seed: int, *columns: str
) -> Sequence[tuple[Any, ...]]:  # any: column values
    return log.scan(kind).filter(pl.col("seed") == seed).select(columns).collect().rows()


# ---- reading


def _read_tables(path: Path) -> tuple[list[Json], list[tuple[int, str, Json]], list[Any]]:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            agents = [json.loads(one) for (one,) in database.execute(
                "SELECT data FROM agents ORDER BY rowid")]  # fmt: skip
            actions, logs = (
                [
                    (row, created, json.loads(data))
                    for row, created, data in database.execute(
                        f"SELECT rowid, created_at, data FROM {table} ORDER BY rowid"
                    )
                ]
                for table in ("actions", "logs")
            )
    except (sqlite3.Error, ValueError) as error:
        raise DataError(
            f"{path} is no database of the Magentic Marketplace (agents, actions, logs): {error}"
        ) from None
    return agents, actions, logs


def _people(path: Path, agents: Sequence[Json]) -> tuple[list[act.Customer], list[act.Business]]:
    customers, businesses = [], []
    for one in agents:
        if "business" not in one and "customer" not in one:
            continue
        try:
            profile = act.read_profile(one)
        except (ValueError, LookupError) as error:
            what = str(error).splitlines()[0]
            raise DataError(
                f"{path}: agent {one.get('id')!r} has no readable profile: {what}"
            ) from None
        if isinstance(profile, act.Business):
            businesses.append(profile)
        else:
            customers.append(profile)
    return customers, businesses


def _introduce(
    log: EventLog, path: Path, customers: list[act.Customer], businesses: list[act.Business]
) -> None:
    from marketeval.markets.two_sided.introduction import introduce
    from marketeval.markets.two_sided.population import Population
    from marketeval.markets.two_sided.scenario import TwoSided
    from marketeval.markets.two_sided.switches import COMPATIBLE

    people = Population(customers=customers, businesses=businesses, source=path.name)
    introduce(log, TwoSided(rules=COMPATIBLE, rounds=2**31 - 1), people, {})


def _replay(log: EventLog, row: int, now: int, document: Json) -> None:
    """One stored action as events."""
    agent, request, result = document["agent_id"], document["request"], document["result"]
    name, given = request["name"], request["parameters"]
    if name not in _DIALOGUE:
        return
    content = result.get("content")
    refused = _reason(content) if result.get("is_error") else ""
    if name == "SendMessage":
        _replay_message(log, row, now, agent, act.read(act.SendMessage, given), refused)
    elif name == "Search":
        asked, found = act.read(act.Search, given), content if isinstance(content, dict) else {}
        log.append(
            "search", row=row, round=now, agent=agent, query=asked.query,
            rule=asked.search_algorithm, page=asked.page, limit=asked.limit,
            found=int(found.get("total_possible_results", 0)),
            pages=int(found.get("total_pages", 0)), refused=refused,
        )  # fmt: skip
        shown = [one["id"] for one in found.get("businesses", ())]
        if shown:
            places = list(range(len(shown)))
            log.append("shown", row=row, round=now, place=places, business=shown)
    else:
        messages = content.get("messages", []) if isinstance(content, dict) else []
        last = max((int(one["index"]) for one in messages), default=0)
        after = int(given.get("after_index") or 0)
        log.append(
            "fetch", row=row, round=now, agent=agent, after=after, upto=max(last, after),
            messages=len(messages),
        )  # fmt: skip


def _replay_message(
    log: EventLog, row: int, now: int, agent: str, sent: act.SendMessage, refused: str
) -> None:
    from marketeval.markets.two_sided.pages import Pages
    from marketeval.markets.two_sided.state import Entry, Refused, Sent

    pages = Pages()
    result = Refused(refused, refused) if refused else Sent(sent)
    pages.entry(Entry(row, now, agent, sent, result), None)
    pages.write(log)


def _reason(content: Any) -> str:  # any: JSON
    if isinstance(content, dict) and content.get("error_type") == "invalid_proposal":
        return "unknown_proposal"
    if isinstance(content, dict) and "error" in content:
        return "unknown_recipient"
    return str(content.get("error_type", "malformed")) if isinstance(content, dict) else "malformed"


def _seen(
    log: EventLog,
    customers: Sequence[act.Customer],
    actions: Sequence[tuple[int, str, Json]],
    logs: Sequence[tuple[int, str, Json]],
) -> None:
    """The proposals whose id stands in the customer's last model call, prompt or response; in a
    file without model calls, those that our own export says were before it."""
    last = {
        one["metadata"]["agent_id"]: json.dumps(
            [one["data"].get("prompt"), one["data"].get("response")]
        )
        for _, _, one in logs
        if is_call(one) and "agent_id" in (one.get("metadata") or {})
    }
    last = last or {
        one["name"]: json.dumps(one["data"]["proposals"])
        for _, _, one in logs
        if (one.get("data") or {}).get("type") == "last_briefing"
    }
    known = {one.id for one in customers} & set(last)
    for row, _, document in actions:
        parameters = document["request"]["parameters"]
        message = parameters.get("message") or {}
        to = parameters.get("to_agent_id")
        if to in known and message.get("type") == "order_proposal" and message["id"] in last[to]:
            log.append("in_last_briefing", customer=to, row=row)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
