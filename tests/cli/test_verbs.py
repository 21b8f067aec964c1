"""Each verb on a small finished run, and on what is no run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from shell import SMALL, Shell, listing

from marketeval.apps.cli.verbs.list_ import _KINDS
from marketeval.experiments.runner import arms_of
from marketeval.experiments.scenario import read_tree, shipped

Refused = Callable[..., str]


@pytest.fixture
def run(small_run: Path, tmp_path: Path) -> Path:
    """A copy of the small run that a test may spoil."""
    return Path(shutil.copytree(small_run, tmp_path / "run"))


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_scenario_is_complete_or_asks_for_its_table(name: str, refused: Refused) -> None:
    if name == "static-vs-market":
        assert "--outcomes FILE" in refused("run", name)
    elif name.startswith(("trec-", "robust03-", "vaswani-")):
        assert "--set folder=FOLDER" in refused("run", name)
    else:
        assert "" in arms_of(read_tree(name))


@pytest.mark.parametrize("kind", [None, *_KINDS])
def test_list_names_what_there_is(shell: Shell, kind: str | None) -> None:
    answer = shell("list", *([kind] if kind else []))
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.count("\n") >= (3 if kind != "exports" else 2)


def test_metrics_come_as_a_table_as_csv_and_as_json(shell: Shell, small_run: Path) -> None:
    asked = ("metrics", small_run, "HHI", "MarketShare(phase=after)")
    assert "MarketShare(phase=after)" in shell(*asked).out
    by_csv = pl.read_csv(shell(*asked, "--format", "csv").out.encode())
    by_json = json.loads(shell(*asked, "--format", "json").out)
    assert by_csv["mean"].to_list() == pytest.approx([row["mean"] for row in by_json])
    by_seed = pl.read_csv(shell(*asked, "--format", "csv", "--by-seed").out.encode())
    assert sorted(by_seed["seed"].unique()) == [1, 2, 3]
    shares = by_seed.filter(pl.col("metric").str.starts_with("MarketShare"))
    assert shares.group_by("seed").agg(pl.col("value").sum())["value"].to_list() == pytest.approx(
        [1.0] * 3
    )


def test_compare_gives_the_paired_difference(shell: Shell, small_run: Path) -> None:
    control = small_run / "controls" / "no-entry"
    asked = ("--metric", "HHI", "--format", "json")
    (row,) = json.loads(shell("compare", small_run, control, *asked).out)
    values = {}
    for path in (small_run, control):
        by_seed = shell("metrics", path, "HHI", "--by-seed", "--format", "json")
        values[path] = [one["value"] for one in json.loads(by_seed.out)]
    differences = [a - b for a, b in zip(values[small_run], values[control], strict=True)]
    assert row["mean"] == pytest.approx(sum(differences) / 3)
    assert "HHI" in shell("compare", small_run, control).out


def test_export_to_csv_names_what_the_log_numbers(
    shell: Shell, small_run: Path, tmp_path: Path
) -> None:
    answer = shell("export", small_run, "--to", "csv", "--out", "rows.csv")
    assert (answer.code, answer.out) == (0, "rows.csv\n")
    rows = pl.read_csv(tmp_path / "rows.csv")
    assert rows.height == 3 * 8 * 4
    assert set(rows["generator"].drop_nulls()) <= {"alpha", "beta", "gpt-4.1"}
    assert set(rows["item_id"]) <= {f"q{n}" for n in range(1, 13)}
    shell("export", small_run, "--to", "csv", "--out", "one.csv", "--seed", "2")
    assert set(pl.read_csv(tmp_path / "one.csv")["seed"]) == {2}


def test_an_export_for_the_reference_has_the_same_shares(
    shell: Shell, small_run: Path, tmp_path: Path
) -> None:
    out = ("--out", "simulation_log.csv")
    shell("export", small_run, "--to", "marketplace-eval", "--seed", "3", *out)
    shares = {}
    for log in (small_run, "simulation_log.csv"):
        answer = shell("metrics", log, "MarketShare", "--by-seed", "--format", "json")
        rows = [one for one in json.loads(answer.out) if one["seed"] in (3, 0)]
        shares[log] = {one["subject"]: one["value"] for one in rows if one["value"]}
    assert shares[small_run] == pytest.approx(shares["simulation_log.csv"])


def test_replay_says_that_every_arm_gives_the_same_log(shell: Shell, small_run: Path) -> None:
    answer = shell("replay", small_run)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.count("3 episodes, the same log") == 2


@pytest.mark.parametrize("arm", ["", "controls/no-entry"])
@pytest.mark.parametrize("where", ["episode", "log"])
def test_replay_detects_a_changed_digest(shell: Shell, run: Path, arm: str, where: str) -> None:
    path = run / arm / "manifest.json"
    manifest = json.loads(path.read_text())
    if where == "episode":
        seed, digest = next(iter(manifest["units"][0]["digests"].items()))
        manifest["units"][0]["digests"][seed] = digest[::-1]
    else:
        manifest["log_digest"] = manifest["log_digest"][::-1]
    path.write_text(json.dumps(manifest))
    answer = shell("replay", run)
    assert answer.code == 1
    assert answer.err.count("\n") == 1
    assert ("seed 1: the episode differs" if where == "episode" else "digest") in answer.err


@pytest.mark.parametrize(
    "words",
    [
        ("metrics", "gone"),
        ("report", "gone"),
        ("replay", "gone"),
        ("compare", "gone", "gone"),
        ("export", "gone", "--to", "csv"),
        ("metrics", "folder"),
        ("report", "folder"),
        ("replay", "folder"),
        ("compare", "folder", "folder"),
        ("export", "folder", "--to", "csv"),
        ("report", "table.csv"),
        ("metrics", "table.csv"),
        ("metrics", "binary.csv"),
        ("metrics", "empty.csv"),
        ("report",),
        ("run",),
        ("metrics",),
        ("rnu",),
        ("list", "metric"),
        ("list", "metrics", "more"),
    ],
)
def test_a_path_that_holds_no_run_is_refused(
    refused: Refused, tmp_path: Path, table: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary.csv").write_bytes(b"\x00\xff\xfe" * 40)
    (tmp_path / "empty.csv").write_bytes(b"")
    refused(*words)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("metrics", "run", "HIH"), "did you mean 'HHI'?"),
        (("metrics", "run", "HHI(window=ten)"), "takes a whole number"),
        (("metrics", "run", "HHI", "--format", "cvs"), "did you mean 'csv'?"),
        (("compare", "run", "run", "--format", "tabel"), "did you mean 'table'?"),
        (("compare", "run", "run", "--metric", "HIH"), "did you mean 'HHI'?"),
        (("export", "run", "--to", "cvs"), "did you mean 'csv'?"),
        (("export", "run", "--to", "csv", "--seed", "9"), "has no seed 9; it has 1-3"),
        (("export", "run", "--to", "csv", "--out", "there.csv"), "is there already"),
        (("export", "run", "--to", "marketplace-eval"), "got no seed"),
    ],
)
def test_what_a_verb_does_not_know_is_refused(
    refused: Refused, run: Path, words: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    (tmp_path / "there.csv").write_text("mine")
    assert says in refused(*words)


def test_runs_without_common_seeds_cannot_be_compared(
    shell: Shell, refused: Refused, run: Path, small: Path
) -> None:
    options = ("--executor", "serial", "--no-report", "--out", "other")
    assert shell("run", small, "--seeds", "7-8", *options).code == 0
    assert "run has the seeds 1-3, other has 7-8" in refused("compare", "run", "other")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("manifest.json", b""),
        ("manifest.json", b"\xff\x00"),
        ("manifest.json", b"[]"),
        ("manifest.json", b"{}"),
        ("scenario.yaml", b""),
        ("scenario.yaml", b"- 1"),
        ("scenario.yaml", b"\xff\xfe\x00"),
    ],
)
def test_a_broken_run_is_told_in_one_line_by_every_verb(
    refused: Refused, run: Path, name: str, content: bytes
) -> None:
    (run / name).write_bytes(content)
    for verb in ("report", "replay"):
        assert name in refused(verb, "run")


def test_a_broken_part_of_the_log_is_told_in_one_line(shell: Shell, run: Path) -> None:
    for part in (run / "events" / "interaction").glob("*"):
        part.write_bytes(b"PAR1 no more")
    (run / "metrics.parquet").write_bytes(b"")
    for words in (("metrics", "run"), ("compare", "run", "run"), ("export", "run", "--to", "csv")):
        answer = shell(*words)
        assert answer.code in (1, 2)
        assert answer.err.count("\n") == 1
        assert answer.err.startswith("error: ")


def test_foreign_files_among_the_events_are_left_alone(shell: Shell, run: Path) -> None:
    (run / "events" / "interaction" / "notes.parquet").write_text("mine")
    assert shell("metrics", "run").code == 0


def test_the_module_and_the_command_answer_alike_and_data_goes_to_stdout(
    small_run: Path, tmp_path: Path
) -> None:
    script = Path(sys.executable).with_name("marketeval")
    for start in ([sys.executable, "-m", "marketeval"], [str(script)]):
        done = subprocess.run(
            [*start, "metrics", small_run, "HHI"], capture_output=True, text=True, cwd=tmp_path
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "HHI" in done.stdout
    done = subprocess.run([*start, "rnu"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_without_a_word_the_help_comes_as_it_is(shell: Shell) -> None:
    bare = shell()
    assert bare.code == 0
    assert bare.out == shell("--help").out
    assert bare.out.count("\n") > 10


def test_metrics_of_a_run_without_a_finished_seed_are_refused(
    shell: Shell, refused: Refused, run: Path
) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    manifest.update(status="failed", units=[])
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert "no seed of run is finished" in refused("metrics", "run", "HHI")


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    marketeval = f"{sys.executable} -m marketeval"
    done = subprocess.run(
        f"{marketeval} list metrics | true", shell=True, capture_output=True, text=True
    )
    assert done.stderr == ""


def test_an_output_folder_in_use_is_refused_unless_it_holds_a_run_to_replace(
    shell: Shell, refused: Refused, run: Path, small: Path, tmp_path: Path
) -> None:
    words = ("run", small, "--executor", "serial", "--no-report", "--seeds", "1", "--out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    assert "is in use" in refused(*words, "run")
    line = refused(*words, "mine")
    assert "is in use" in line
    assert "--force" not in line  # which would be refused too
    assert "holds no run" in refused(*words, "mine", "--force")
    assert "is in use" in refused(*words, "mine", "--resume")
    assert "is a file" in refused(*words, "small.yaml")
    assert "is a file" in refused(*words, "small.yaml", "--force")
    (tmp_path / "empty").mkdir()
    assert shell(*words, "empty").code == 0
    assert shell(*words, "run", "--force").code == 0
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["seeds"] == "1"


def test_forcing_another_scenario_into_the_same_folder_plays_the_new_one(
    shell: Shell, small: Path, tmp_path: Path
) -> None:
    words = ("run", small, "--executor", "serial", "--no-report", "--out", "out", "--force")
    digests = []
    for population in (6, 5):
        assert shell(*words, "--set", f"population={population}").code == 0
        digests.append(json.loads((tmp_path / "out/manifest.json").read_text())["log_digest"])
        assert shell("replay", "out").code == 0
    assert digests[0] != digests[1]


def test_resuming_with_other_seeds_or_another_scenario_is_refused(
    refused: Refused, run: Path, small: Path
) -> None:
    words = ("run", "small.yaml", "--out", "run", "--resume", "--no-report")
    assert "was started with seeds 1-3, not 1-4" in refused(*words, "--seeds", "1-4")
    assert "another scenario" in refused(*words, "--set", "epsilon=0.3")
    small.write_text(SMALL.replace("0.7", "0.71"))
    assert "another scenario" in refused(*words)


def test_a_resumed_finished_run_stays_as_it_is(shell: Shell, run: Path, small: Path) -> None:
    before = listing(run)
    words = ("run", "small.yaml", "--out", "run", "--resume", "--no-report")
    assert shell(*words).code == 0
    assert listing(run) == before


@pytest.mark.parametrize("verb", ["replay", "resume"])
def test_a_changed_table_is_told_by_replay_and_resume(
    shell: Shell, refused: Refused, table: Path, verb: str
) -> None:
    words = ("run", "static-vs-market", "--outcomes", "table.csv", "--set", "horizon=3")
    options = ("--seeds", "1", "--executor", "serial", "--no-report", "--out", "done")
    assert shell(*words, *options).code == 0
    table.write_text(table.read_text().replace("q3,bob,1,correct", "q3,bob,0,incorrect"))
    if verb == "replay":
        assert "have changed since the run" in refused("replay", "done")
        table.unlink()
        assert "no outcome table at" in refused("replay", "done")
    else:
        assert "other data" in refused(*words, *options, "--resume")


def test_a_table_is_found_from_wherever_the_run_is_read(
    shell: Shell, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep" / "down").mkdir(parents=True)
    (tmp_path / "deep" / "mine.yaml").write_text(
        "outcomes: ../table.csv\nmarket: {horizon: 3}\n"
        "seats: {ada: recorded, bob: 'recorded:../table.csv#bob'}\n"
    )
    options = ("--seeds", "1", "--executor", "serial", "--no-report", "--out", "done")
    monkeypatch.chdir(tmp_path / "deep" / "down")
    for words in (
        ("run", "../mine.yaml"),
        ("run", "static-vs-market", "--outcomes", "../../table.csv"),
        ("run", "static-vs-market", "--set", "outcomes=../../table.csv"),
        ("run", tmp_path / "deep" / "mine.yaml", "--outcomes", table),
    ):
        assert shell(*words, "--set", "horizon=3", *options, "--force").code == 0
        monkeypatch.chdir(tmp_path)
        assert shell("replay", "deep/down/done").code == 0
        monkeypatch.chdir(tmp_path / "deep" / "down")
    assert shell("run", "../mine.yaml", *options, "--resume").code == 0  # another spelling only


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("export", "run", "--to", "csv", "--out"), "--out"),
        (("export", "run", "--to", "marketplace-eval", "--seed", 1, "--out"), "--out"),
        (("graph", "rag-ecosystem", "--svg"), "--svg"),
        (("serve", "--database", "m.sqlite", "--port", 0, "--access-log"), "--access-log"),
    ],
)
def test_a_file_in_a_missing_folder_is_one_line_before_anything_is_done(
    refused: Refused, run: Path, words: tuple[object, ...], option: str
) -> None:
    line = refused(*words, "nodir/x")
    assert line == f"error: expected {option} in a folder that is there; nodir is not\n"
    assert f"expected a file for {option}; {run} is a folder" in refused(*words, run)


def test_a_picture_does_not_take_the_place_of_its_scenario(
    refused: Refused, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text("base: rag-ecosystem\n")
    line = refused("graph", "mine.yaml", "--svg", tmp_path / "mine.yaml")
    assert "--svg would overwrite mine.yaml, which is read" in line


def test_what_is_of_another_family_is_named(refused: Refused, small_run: Path) -> None:
    line = refused("conversation", small_run, "--customer", "ann")
    family = f"{small_run} is of family information"
    assert line == f"error: conversations are of two-sided runs; {family}\n"
    assert refused("rate", small_run) == f"error: ratings are of supply-chain runs; {family}\n"
