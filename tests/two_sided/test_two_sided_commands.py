"""The two-sided market from the command line: play, read, export, and one line per mistake."""

from __future__ import annotations

import json
import re

import pytest
from two_sided_games import published

from marketeval.apps.cli.main import run as marketeval
from marketeval.apps.report import bazaar_arms, bazaars
from marketeval.experiments.run_directory import RunDirectory
from marketeval.markets.two_sided.population import write_population


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    write_population(published("mexican_3_9"), folder / "mexican.json.gz")
    command = [
        "run", "magentic", "--set", f"population={folder / 'mexican.json.gz'}",
        "--set", "search=optimal", "--out", str(folder / "run"), "--executor", "serial",
    ]  # fmt: skip
    assert marketeval(command) == 0
    return folder / "run"


def test_a_run_reaches_the_published_optimum_and_says_so(played, capsys):
    assert marketeval(["metrics", str(played), "CustomerWelfare", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["mean"] == 63.78


def test_the_report_holds_conversations_and_why_needs_were_not_met(played):
    page = (played / "report.html").read_text("utf-8")
    assert "Why needs were not met" in page
    assert "decision 1] search_businesses" in page
    assert "bought business_" in page


def test_the_manifest_names_prompts_and_population_by_content(played):
    data = json.loads((played / "manifest.json").read_text("utf-8"))["data"]
    assert any(name.startswith("population/") for name in data)
    assert "prompts/two_sided" in data


def test_a_run_played_again_gives_the_same_log(played, capsys):
    assert marketeval(["replay", str(played)]) == 0
    assert "the same log" in capsys.readouterr().out


def test_a_customers_story_can_be_read(played, capsys):
    assert marketeval(["conversation", str(played), "--customer", "customer_0001"]) == 0
    told = capsys.readouterr().out
    assert "[decision 1] search_businesses: look around" in told
    assert "proposes business_" in told
    assert "needs met" in told
    one = ["conversation", str(played), "--customer", "customer_0001", "--business"]
    assert marketeval([*one, "business_0001"]) == 0
    assert marketeval([*one, "business_1"]) == 2


def test_the_exported_file_is_read_like_a_run(played, tmp_path, capsys):
    file = tmp_path / "market.db"
    assert marketeval(["export", str(played), "--to", "magentic", "--out", str(file)]) == 0
    capsys.readouterr()
    assert marketeval(["metrics", str(file), "--analysis"]) == 0
    from_file = json.loads(capsys.readouterr().out)
    assert marketeval(["metrics", str(played), "--analysis"]) == 0
    assert json.loads(capsys.readouterr().out) == from_file
    assert from_file["customers_with_needs_met"] == 3
    for log in (played, file):
        assert marketeval(["metrics", str(log), "--audit"]) == 0
        audited = json.loads(capsys.readouterr().out)
        assert [one["state"] for one in audited["customers"]] == ["all"] * 3
    assert marketeval(["conversation", str(file), "--customer", "customer_0002"]) == 0


def test_controls_of_a_study_are_played_on_the_same_seeds(tmp_path, capsys):
    command = ["run", "magentic-manipulation", "--seeds", "1", "--executor", "serial"]
    assert marketeval([*command, "--out", str(tmp_path / "run"), "--no-report"]) == 0
    told = capsys.readouterr().out
    for arm in ("honest", "authority", "social-proof", "loss-aversion", "injection-basic"):
        assert arm in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "population=nowhere"], "unknown population 'nowhere'; known: home-services"),
        (["--set", "search=lexicla"], "unknown search rule 'lexicla'; did you mean 'lexical'?"),
        (["--set", "rules=strikt"], "unknown preset of rules 'strikt'; did you mean 'strict'"),
        (["--set", "market.rules=strikt"], "unknown preset of rules 'strikt'; did you mean"),
        (["--set", "order=up"], "market.order: input should be 'as_ranked'"),
        (["--set", "rules.opening_balance=-1"], "opening_balance: input should be greater"),
        (["--set", "steps=0"], "market.steps: input should be greater than or equal to 1"),
        (["--seat", "custmers=heuristic:careful-buyer"], "unknown seat 'custmers'; did you mean"),
        (["--seat", "customers=heuristic:carefull"], "unknown heuristic 'carefull'"),
        (["--set", "outcomes=[x.csv]"], "outcomes: a scenario of family 'two_sided' takes none"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2_and_nothing_is_written(
    arguments, words, tmp_path, capsys
):
    out = tmp_path / "run"
    assert marketeval(["run", "magentic", "--out", str(out), *arguments]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1
    assert not out.exists()


def test_a_metric_of_another_family_is_a_mistake_not_a_crash(played, capsys):
    assert marketeval(["metrics", str(played), "HHI"]) == 2
    assert re.search(r"unknown event '\w+'; known: ", capsys.readouterr().err)
    assert marketeval(["export", str(played), "--to", "csv"]) == 2


GRID = """
family: two_sided
market: {population: restaurants-3x9, search: optimal, limit: 10}
controls:
  careful-simple: {market.search: simple}
  first-optimal: {seats.customers.agent: "heuristic:first-proposal"}
  first-simple: {seats.customers.agent: "heuristic:first-proposal", market.search: simple}
seeds: 1-2
"""


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grid")
    (folder / "grid.yaml").write_text(GRID, "utf-8")
    command = ["run", str(folder / "grid.yaml"), "--out", str(folder / "run")]
    assert marketeval([*command, "--executor", "serial"]) == 0
    return folder / "run"


def test_arms_that_differ_in_agents_and_search_make_a_table_and_a_grid(grid):
    found = bazaar_arms.arms([bazaars.gather(RunDirectory(grid))])
    assert bazaar_arms.varying(found) == ["customers", "search"]
    cells = {
        (one["down"], one["across"]): one["mean"]
        for one in bazaar_arms.cells(found, "EvaluationScore")
    }
    assert cells["heuristic:careful-buyer", "optimal"] == 1.0
    assert set(cells) == {
        (f"heuristic:{buyer}", rule)
        for buyer in ("careful-buyer", "first-proposal")
        for rule in ("optimal", "simple")
    }
    # 9 businesses fit on one page, so simple search shows everybody too
    assert cells["heuristic:careful-buyer", "simple"] == 1.0
    assert cells["heuristic:first-proposal", "optimal"] < 1.0


def test_the_pictures_of_a_study_stand_beside_its_report(grid):
    names = {one.name for one in (grid / "pictures").iterdir()}
    assert names == {"grid.png", "welfare-by-arm.png", "paid.png"}
    page = (grid / "report.html").read_text("utf-8")
    assert "Evaluation score by models and search" in page
    assert page.count("<svg") == 3


def test_a_report_over_several_runs_puts_their_arms_side_by_side(grid, played, tmp_path):
    target = tmp_path / "both.html"
    assert marketeval(["report", str(grid), str(played), "--out", str(target)]) == 0
    page = target.read_text("utf-8")
    assert "Arms side by side" in page
    assert (tmp_path / "pictures" / "all-welfare-by-arm.png").is_file()
