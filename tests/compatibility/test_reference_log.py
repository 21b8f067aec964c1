"""simulation_log.csv: written byte for byte as the published package wrote it, and read back."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import polars as pl
import pytest
from golden_log import (
    DEEPSEEK,
    GEMINI,
    GOLDEN,
    GROK,
    KIMI,
    LATE,
    LLAMA,
    OSS,
    PROFILES,
    QWEN,
    as_log,
    golden,
)
from outcome_rule import letter

from marketeval.adapters.marketplace_eval import read_log, write_log
from marketeval.core.errors import DataError
from marketeval.core.log import EventLog


@pytest.mark.parametrize("experiment", LATE)
def test_written_logs_have_the_bytes_that_the_published_package_wrote(
    experiment: str, tmp_path: Path
) -> None:
    digests = pl.read_csv(GOLDEN / "digests.csv").filter(experiment=experiment)
    expected = dict(digests.select("seed", pl.last()).iter_rows())
    profiles = PROFILES if experiment == "small_pool" else ()
    for seed, rows in golden(experiment):
        target = tmp_path / f"{seed}.csv"
        write_log(as_log(experiment, [(seed, rows)]), target, profiles=profiles)
        assert hashlib.sha256(target.read_bytes()).hexdigest() == expected[seed], seed


@pytest.mark.parametrize("experiment", LATE)
def test_written_preferences_are_the_published_ones(experiment: str, tmp_path: Path) -> None:
    profiles = PROFILES if experiment == "small_pool" else ()
    for seed, rows in golden(experiment)[:3]:
        target = tmp_path / f"{seed}.csv"
        write_log(as_log(experiment, [(seed, rows)]), target, profiles=profiles)
        ours = pl.read_csv(target, infer_schema=False)["preference_distribution"]
        for theirs, mine in zip(rows["preference_distribution"], ours, strict=True):
            if theirs is not None:
                assert list(json.loads(mine)) == list(json.loads(theirs))
                assert json.loads(mine) == pytest.approx(json.loads(theirs), rel=0, abs=1e-12)


@pytest.mark.parametrize("experiment", LATE)
def test_a_log_read_back_tells_the_same_episode(experiment: str, tmp_path: Path) -> None:
    seed, rows = golden(experiment)[-1]
    original = as_log(experiment, [(seed, rows)])
    target = tmp_path / "simulation_log.csv"
    write_log(original, target, profiles=PROFILES if experiment == "small_pool" else ())
    again = read_log(target)

    def story(log: object) -> pl.DataFrame:
        assert isinstance(log, EventLog)
        return (
            log.scan("interaction")
            .join(log.scan("question").select("question", "item"), on="question")
            .join(log.scan("generator").select("agent", "seat"), on="agent")
            .select("step", "slot", "user", "item", "seat", "score", "grade", "signal", "status")
            .sort("step", "slot")
            .collect()
        )

    assert story(again).equals(story(original))
    assert again.seeds() == [0]
    seen = again.scan("generator").select("seat", "entry_step").collect()
    late = LATE[experiment]
    assert dict(seen.iter_rows()) == {name: late.get(name, 0) for name in seen["seat"]}
    entries = again.scan("intervention").select("step", "change").collect()
    assert sorted(entries["step"]) == sorted(late.values())


def test_positions_follow_the_order_in_which_generators_became_known(tmp_path: Path) -> None:
    seed, rows = golden("qwen3_late")[0]
    target = tmp_path / "simulation_log.csv"
    write_log(as_log("qwen3_late", [(seed, rows)]), target)
    seats = read_log(target).scan("generator").sort("position").collect()["seat"].to_list()
    assert seats == [GEMINI, KIMI, OSS, DEEPSEEK, LLAMA, GROK, QWEN]


def test_the_golden_grades_follow_the_outcome_rule() -> None:
    for experiment in LATE:
        for seed, rows in golden(experiment):
            for qid, name, grade in rows.select("qid", "generator_id", "judge_grade").iter_rows():
                assert grade == letter(seed, qid, name)


# --- files by hand --------------------------------------------------------------------------

HEADER = "t,tau,user_id,qid,generator_id,score,judge_grade,preference_distribution\n"


def handmade(folder: Path, *lines: str) -> Path:
    path = folder / "simulation_log.csv"
    path.write_text(HEADER + "".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_scores_become_qualities_and_letters_grades(tmp_path: Path) -> None:
    rows = ["0,0,u,1,a,1.0,A,", "0,1,u,2,a,-1.0,C,", "1,0,u,1,b,0.4,7,", "1,1,u,2,b,,,"]
    log = read_log(handmade(tmp_path, *rows))
    seen = log.scan("interaction").select("score", "signal", "grade", "status").collect()
    assert seen.rows() == [
        (1.0, 1.0, "correct", "ok"),
        (0.0, -1.0, "not_attempted", "ok"),
        (0.7, 0.4, "none", "ok"),
        (None, None, "none", "missing"),
    ]
    assert log.scan("missing").collect()["reason"].to_list() == ["no score in the file"]
    assert log.scan("phase").collect().is_empty()


def test_a_choice_against_the_favourite_of_an_earlier_step_counts_as_explored(
    tmp_path: Path,
) -> None:
    def row(t: int, name: str, a: float) -> str:
        return f'{t},0,u,1,{name},1.0,A,"{{""a"": {a}, ""b"": {1 - a}}}"'

    rows = [row(0, "b", 0.4), row(1, "b", 0.3), row(2, "a", 0.35), row(3, "b", 0.3)]
    seen = read_log(handmade(tmp_path, *rows)).scan("interaction").collect()
    assert seen["explored"].to_list() == [False, False, True, False]


def test_users_are_numbered_in_natural_order(tmp_path: Path) -> None:
    rows = [f"{t},0,{name},1,a,1.0,A," for t, name in enumerate(["user_10", "user_2", "user_1"])]
    seen = read_log(handmade(tmp_path, *rows)).scan("interaction").collect()
    assert seen["user"].to_list() == [2, 1, 0]


def test_questions_with_commas_quotes_and_line_ends_are_read_as_the_csv_module_writes_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "simulation_log.csv"
    with path.open("w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target)
        writer.writerow([*HEADER.strip().split(","), "user_question"])
        writer.writerow([0, 0, "u", "", "a", 1.0, "A", "", 'Who said "no, \r\n never"?'])
    items = read_log(path).scan("question").collect()["item"].to_list()
    assert items == ['Who said "no, \r\n never"?']


BAD = {
    "t,tau,user_id\n0,0,u\n": "lacks the columns qid, generator_id, score",
    "": "the file is empty",
    HEADER: "a header but no rows",
    HEADER + "0,0,u,1,a,good,A,\n": r"row 1: expected a number in 'score', got 'good'",
    HEADER + "0,0,u,1,a,nan,A,\n": r"row 1: expected a number in 'score', got 'nan'",
    HEADER + "-1,0,u,1,a,1.0,A,\n": r"row 1: expected a whole number from 0 in 't', got '-1'",
    HEADER + "0,0,u,1,a,1.0,A,\n0,inf,u,1,a,1.0,A,\n": "row 2: expected a whole number from 0 in",
    HEADER + "0,0,u,1,,1.0,A,\n": "row 1: expected a user_id and a generator_id",
    HEADER + "0,0,u,1,a,1.0,A,{oops\n": "row 1: expected generators and numbers in",
    HEADER + "0,0,u,1,a,1.0,A,[1]\n": "row 1: expected generators and numbers in",
}


@pytest.mark.parametrize("text", BAD)
def test_a_broken_log_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "simulation_log.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=BAD[text]) as caught:
        read_log(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_csv_or_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    binary = tmp_path / "log.csv"
    binary.write_bytes(bytes(range(256)) * 20)
    for path in (binary, tmp_path / "absent.csv", tmp_path):
        with pytest.raises(DataError, match=r"cannot read .* as a simulation_log") as caught:
            read_log(path)
        assert "\n" not in str(caught.value)


def test_one_seed_at_a_time_is_written(tmp_path: Path) -> None:
    seed, rows = golden("qwen3_late")[0]
    with pytest.raises(DataError, match=r"one of the log's seeds \(0\), got seed 7"):
        write_log(as_log("qwen3_late", [(seed, rows)]), tmp_path / "log.csv", seed=7)
