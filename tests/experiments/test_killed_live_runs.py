"""A run that asks models, killed at ten moments and resumed: nothing is paid for twice."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from marketeval.core.streams import Streams
from marketeval.experiments.run_directory import RunDirectory
from marketeval.testing.fake_endpoint import FakeEndpoint

QUESTIONS, SEATS, AT_ONCE, KILLS = 70, ("anna", "bert", "cleo"), 4, 10
SCENARIO = """
seats:
{seats}
items: questions.csv
static: true
endpoints: {{"{url}": {{concurrency: {at_once}}}}}
market: {{horizon: 30, users: {{population: 6, per_step: 6}}}}
seeds: 1-4
"""


def command(scenario: Path, out: Path, *options: str) -> list[str]:
    words = ["run", str(scenario), "--out", str(out), "--no-report", *options]
    return [sys.executable, "-m", "marketeval", *words]


def durable(out: Path) -> set[tuple[str, str]]:
    """The system message and the question of every call that is on disk."""
    if not (out / "calls.sqlite").exists():
        return set()
    with closing(sqlite3.connect(out / "calls.sqlite")) as file:
        requests = [json.loads(row[0]) for row in file.execute("SELECT request FROM call")]
    return {(one["system"], one["messages"][-1][1]) for one in requests}


def asked_for(fake: FakeEndpoint, start: int) -> list[tuple[str, str]]:
    """The same of what the endpoint was asked since."""
    bodies = [body["messages"] for body in fake.seen[start:]]
    return [
        (one[0]["content"] if one[0]["role"] == "system" else "", one[-1]["content"])
        for one in bodies
    ]


@pytest.mark.slow
def test_ten_kills_lose_no_durable_call_and_change_no_result(tmp_path: Path) -> None:
    rows = [f"q{number},Which digit ends {number}?,{number % 10}" for number in range(QUESTIONS)]
    (tmp_path / "questions.csv").write_text("\n".join(["item_id,question,answer", *rows]))
    scenario, out = tmp_path / "live.yaml", tmp_path / "killed"
    with FakeEndpoint(delay=0.15) as fake:
        seats = "\n".join(
            f'  {name}: {{agent: "{fake.agent}", options: {{max_tokens: 8, system: "{name}"}}}}'
            for name in SEATS
        )
        scenario.write_text(SCENARIO.format(seats=seats, url=fake.url, at_once=AT_ONCE))
        subprocess.run(command(scenario, tmp_path / "whole"), check=True, capture_output=True)
        asked = fake.requests
        assert asked == 1 + len(SEATS) * QUESTIONS

        moments = Streams(7)["kill"].uniform(0, KILLS)
        sent_again: list[tuple[str, str]] = []
        for moment in moments:
            before, kept = fake.requests, durable(out)
            running = subprocess.Popen(
                command(scenario, out, "--resume"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            while fake.requests == before and running.poll() is None:
                time.sleep(0.01)
            time.sleep(0.1 + 0.6 * float(moment))
            running.kill()
            running.wait()
            sent_again += [one for one in asked_for(fake, before) if one in kept]
        before, kept = fake.requests, durable(out)
        subprocess.run(command(scenario, out, "--resume"), check=True, capture_output=True)
        sent_again += [one for one in asked_for(fake, before) if one in kept]

        assert sent_again == []
        assert fake.requests - asked <= asked + KILLS * 2 * AT_ONCE
    digests = [RunDirectory(at).manifest.log_digest for at in (tmp_path / "whole", out)]
    assert digests[0] == digests[1]
