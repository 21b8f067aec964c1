"""Real recorded answers from scenario to log (issue: published F-scores, utility, entries)."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from marketeval.apps.cli.main import run as marketeval
from marketeval.experiments.run_directory import RunDirectory

DATA = Path(__file__).parents[3] / "shared" / "data"
Play = Callable[..., RunDirectory]


def data(folder: str) -> Path:
    """A folder of real data, or a skip that says that it is absent."""
    if not (DATA / folder).is_dir():
        pytest.skip(f"{DATA / folder} is absent")
    return DATA / folder


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """A short run, which must succeed."""

    def start(scenario: str | Path, *words: str | Path, horizon: int | None = 12) -> RunDirectory:
        short = () if horizon is None else ("--set", f"horizon={horizon}")
        options = ("--seeds", "1-2", "--executor", "serial", "--no-report", "--out")
        call = ["run", scenario, *words, *short, *options, tmp_path / "run"]
        assert marketeval([str(word) for word in call]) == 0
        return RunDirectory(tmp_path / "run")

    return start


def static(run: RunDirectory) -> pl.DataFrame:
    """The static scores with the seats' names."""
    seats = run.scan("generator").select("agent", "seat", "entry_step")
    return run.scan("static_score").join(seats, on="agent").collect()


def test_czech_simpleqa_has_its_five_published_f_scores(
    play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    run = play("static-vs-market", "--outcomes", data("czech_simpleqa") / "outcomes.csv")
    f_scores = {
        row["seat"]: round(100 * row["f_score"], 1) for row in static(run).iter_rows(named=True)
    }
    assert f_scores == {
        "gpt-4o-2024-11-20": 31.4,
        "claude-3-5-sonnet-20241022": 31.1,
        "claude-3-5-sonnet-20240620": 25.8,
        "claude-3-5-haiku-20241022": 9.3,
        "gpt-4o-mini-2024-07-18": 8.1,
    }
    assert run.scan("question").collect().height == 4325
    orders = run.metrics().filter(pl.col("metric").is_in(["StaticRank", "Rank"]))
    assert set(orders["metric"]) == {"StaticRank", "Rank"}
    assert "gpt-4o-2024-11-20" in capsys.readouterr().out


def test_bfcl_comes_in_two_files_with_cost_and_latency_in_the_utility(play: Play) -> None:
    folder = data("bfcl_2024_08")
    files = sorted(folder.glob("outcomes_*.csv"))
    words = [word for file in files for word in ("--outcomes", file)]
    weights = ("--set", "utility.cost=10", "--set", "utility.latency=0.05")
    run = play("static-vs-market", *words, *weights)
    by_hand = pl.concat([pl.read_csv(file) for file in files])
    means = dict(by_hand.group_by("model").agg(pl.col("score").mean()).iter_rows())
    assert len(means) == 49
    ours = dict(static(run).select("seat", "accuracy").iter_rows())
    assert ours == pytest.approx(means)
    published = pl.read_csv(folder / "models.csv")
    assert ours == pytest.approx(
        dict(published.select("model", "mean_score").iter_rows()), abs=1e-4
    )
    rows = run.scan("interaction").filter(pl.col("status") == "ok").collect()
    expected = rows["score"] - 10 * rows["cost_usd"] - 0.05 * rows["latency_s"]
    assert rows["utility"].to_list() == pytest.approx(expected.to_list())


def test_livecodebench_keeps_graded_scores_and_topics_and_asks_about_missing_items(
    play: Play, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = data("livecodebench")
    files = [folder / "generation_2025_04.csv", folder / "generation_2025_01_other_models.csv"]
    words = [word for file in files for word in ("--outcomes", file)]
    assert marketeval(["run", "static-vs-market", *map(str, words)]) == 2
    assert "13 of 29 models have no answer to some items" in capsys.readouterr().err
    run = play("static-vs-market", *words, "--missing", "skip")
    assert sorted(run.scan("topic").collect()["name"]) == ["atcoder", "codeforces", "leetcode"]
    ours = static(run)
    assert dict(ours["items"].value_counts().iter_rows()) == {1055: 16, 880: 13}
    by_hand = pl.concat([pl.read_csv(file) for file in files])
    means = dict(by_hand.group_by("model").agg(pl.col("score").mean()).iter_rows())
    assert dict(ours.select("seat", "accuracy").iter_rows()) == pytest.approx(means)
    scores = run.scan("interaction").collect()["score"].drop_nulls()
    assert scores.is_between(0, 1, closed="none").any()  # a share of samples, kept as it is
    signals = run.scan("interaction").filter(pl.col("status") == "ok").collect()
    assert signals["signal"].to_list() == pytest.approx((2 * signals["score"] - 1).to_list())


def test_swebench_agents_enter_by_the_dates_of_the_board(play: Play) -> None:
    folder = data("swebench_bash_only")
    words = ("--outcomes", folder / "outcomes.csv", "--entries", folder / "models.csv")
    run = play("static-vs-market", *words, "--set", "utility.cost=0.1", horizon=300)
    with (folder / "models.csv").open(newline="") as file:
        dates = {
            row["model"]: row["date"]
            for row in csv.DictReader(file)
            if row["has_outcomes"] == "yes"
        }
    days = sorted(set(dates.values()))  # ISO dates sort as text
    ours = dict(static(run).select("seat", "entry_step").iter_rows())
    assert len(ours) == 24
    assert ours == {model: 20 * days.index(day) for model, day in dates.items()}
    assert len(days) < 24  # some dates are equal: those enter together
    entries = run.scan("intervention").filter(pl.col("seed") == 1).collect()
    assert entries.height == sum(step > 0 for step in ours.values())
    asked = run.scan("interaction").join(run.scan("generator"), on="agent").collect()
    assert (asked["step"] >= asked["entry_step"]).all()
    assert len(run.scenario.phases) == len(days)


def test_the_reference_configuration_runs_with_recorded_answers(
    play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    config = data("marketplace_eval_configs") / "simple_qa_simulation.yaml"
    models = [
        "gpt-4o-2024-11-20", "claude-3-5-sonnet-20241022", "claude-3-5-haiku-20241022",
        "claude-3-5-sonnet-20240620", "gpt-4o-mini-2024-07-18", "gpt-4o-2024-11-20",
        "gpt-4o-mini-2024-07-18",
    ]  # fmt: skip
    seats = [
        "gemini_2_5_flash_lite", "qwen3_235b_a22b_2507", "kimi_k2_5", "gpt_oss_120b",
        "deepseek_v3_2", "llama_3_3_70b_instruct", "grok_4_1_fast",
    ]  # fmt: skip
    words = [
        word
        for seat, model in zip(seats, models, strict=True)
        for word in ("--seat", f"generator_{seat}=recorded#{model}")
    ]
    items = data("simpleqa_subset500") / "simple_qa_test_subset_qid.csv"
    answers = data("czech_simpleqa") / "outcomes.csv"
    run = play(config, "--outcomes", answers, "--items", items, *words, horizon=None)
    spec = run.scenario.market
    assert (spec.horizon, spec.users.population, spec.users.per_step) == (200, 10, 5)
    assert spec.draws == "mersenne"
    assert run.scenario.seats["generator_qwen3_235b_a22b_2507"].enters == 100
    assert run.scan("question").collect()["item"].to_list() == [str(n) for n in range(1, 501)]
    assert "replaced by the recorded answers: judge simple_qa_judge" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "needs", "says"),
    [
        (
            "sample_simulation.yaml",
            "fineweb_500.jsonl; put it there",
            "left out, since it needs a search service: retriever_google_web",
        ),
        (
            "default.yaml",
            "needs recorded answers: give a table with --outcomes FILE",
            "replaced by the recorded answers: judge default_judge",
        ),
    ],
)
def test_other_reference_configurations_name_what_is_not_there_yet(
    name: str, needs: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = data("marketplace_eval_configs") / name
    assert marketeval(["run", str(config)]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert needs in line
    assert says in line
