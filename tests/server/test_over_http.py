"""Lockstep through a real server, every seat a process: the log of the run within one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from marketeval.apps.cli.inputs import scenario_tree
from marketeval.apps.cli.main import run as marketeval
from marketeval.apps.server.lockstep import OverHttp
from marketeval.core.market import Failure
from marketeval.experiments.asking import Asking
from marketeval.experiments.executors import Serial
from marketeval.experiments.runner import run


def digests(settings, seats, folder: Path, *, database: str = "memory:", seeds=(1,)) -> list[str]:
    """The digests of a run in this process and of the same over HTTP."""
    tree, _ = scenario_tree(
        "magentic", settings=settings, seats=seats, outcomes=(), missing=None, items=None,
        entries=None,
    )  # fmt: skip
    here = run(tree, folder / "here", seeds=seeds, executor=Serial())
    there = run(tree, folder / "there", seeds=seeds, asking=Asking(stage=OverHttp(database)))
    return [here.manifest.log_digest, there.manifest.log_digest]


@pytest.mark.parametrize(
    ("settings", "seats", "database"),
    [
        (["population=restaurants-3x9"], [], "memory:"),
        (["population=restaurants-3x9", "market.rules=compatible"], [], "market.sqlite"),
        (["population=restaurants-10x30", "market.search=optimal"],
         ["customers=heuristic:patient-negotiator", "businesses=heuristic:discounter",
          "business_0002=heuristic:overcharger"], "memory:"),
        (["population=restaurants-3x9", "market.rules={stock: 1, opening_balance: 3000}",
          "market.search=hybrid"], ["customers=heuristic:first-proposal"], "memory:"),
    ],
    ids=["strict", "compatible on a file", "haggling and refusals", "scarce stock and money"],
)  # fmt: skip
def test_the_digest_over_http_is_that_of_the_run_within_one_process(
    settings, seats, database, tmp_path
):
    here, there = digests(settings, seats, tmp_path, database=database)
    assert there == here


class Mute:
    """An agent of one's own that gives nothing or fails, in a process of its own."""

    immediate = True
    deterministic = False
    privileged = False

    async def act(self, request):
        if request.step % 2:
            raise ValueError("no idea")
        return Failure("nothing")


def test_agents_that_fail_in_their_process_are_events_there_too(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")
    seats = ["customer_0001=python:test_over_http:Mute"]
    settings = ["population=restaurants-3x9", "market.steps=4"]
    here, there = digests(settings, seats, tmp_path)
    assert there == here


def test_several_seeds_and_controls_each_get_a_market_of_their_own(tmp_path):
    settings = ["population=restaurants-3x9", "controls={simple: {market.search: simple}}"]
    here, there = digests(settings, ["customers=heuristic:random-buyer"], tmp_path, seeds=(1, 2))
    assert there == here


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("late-entry-qwen3", "--over", "http"), "expected a two-sided market"),
        (("magentic", "--over", "http", "--set", "market.days=2"), "market.days=2"),
        (("magentic", "--over", "http", "--set", "market.order=rotated"), "market.order=rotated"),
        (("magentic", "--over", "htp"), "did you mean 'http'"),
    ],
)
def test_what_cannot_be_played_over_http_is_one_line(words, told, tmp_path, capsys):
    out = tmp_path / "out"
    assert marketeval(["run", *words, "--out", str(out)]) == 2
    assert told in capsys.readouterr().err
    assert not out.exists()
