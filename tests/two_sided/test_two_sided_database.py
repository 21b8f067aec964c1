"""The reference's SQLite layout: written as its tools read it, and read back the same."""

from __future__ import annotations

import json
import sqlite3

import pytest
from two_sided_games import play, published

from marketeval.adapters.magentic import is_database, llm_statistics, read_database, write_database
from marketeval.core.errors import DataError
from marketeval.metrics.analytics import analytics, audit
from marketeval.metrics.base import evaluate, parse_metric


@pytest.fixture(scope="module", params=["strict", "compatible"])
def episode(request, tmp_path_factory):
    log = play(published("mexican_10_30"), seller="overcharger", rules=request.param)
    path = tmp_path_factory.mktemp("db") / "run.db"
    write_database(log, path, seed=1)
    return log, path


def query(path, sql):
    with sqlite3.connect(path) as database:
        return database.execute(sql).fetchall()


def test_the_three_tables_have_the_references_columns(episode):
    _, path = episode
    columns = {
        table: [row[1] for row in query(path, f"PRAGMA table_info({table})")]
        for table in ("agents", "actions", "logs")
    }
    assert columns == {
        "agents": ["id", "created_at", "data", "agent_embedding"],
        "actions": ["id", "created_at", "data"],
        "logs": ["id", "created_at", "data"],
    }


def test_rows_are_numbered_without_gaps_in_the_order_of_the_actions(episode):
    _, path = episode
    rows = [row for (row,) in query(path, "SELECT rowid FROM actions ORDER BY rowid")]
    assert rows == list(range(1, len(rows) + 1))
    assert query(path, "SELECT created_at FROM actions LIMIT 1") == [("2025-01-01T00:00:00+00:00",)]


def test_an_action_is_request_and_result_of_its_agent(episode):
    _, path = episode
    documents = [json.loads(one) for (one,) in query(path, "SELECT data FROM actions")]
    assert {one["request"]["name"] for one in documents} == {
        "SendMessage", "FetchMessages", "Search",
    }  # fmt: skip
    for one in documents:
        assert set(one) == {"agent_id", "request", "result"}
        assert set(one["request"]) == {"name", "parameters", "metadata"}
        assert set(one["result"]) == {"content", "is_error", "metadata"}
    search = next(one for one in documents if one["request"]["name"] == "Search")
    assert len(search["result"]["content"]["businesses"]) == 10
    fetch = next(one for one in documents if one["request"]["name"] == "FetchMessages")
    heard = fetch["result"]["content"]["messages"][0]
    assert set(heard) == {"from_agent_id", "to_agent_id", "created_at", "message", "index"}


def test_refused_actions_are_stored_as_errors(episode):
    log, path = episode
    refused = log.scan("message").collect().filter(refused="surcharge").height
    errors = query(path, "SELECT data FROM actions WHERE data LIKE '%\"is_error\": true%'")
    assert len(errors) == refused


def test_the_analysis_of_the_file_is_that_of_the_log(episode):
    log, path = episode
    assert is_database(path)
    again = read_database(path)
    assert analytics(again, 0) == analytics(log, 1)
    texts = ("PaidByPlace", "ProposalLatency", "SellerProfit", "OptimalWelfare(at=floor)")
    metrics = [parse_metric(one) for one in texts]
    ours, theirs = evaluate(log, metrics), evaluate(again, metrics)
    assert ours.drop("seed").equals(theirs.drop("seed"))


def test_the_same_log_gives_the_same_content(episode, tmp_path):
    log, path = episode
    write_database(log, tmp_path / "again.db", seed=1)
    for table in ("agents", "actions", "logs"):
        everything = f"SELECT * FROM {table}"
        assert query(path, everything) == query(tmp_path / "again.db", everything)


def test_model_calls_in_the_logs_feed_the_statistics_and_the_audit(tmp_path):
    log = play(published("mexican_3_9"))
    first = log.scan("proposal").collect().row(0, named=True)
    call = {
        "level": "debug",
        "name": first["recipient"],
        "message": None,
        "data": {
            "type": "llm_call", "success": True, "provider": "openai", "model": "m",
            "prompt": [{"role": "user", "content": f"offer {first['id']}"}], "response": "ok",
        },
        "metadata": {"agent_id": first["recipient"]},
    }  # fmt: skip
    path = tmp_path / "run.db"
    write_database(log, path, seed=1, llm_calls=[(0, call)])
    assert llm_statistics(path) == {
        "llm_providers": ["openai"], "llm_models": ["m"], "total_llm_calls": 1,
        "failed_llm_calls": 0,
    }  # fmt: skip
    assert audit(read_database(path), 0)["proposals_seen"] == 1


def test_a_file_that_is_no_such_database_is_refused_in_one_line(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE agents (x)")
    with pytest.raises(DataError, match="no database of the Magentic Marketplace"):
        read_database(path)
