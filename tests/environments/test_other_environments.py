"""Retailers and the entry into a market of answers, held against the command line's own runs."""

from __future__ import annotations

import asyncio
import csv
import json
from importlib.resources import files

import polars as pl
import pytest
import yaml
from evaluations import play, rewards
from scripted_others import knowing, retailer

from marketeval.apps.cli.main import run as marketeval
from marketeval.experiments.hindsight import best_responses
from marketeval.experiments.run_directory import RunDirectory
from marketeval.metrics.base import evaluate, parse_metric
from marketeval.testing.fake_endpoint import FakeEndpoint, Fault

BENCH, ENTRY = "market-bench-eval", "marketplace-entry-eval"
SHIPPED = files("marketeval") / "scenarios"
with (SHIPPED / "easy-questions.csv").open() as table:
    ANSWERS = {one["question"]: one["answer"].partition("|")[0] for one in csv.DictReader(table)}


def replies(episode):
    """What the model said in each seat, as JSON values."""
    return {
        trace.task.data.seat: [
            json.loads(node.message.content) for node in trace.nodes if node.sampled
        ]
        for trace in episode.traces
    }


def test_a_retailer_is_rewarded_with_its_share_of_the_best_response(tmp_path):
    with FakeEndpoint(reply=retailer, keep=False) as endpoint:
        episode = asyncio.run(
            play(BENCH, endpoint.url, taskset={"cells": ["focal"], "seeds": [2], "horizon": 3})
        )
    assert episode.ok, episode.errors
    assert len(episode.traces) == 1
    (tmp_path / "replies.json").write_text(json.dumps(replies(episode)))
    scenario = yaml.safe_load((SHIPPED / "market-bench-focal.yaml").read_text())
    scenario["seats"]["focal"] = {
        "agent": "python:said_before:SaidBefore",
        "options": {"file": str(tmp_path / "replies.json")},
    }
    scenario["market"]["horizon"] = 3
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(scenario, sort_keys=False))
    command = ["run", str(tmp_path / "again.yaml"), "--seeds", "2", "--out", str(tmp_path / "run")]
    assert marketeval([*command, "--no-report"]) == 0
    found = best_responses(RunDirectory(tmp_path / "run")).filter(pl.col("subject") == "focal")
    share = found.filter(pl.col("metric") == "ShareOfPossible")["value"].item()
    told = rewards(episode.model_dump(mode="json"))
    assert told["mb"] == pytest.approx(max(-1.0, min(1.0, share)))
    assert told["mb_best_response"] == found.filter(pl.col("metric") == "BestResponse")[
        "value"
    ].item()  # fmt: skip
    profit = evaluate(RunDirectory(tmp_path / "run"), [parse_metric("Profit")])
    assert told["mb_profit"] == profit.filter(pl.col("subject") == "focal")["value"].item()


def test_in_the_arena_every_retailer_is_a_model_with_a_reward_of_its_own():
    settings = {"cells": ["arena"], "seeds": [1], "horizon": 2, "retailers": 3}
    with FakeEndpoint(reply=retailer, keep=False) as endpoint:
        episode = asyncio.run(play(BENCH, endpoint.url, taskset=settings, rivals=1))
    assert episode.ok, episode.errors
    roles = {one.task.data.seat: one.agent.name for one in episode.traces}
    assert roles == {"model-1": "agent", "model-2": "agent", "model-3": "opponent"}
    for trace in episode.traces:
        profit, best = (trace.rewards[name].score for name in ("mb_profit", "mb_best_response"))
        assert trace.reward == pytest.approx(profit / best)
        assert trace.num_turns == 2 * (2 + 1)  # per step two rounds of bids, and the prices


def test_rules_that_change_with_the_stage_are_told_when_they_do():
    settings = {"cells": ["focal"], "seeds": [1], "horizon": 1}
    with FakeEndpoint(reply=retailer, keep=False) as endpoint:
        episode = asyncio.run(play(BENCH, endpoint.url, taskset=settings))
    (trace,) = episode.traces
    system, first, second, prices = [
        node.message.content for node in trace.nodes if node.message.role != "assistant"
    ]
    assert system.startswith("You run a shop. At every step")
    assert first.startswith("Step: 0")
    assert second.startswith("Step: 0")
    assert prices.startswith("You run a shop. Set the prices")


def test_an_entrant_is_asked_each_question_once_and_rewarded_as_the_command_line_counts(tmp_path):
    with FakeEndpoint(reply=knowing(ANSWERS), keep=False) as endpoint:
        episode = asyncio.run(play(ENTRY, endpoint.url, taskset={"seeds": [4]}))
        assert episode.ok, episode.errors
        assert endpoint.requests == len(episode.traces) == len(ANSWERS)
        with (SHIPPED / "easy-rivals.csv").open() as table:
            rivals = dict.fromkeys(one["model"] for one in csv.DictReader(table))
        scenario = {
            "seats": {
                **dict.fromkeys(rivals, "recorded"),
                "entrant": {
                    "agent": endpoint.agent,
                    "enters": 15,
                    "options": {"prompt": "question-v1"},
                },
                "judge": "judge:match",
            },
            "outcomes": [str(SHIPPED / "easy-rivals.csv")],
            "items": "shipped:easy-questions.csv",
            "static": True,
            "market": {"horizon": 60, "users": {"population": 20, "per_step": 10}},
            "metrics": [
                "ShareVersusFair(start=30, stop=60)",
                "Retention(m=10)",
                "LongitudinalUtility",
            ],
            "seeds": "4",
        }
        (tmp_path / "entry.yaml").write_text(yaml.safe_dump(scenario, sort_keys=False))
        out = tmp_path / "run"
        command = ["run", str(tmp_path / "entry.yaml"), "--out", str(out), "--no-report"]
        assert marketeval(command) == 0
    table = RunDirectory(out).metrics().filter(pl.col("subject") == "entrant")
    share, retention, utility = table["value"].to_list()
    told = rewards(episode.model_dump(mode="json"))
    assert told["mp"] == pytest.approx(share)
    assert (told["mp_retention"], told["mp_utility"]) == (retention, utility)
    assert told["mp_accuracy"] == 1.0


def test_an_entrant_that_says_nothing_fails_the_episode_by_name():
    silent = next(iter(ANSWERS))

    def empty(number, body):
        return Fault(text="") if silent in str(body["messages"][0]["content"]) else None

    with FakeEndpoint(reply=knowing(ANSWERS), faults=empty, keep=False) as endpoint:
        episode = asyncio.run(play(ENTRY, endpoint.url, taskset={"seeds": [1]}))
    assert not episode.ok
    assert "seat 'question-1' of entry/seed-1: the model's reply is empty" in (
        episode.errors[0].message
    )


def test_an_entry_after_the_half_is_refused():
    with pytest.raises(ValueError, match="expected at most step 30"):
        asyncio.run(play(ENTRY, "http://127.0.0.1:1/v1", taskset={"enters": 31}))
