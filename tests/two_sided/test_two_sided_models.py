"""Models as customers and as businesses, behind a chat endpoint that answers by rule."""

from __future__ import annotations

import json
import re

import pytest

from marketeval.apps.cli.main import run as marketeval
from marketeval.experiments.run_directory import RunDirectory
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
