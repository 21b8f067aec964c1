"""Models as customers and as businesses, behind a chat endpoint that answers by rule."""

from __future__ import annotations

import json
import re
import sqlite3

import pytest

from marketeval.apps.cli.main import run as marketeval
from marketeval.experiments.run_directory import RunDirectory
from marketeval.metrics.base import evaluate, parse_metric
from marketeval.testing.fake_endpoint import FakeEndpoint

ITEM = re.compile(r"^- (.+): (\d+\.\d\d)$", re.MULTILINE)


def decide(body):
    """A shopper that searches, asks the first found, pays the first offer; a seller of one item."""
    told = body["messages"][-1]["content"]
    if "You run " in told:
        name, price = ITEM.findall(told)[0]
        line = {"id": "1", "item_name": name, "quantity": 1, "unit_price": float(price)}
        offer = {"items": [line], "total_price": float(price)}
        return json.dumps({"action_type": "order_proposal", "order_proposal_message": offer})
    if "(paid)" in told:
        return json.dumps({"action_type": "end_transaction", "reason": "done"})
    offers = re.findall(r"\(open\): proposal (\S+):", told)
    if offers:
        messages = {"pay_messages": [{"proposal_message_id": offers[0]}]}
        return json.dumps({"action_type": "send_messages", "messages": messages})
    found = re.findall(r"\((business_\d+)\), rated", told)
    if found:
        texts = [{"content": "What do you sell?", "to_business_id": one} for one in found[:2]]
        return json.dumps({"action_type": "send_messages", "messages": {"text_messages": texts}})
    return json.dumps({"action_type": "search_businesses", "search_query": "food"})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "run"
    with FakeEndpoint(reply=decide) as endpoint:
        command = [
            "run", "magentic", "--set", "population=restaurants-3x9", "--set", "steps=6",
            "--seat", f"customers={endpoint.agent}", "--seat", f"businesses={endpoint.agent}",
            "--out", str(out), "--no-report",
        ]  # fmt: skip
        assert marketeval(command) == 0
        return out, list(endpoint.seen)


def test_models_on_both_sides_play_to_the_end_and_their_decisions_are_counted(run):
    log = RunDirectory(run[0])
    kinds = log.scan("decision").collect()["kind"].to_list()
    assert kinds.count("end_transaction") == 3
    assert kinds.count("order_proposal") == 6
    assert "invalid" not in kinds
    assert log.scan("payment").collect().height == 3
    assert log.scan("structured").collect().height == len(kinds)


def test_a_model_reads_the_wish_and_not_the_private_prices(run):
    out, bodies = run
    told = [body["messages"][-1]["content"] for body in bodies]
    customers = [one for one in told if "You act for" in one]
    assert customers
    assert all("The wish: " in one for one in customers)
    prices = RunDirectory(out).scan("want").collect()["price"].to_list()
    asked_first = [one for one in customers if "decision 1 of" in one]
    assert not any(f"{price:.2f}" in one for one in asked_first for price in prices)


def test_the_cassette_alone_gives_the_same_log(run):
    digest = RunDirectory(run[0]).manifest.log_digest
    assert marketeval(["replay", str(run[0])]) == 0
    assert RunDirectory(run[0]).manifest.log_digest == digest


def test_a_story_holds_what_each_model_was_told_and_what_it_replied(run, capsys):
    command = ["conversation", str(run[0]), "--customer", "customer_0002"]
    assert marketeval(command) == 0
    told = capsys.readouterr().out
    assert told.count("[prompt of customer_0002]") == 4  # it searches, asks, pays, leaves
    assert told.count("[reply of ") == 4 + 2  # and two businesses answer it
    assert '  > {"action_type": "search_businesses", "search_query": "food"}' in told
    assert "| You talk with customer_0002. So far:" in told
    assert "You talk with customer_0001" not in told
    assert marketeval([*command, "--no-prompts"]) == 0
    assert "[prompt of" not in capsys.readouterr().out


def test_the_story_of_one_pair_holds_the_business_s_prompts_alone(run, capsys):
    log = RunDirectory(run[0])
    business = log.scan("payment").collect().filter(payer="customer_0002")["business"][0]
    pair = ["conversation", str(run[0]), "--customer", "customer_0002", "--business", business]
    assert marketeval(pair) == 0
    told = capsys.readouterr().out
    assert f"[prompt of {business}]" in told
    assert "[prompt of customer_0002]" not in told


def test_the_exported_database_holds_every_call_and_audits_alike(run, tmp_path, capsys):
    file = tmp_path / "market.db"
    assert marketeval(["export", str(run[0]), "--to", "magentic", "--out", str(file)]) == 0
    capsys.readouterr()
    calls = [
        json.loads(row)
        for (row,) in sqlite3.connect(file).execute("SELECT data FROM logs ORDER BY rowid")
    ]
    calls = [one for one in calls if one["data"]["type"] == "llm_call"]
    decisions = RunDirectory(run[0]).scan("decision").collect()
    assert [one["metadata"]["agent_id"] for one in calls] == decisions["agent"].to_list()
    assert {one["level"] for one in calls} == {"debug"}
    first = calls[0]["data"]
    assert [one["role"] for one in first["prompt"]] == ["system", "user"]
    assert first["response"] == {"action_type": "search_businesses", "search_query": "food"}
    assert first["response_format"]["properties"]["action_type"]
    assert marketeval(["metrics", str(file), "--analysis"]) == 0
    from_file = json.loads(capsys.readouterr().out)
    assert from_file["total_llm_calls"] == decisions.height
    assert marketeval(["metrics", str(run[0]), "--analysis"]) == 0
    assert json.loads(capsys.readouterr().out) == from_file
    assert marketeval(["metrics", str(file), "ProposalsSeen", "--format", "json"]) == 0
    (seen,) = json.loads(capsys.readouterr().out)
    assert seen["mean"] == 1.0  # each id stands in its customer's last prompt


def test_tokens_per_purchase_are_those_of_all_calls_over_the_payments(run):
    log = RunDirectory(run[0])
    with sqlite3.connect(run[0] / "calls.sqlite") as file:
        query = "SELECT seat, input_tokens + output_tokens FROM call WHERE seat != 'preflight'"
        used = file.execute(query).fetchall()
    total = sum(tokens for _, tokens in used)
    buyers = sum(tokens for seat, tokens in used if seat.startswith("customer"))
    assert 0 < buyers < total
    for text, expected in (("TokensPerPurchase", total),
                           ("TokensPerPurchase(side=customers)", buyers)):  # fmt: skip
        assert evaluate(log, [parse_metric(text)])["value"].to_list() == [expected / 3]
