"""The family from the command line: a run with its control, report, replay, export, mistakes."""

from __future__ import annotations

import json
import shutil

import pytest

from marketeval.apps.cli.main import run
from marketeval.experiments.run_directory import RunDirectory
from marketeval.experiments.scenario import shipped

SCENARIO = """
family: supply_chain
seats:
  alma: heuristic:markup
  bert: heuristic:reserve
  carla: heuristic:oracle
market: {horizon: 3, demand: {buyers: 20}}
controls: {blind: {attention.sampler: uniform}}
seeds: 1-3
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("retail")
    (folder / "small.yaml").write_text(SCENARIO, "utf-8")
    arguments = ["run", str(folder / "small.yaml"), "--out", str(folder / "run")]
    assert run([*arguments, "--executor", "serial"]) == 0
    return folder / "run"


def test_a_run_leaves_its_report_and_its_control(played, capsys):
    page = (played / "report.html").read_text("utf-8")
    for text in ("Leaderboard", "Figure 3", "Figure 7", "carla †", "lexical 1", "blind"):
        assert text in page
    assert sorted(one.name for one in (played / "pictures").iterdir()) == [
        "economic-outcomes.png", "indices.png", "operations.png", "slogan-map.png",
        "slogan-similarity.png",
    ]  # fmt: skip
    opened = RunDirectory(played)
    assert opened.scenario.market.attention.sampler == "plackett_luce"
    assert opened.controls["blind"].scenario.market.attention.sampler == "uniform"
    assert opened.scenario.seats["embedder"].agent == "embedder:lexical"
    assert opened.manifest.data["prompts/supply_chain"]
    assert (
        opened.manifest.data["embedder/lexical 1"] == opened.scan("embedder").collect()["sha256"][0]
    )


def test_a_run_can_be_replayed_and_measured_again(played, capsys):
    assert run(["replay", str(played)]) == 0
    assert run(["metrics", str(played), "Profit", "MarketIndex(hhi)"]) == 0
    assert "alma" in capsys.readouterr().out


def test_without_a_metric_named_those_of_the_scenario_are_shown(played, capsys):
    assert run(["metrics", str(played), "--format", "json"]) == 0
    shown = {row["metric"] for row in json.loads(capsys.readouterr().out)}
    assert shown == set(RunDirectory(played).scenario.metrics)
    assert "Profit" in shown


def test_trajectories_hold_what_was_seen_done_and_earned(played, tmp_path):
    target = tmp_path / "t.jsonl"
    assert run(["export", str(played), "--to", "trajectories", "--out", str(target)]) == 0
    rows = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    assert len(rows) == 3 * 3 * 3
    first = rows[0]
    assert (first["seed"], first["step"], first["seat"]) == (1, 0, "alma")
    assert [one["decision"] for one in first["decisions"]] == ["bid", "bid", "offer"]
    assert first["decisions"][0]["observation"].startswith("Step: 0 of 0 to 2")
    assert first["decisions"][0]["action"]["bids"]["item1"]["price"] == 51
    assert all(one["valid"] for row in rows for one in row["decisions"])
    mine = [row for row in rows if row["seed"] == 1 and row["seat"] == "alma"]
    assert sum(row["reward"] for row in mine) == mine[0]["return"]
    assert mine[-1]["return"] == mine[-1]["reward"]


def test_trajectories_without_a_log_are_one_line_and_leave_nothing(tmp_path, capsys):
    (tmp_path / "small.yaml").write_text(SCENARIO, "utf-8")
    folder = tmp_path / "run"
    arguments = ["run", str(tmp_path / "small.yaml"), "--out", str(folder), "--seeds", "1"]
    assert run([*arguments, "--keep", "metrics", "--executor", "serial", "--no-report"]) == 0
    capsys.readouterr()
    target = tmp_path / "t.jsonl"
    assert run(["export", str(folder), "--to", "trajectories", "--out", str(target)]) == 2
    assert capsys.readouterr() == (
        "",
        f"error: {folder} was run with --keep metrics: there is no log to export\n",
    )
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run", "small.yaml"]


def test_trajectories_of_a_changed_run_leave_no_half_file(played, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(played, folder)
    manifest = folder / "manifest.json"
    digest = RunDirectory(played).manifest.digests()[2]
    manifest.write_text(manifest.read_text("utf-8").replace(digest, digest[::-1]), "utf-8")
    target = tmp_path / "t.jsonl"
    assert run(["export", str(folder), "--to", "trajectories", "--out", str(target)]) == 1
    assert "seed 2: the episode differs" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["run"]


def test_a_game_is_rated_once(played, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(played.parent)
    assert run(["rate", str(played)]) == 0
    capsys.readouterr()
    assert run(["rate", str(played), "run"]) == 2
    assert capsys.readouterr() == ("", "error: run is given twice; its games would count twice\n")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("market.auction.rounds=0", "market.auction.rounds"),
        ("market.items=[]", "items: expected at least one, got none"),
        ("market.presett=paper", "did you mean 'preset'"),
        ("family=supply_chian", "did you mean 'supply_chain'"),
        ("seats.alma.enters=2", "enters late"),
        ("seats.alma.agent=heuristic:markupp", "did you mean 'markup'"),
        ("outcomes=[a.csv]", "takes none"),
        ("seats.alma.agent=judge:match", "judge decides nothing in a supply chain"),
        ("seats.embedder.agent=heuristic:markup", "'embedder' does not compete: expected an agent"),
        ("seats.embedder.agent=embedder:http://127.0.0.1:9/v1#m", "no embedder at http://127.0"),
        ("metrics=[MMS(tribe=thrift)]", "unknown tribe in MMS(tribe=thrift) 'thrift'; did you"),
        ("market.scarcity=0", "market.scarcity"),
        ("market.costing=lifo", "market.costing"),
    ],
)
def test_a_broken_scenario_is_one_line_and_exit_2(change, says, tmp_path, capsys):
    (tmp_path / "small.yaml").write_text(SCENARIO, "utf-8")
    arguments = ["run", str(tmp_path / "small.yaml"), "--out", str(tmp_path / "run")]
    assert run([*arguments, "--set", change]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_weights_that_do_not_sum_are_one_line_and_exit_2(tmp_path, capsys):
    text = SCENARIO.replace(
        "{horizon: 3,",
        "{tribes: [{name: a, weight: 0.5, sensitivity: 1, persona: x}], horizon: 3,",
    )
    (tmp_path / "small.yaml").write_text(text, "utf-8")
    assert run(["run", str(tmp_path / "small.yaml"), "--out", str(tmp_path / "run")]) == 2
    assert "the weights of the tribes sum to 0.5, expected 1" in capsys.readouterr().err


def test_the_shipped_scenarios_hold_each_design():
    assert {
        "market-bench", "market-bench-focal", "market-bench-gouger", "market-bench-language",
    } <= set(shipped())  # fmt: skip
