"""All 18 tasks by the real `vf-eval`, and the same decisions again by `marketeval run`."""

from __future__ import annotations

import json

import pytest
import yaml
from evaluations import MAGENTIC, rewards, vf_eval
from scripted_traders import reply

from marketeval.adapters.verifiers.magentic import CELLS
from marketeval.apps.cli.main import run as marketeval
from marketeval.experiments.run_directory import RunDirectory
from marketeval.testing.fake_endpoint import FakeEndpoint

METRICS = {
    "mm": "EvaluationScore",
    "mm_purchase_completion": "PurchaseCompletion",
    "mm_needs_met": "NeedsMet",
    "mm_welfare": "WelfareOverOptimum",
    "mm_proposal_validity": "ProposalValidity",
}
SEATS = {"mexican3": 12, "mexican5": 20, "contractors5": 20}
TASKS = [f"{cell}/seed-{seed}" for cell in CELLS for seed in (1, 2)]


@pytest.fixture(scope="module")
def episodes(tmp_path_factory):
    with FakeEndpoint(reply=reply, keep=False) as endpoint:
        out = tmp_path_factory.mktemp("magentic")
        return vf_eval(MAGENTIC, endpoint.url, out, "-n", "18", "--max-concurrent", "2")[1]


def measured(folder, seed, market, **seats):
    """The metrics of `marketeval run` on a market like that of an episode."""
    scenario = {
        "family": "two_sided",
        "market": market,
        "seats": seats,
        "metrics": list(METRICS.values()),
        "seeds": str(seed),
    }
    (folder / "again.yaml").write_text(yaml.safe_dump(scenario))
    out = folder / "run"
    command = ["run", str(folder / "again.yaml"), "--out", str(out), "--no-report", "--force"]
    assert marketeval(command) == 0
    table = RunDirectory(out).metrics()
    return dict(zip(table["metric"].to_list(), table["value"].to_list(), strict=True))


def test_eighteen_episodes_end_well_with_a_trace_per_seat(episodes):
    assert sorted(episodes) == sorted(TASKS)
    assert all(one["ok"] and not one["errors"] for one in episodes.values())
    for name, one in episodes.items():
        assert len(one["traces"]) == SEATS[name.partition("_")[0]]
        assert all(trace["ok"] for trace in one["traces"])


@pytest.mark.parametrize("task", TASKS)
def test_rewards_are_the_metrics_of_marketeval_on_the_same_decisions(task, episodes, tmp_path):
    episode = episodes[task]
    replies = {
        trace["info"]["magentic"]["seat"]: [
            json.loads(node["message"]["content"]) for node in trace["nodes"] if node["sampled"]
        ]
        for trace in episode["traces"]
    }
    (tmp_path / "replies.json").write_text(json.dumps(replies))
    again = {
        "agent": "python:said_before:SaidBefore",
        "options": {"file": str(tmp_path / "replies.json")},
    }
    data = episode["task"]["data"]
    found = measured(tmp_path, data["seed"], data["market"], customers=again, businesses=again)
    assert rewards(episode) == {ours: found[name] for ours, name in METRICS.items()}


@pytest.mark.parametrize("task", TASKS[::2])
def test_the_model_that_knows_only_its_prompts_does_as_well_as_the_scripts(
    task, episodes, tmp_path
):
    data = episodes[task]["task"]["data"]
    found = measured(
        tmp_path,
        data["seed"],
        data["market"],
        customers="heuristic:careful-buyer",
        businesses="heuristic:menu-honest",
    )
    assert rewards(episodes[task]) == {ours: found[name] for ours, name in METRICS.items()}


def test_under_optimal_search_nothing_is_left_to_gain(episodes):
    for seed in (1, 2):
        assert set(rewards(episodes[f"mexican3_optimal/seed-{seed}"]).values()) == {1.0}


def test_weights_and_raw_quantities_stand_on_every_trace(episodes):
    for episode in episodes.values():
        for trace in episode["traces"]:
            weights = {name: one["weight"] for name, one in trace["rewards"].items()}
            assert weights == {"mm": 1.0, **dict.fromkeys(list(METRICS)[1:], 0.0)}
            raw = trace["info"]["magentic"]["raw"]
            assert raw["total_llm_calls"] == sum(len(one["calls"]) for one in episode["traces"])
            assert len(raw["customer_summaries"]) + len(raw["business_summaries"]) == len(
                episode["traces"]
            )
