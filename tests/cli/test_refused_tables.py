"""Tables of answers and of entry dates that cannot be used, and what --missing decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from shell import TABLE, Shell

from marketeval.experiments.run_directory import RunDirectory

Refused = Callable[..., str]
HEAD = "item_id,model,score"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is not a readable table"),
        (f"{HEAD}\n", "has no rows"),
        ("item,model,score\nq,a,1\n", "has no column 'item_id'; did you mean 'item'?"),
        ("item_id,model,scores\nq,a,1\n", "has no column 'score'; did you mean 'scores'? expected"),
        ("item_id,score\nq,1\n", "has no column 'model'; expected item_id, model, score"),
        (f"{HEAD},score\nq,a,1,1\n", "the column 'score' twice"),
        (f"{HEAD}\nq,a,1\nq,a,0\n", "2 rows share their item_id and model"),
        (f"{HEAD},sample\nq,a,1,1\nq,a,0,1\n", "rows share their item_id and model and sample"),
        (f"{HEAD}\nq,a,NaN\n", "1 scores are NaN or empty, the first for item 'q' and model 'a'"),
        (f"{HEAD}\nq,a,\n", "NaN or empty"),
        (f"{HEAD}\nq,a,high\n", "row 2: expected a number in 'score', got 'high'"),
        (f"{HEAD}\nq,a,1\nr,a,1.01\n", "outside 0 to 1, the first 1.01"),
        (f"{HEAD}\nq,a,-0.1\n", "outside 0 to 1"),
        (f"{HEAD}\nq,a,inf\n", "outside 0 to 1"),
        (f"{HEAD}\n,a,1\n", "1 rows have no 'item_id'"),
        (f"{HEAD}\nq,,1\n", "1 rows have no 'model'"),
        (f"{HEAD}\nq,a,1,2,3\n", "is not a readable table"),
        (f"{HEAD},grade\nq,a,1,corect\n", "unknown grade 'corect' in 1 rows"),
        (f"{HEAD},topic\nq,a,1,art\nq,b,1,law\n", "item 'q' has several topics"),
        (f"{HEAD},cost_usd\nq,a,1,-1\n", "'cost_usd' are negative or NaN"),
        (f"{HEAD},latency_s\nq,a,1,soon\n", "expected a number in 'latency_s'"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(
    refused: Refused, tmp_path: Path, content: str, says: str
) -> None:
    (tmp_path / "bad.csv").write_text(content)
    assert says in refused("run", "static-vs-market", "--outcomes", "bad.csv")


@pytest.mark.parametrize("name", ["bad.csv", "bad.parquet"])
@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff\xfe\x01" * 50, f"{HEAD}\nq\xe9,a,1\n".encode("latin-1")]
)
def test_a_file_that_is_no_table_is_refused(
    refused: Refused, tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    assert "bad." in refused("run", "static-vs-market", "--outcomes", name)


def test_a_folder_or_nothing_in_the_place_of_a_table_is_refused(
    refused: Refused, table: Path, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    run = ("run", "static-vs-market")
    for place in ("folder", "gone.csv"):
        assert "no outcome table" in refused(*run, "--outcomes", place)
        refused(*run, "--outcomes", table, "--items", place)
        refused(*run, "--outcomes", table, "--entries", place)


def test_parquet_columns_of_a_wrong_type_are_refused(refused: Refused, tmp_path: Path) -> None:
    frames = {
        "score": pl.DataFrame({"item_id": ["q"], "model": ["a"], "score": [[1.0]]}),
        "item_id": pl.DataFrame({"item_id": [[1, 2]], "model": ["a"], "score": [1.0]}),
    }
    for name, frame in frames.items():
        frame.write_parquet(tmp_path / "bad.parquet")
        assert "bad.parquet" in refused("run", "static-vs-market", "--outcomes", "bad.parquet"), (
            name
        )


def test_tables_with_other_columns_or_the_same_rows_are_refused(
    refused: Refused, table: Path, tmp_path: Path
) -> None:
    (tmp_path / "more.csv").write_text(f"{HEAD}\nq1,eve,1\n")
    run = ("run", "static-vs-market", "--outcomes", table, "--outcomes")
    assert "give all tables the same columns" in refused(*run, "more.csv")
    assert "16 rows share their item_id and model" in refused(*run, table)


def test_an_unknown_model_is_refused_with_the_near_miss(refused: Refused, table: Path) -> None:
    line = refused("run", "static-vs-market", "--outcomes", table, "--seat", "x=recorded#bobb")
    assert "unknown model of seat 'x' 'bobb'; did you mean 'bob'?" in line


def test_a_question_file_with_unknown_or_repeated_items_is_refused(
    refused: Refused, table: Path, tmp_path: Path
) -> None:
    run = ("run", "static-vs-market", "--outcomes", table, "--items", "items.csv")
    for content, says in {
        "item_id\nq1\nq9\n": "1 of 2 items are in no outcome table, the first 'q9'",
        "item_id\nq1\nq1\n": "expected each item once",
        "question\nq1\n": "expected a column item_id or qid",
        "": "is not a readable CSV",
    }.items():
        (tmp_path / "items.csv").write_text(content)
        assert says in refused(*run)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is not a readable CSV"),
        ("model,when\nada,2024-01-01\n", "expected the columns model and date (or step)"),
        ("model,date\nada,2024-01-01\n", "no date for 1 seats, the first 'bob'"),
        ("model,date\nada,2024-01-01\nbob,\n", "no date for 1 seats"),
        ("model,date\nada,2024-01-01\nbob,May 2024\n", "column date"),
        ("model,date\nada,2024-01-01\nbob,2024-13-01\n", "column date"),
        ("model,date\nada,2024-01-01\nbob,2024-05-01\nbob,2024-06-01\n", "several rows for 'bob'"),
        ("model,step\nada,0\nbob,soon\n", "column step"),
        ("model,step\nada,0\nbob,-5\n", "'bob' enters at step -5, before step 0"),
        ("model,step\nada,0\nbob,200\n", "from 0 to 199, or a larger market.horizon"),
    ],
)
def test_a_table_of_entries_that_cannot_be_used_is_refused(
    refused: Refused, table: Path, tmp_path: Path, content: str, says: str
) -> None:
    (tmp_path / "when.csv").write_text(content)
    line = refused("run", "static-vs-market", "--outcomes", table, "--entries", "when.csv")
    assert says in line


def test_missing_answers_are_named_and_missing_decides_what_they_are(
    shell: Shell, refused: Refused, tmp_path: Path
) -> None:
    # bob: 2 of the 3 he answered are right; of all 4 questions: F = 2 * 2 / (3 + 4) = 4/7
    rows = [row for row in TABLE.splitlines() if not row.startswith("q4,bob")]
    (tmp_path / "gaps.csv").write_text("\n".join(rows) + "\n")
    run = ("run", "static-vs-market", "--outcomes", "gaps.csv", "--set", "horizon=3")
    line = refused(*run)
    assert "1 of 2 models have no answer to some items: bob: 1 of 4 (first 'q4')" in line
    assert "--missing skip" in line
    assert refused(*run, "--missing", "fail") == line
    scores = {}
    for missing in ("skip", "zero"):
        options = ("--missing", missing, "--executor", "serial", "--no-report", "--out", missing)
        assert shell(*run, "--seeds", "1-2", *options).code == 0
        log = RunDirectory(tmp_path / missing)
        names = log.scan("generator").select("agent", "seat")
        static = log.scan("static_score").join(names, on="agent").collect()
        scores[missing] = {row["seat"]: row for row in static.iter_rows(named=True)}
        statuses = set(log.scan("interaction").collect()["status"])
        assert ("missing" in statuses) == (missing == "skip")
    ada, bob = scores["skip"]["ada"], scores["skip"]["bob"]
    assert (ada["items"], ada["correct"], ada["attempted"]) == (4, 2, 3)
    assert ada["f_score"] == pytest.approx(4 / 7)
    assert (bob["items"], bob["correct"], bob["attempted"]) == (3, 2, 3)
    assert bob["f_score"] == pytest.approx(2 / 3)
    bob = scores["zero"]["bob"]
    assert (bob["items"], bob["correct"], bob["attempted"]) == (4, 2, 3)
    assert bob["f_score"] == pytest.approx(4 / 7)


def test_blank_lines_in_a_table_are_nothing(shell: Shell, table: Path, tmp_path: Path) -> None:
    table.write_text(TABLE.replace("q3,ada", "\nq3,ada") + "\n\n")
    (tmp_path / "items.csv").write_text("qid\nq1\n\nq3\n\n")
    (tmp_path / "when.csv").write_text("model,step\nada,0\n\nbob,1\n\n")
    words = ("run", "static-vs-market", "--outcomes", table, "--items", "items.csv")
    options = ("--entries", "when.csv", "--executor", "serial", "--no-report", "--out", "out")
    assert shell(*words, *options, "--set", "horizon=3", "--seeds", "1").code == 0
    assert RunDirectory(tmp_path / "out").scan("question").collect()["item"].to_list() == [
        "q1",
        "q3",
    ]
