"""`--layout reference`: the three tables, kept up to date while the market is served."""

from __future__ import annotations

import json
import sqlite3

import pytest
from real_servers import ANN, TACO, Served, offer, pay, profile, send, text, until

from marketeval.adapters.magentic import is_database, read_database
from marketeval.metrics.analytics import analytics


@pytest.fixture
def served(tmp_path):
    path = tmp_path / "run.db"
    options = ("--layout", "reference", "--rules", "compatible", "--clock", "logical")
    with Served(str(path), *options) as server:
        server.register(TACO)
        server.register(ANN)
        yield server, path


def query(path, sql):
    with sqlite3.connect(path, timeout=20) as database:
        return database.execute(sql).fetchall()


def trade(server):
    server.execute("customer_1", {"type": "search", "query": "taco", "search_algorithm": "simple"})
    server.execute("customer_1", send("customer_1", "business_1", text("How much?")))
    server.execute("business_1", {"type": "fetch_messages"})
    server.execute("business_1", send("business_1", "customer_1", offer("p1")))
    server.execute("customer_1", {"type": "fetch_messages"})
    server.execute("customer_1", send("customer_1", "business_1", pay("p1")))
    server.execute("customer_1", send("customer_1", "business_1", pay("none")))
    server.ask("POST", "/logs/create", {"log": {"level": "info", "name": "customer_1"}})


def test_the_tables_are_those_of_the_reference_while_it_is_served(served):
    server, path = served
    trade(server)
    assert is_database(path)
    tables = {
        table: [row[1] for row in query(path, f"PRAGMA table_info({table})")]
        for table in ("agents", "actions", "logs")
    }
    assert tables == {
        "agents": ["id", "created_at", "data", "agent_embedding"],
        "actions": ["id", "created_at", "data"], "logs": ["id", "created_at", "data"],
    }  # fmt: skip
    rows = query(path, "SELECT rowid, created_at, data FROM actions ORDER BY rowid")
    assert [row[0] for row in rows] == list(range(1, 8))
    assert {row[1] for row in rows} == {"2025-01-01T00:00:00+00:00"}
    documents = [json.loads(row[2]) for row in rows]
    assert [one["request"]["name"] for one in documents] == [
        "Search", "SendMessage", "FetchMessages", "SendMessage", "FetchMessages", "SendMessage",
        "SendMessage",
    ]  # fmt: skip
    assert documents[0]["result"]["content"]["businesses"] == [TACO]
    assert documents[2]["result"]["content"]["messages"][0]["message"] == text("How much?")
    assert documents[6]["result"]["is_error"] is True  # failed actions are stored
    agents = query(path, "SELECT id, data FROM agents ORDER BY rowid")
    assert [(name, json.loads(data)) for name, data in agents] == [
        ("business_1", TACO), ("customer_1", ANN),
    ]  # fmt: skip
    assert json.loads(query(path, "SELECT data FROM logs")[0][0])["level"] == "info"


def test_the_analysis_of_the_reference_reads_the_file(served):
    server, path = served
    trade(server)
    server.stop()
    found = analytics(read_database(path), 0)
    # the test vector "proposal Taco 10 paid": 2 x 12 - 10
    assert found["total_marketplace_customer_utility"] == 14
    assert found["transaction_summary"]["payments_made"] == 1
    assert found["action_breakdown"] == {"SendMessage": 4, "FetchMessages": 2, "Search": 1}


def test_agents_inserted_from_outside_are_seen(served):
    server, path = served
    bob = profile("customer_bob")
    with sqlite3.connect(path, timeout=20) as database:
        row = ("customer_bob", "2025-01-01T00:00:00+00:00", json.dumps(bob))
        database.execute("INSERT INTO agents (id, created_at, data) VALUES (?, ?, ?)", row)
        database.execute("INSERT INTO agents (id, created_at, data) VALUES ('x', '', 'broken')")
    until(lambda: server.ask("GET", "/agents/customer_bob").status == 200)
    assert server.ask("GET", "/agents/customer_bob").json["agent"] == bob
    sent = server.execute("customer_bob", send("customer_bob", "business_1", text("hi")))
    assert sent.json["metadata"] == {"status": "sent"}
    server.kill()
    server.again()
    assert server.ask("GET", "/agents/customer_bob").status == 200
    assert query(path, "SELECT count(*) FROM agents WHERE id = 'customer_bob'") == [(1,)]
    assert server.ask("GET", "/health").status == 200
