"""Runs that fail on their way: what is finished stays readable, and can be continued."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from slow_run import SMALL, wait_for_the_end_of, wait_for_unit, workers_of

from marketeval.apps.cli.main import run as marketeval
from marketeval.core.errors import ReplayError, RunError, UsageError
from marketeval.experiments.again import replay_run
from marketeval.experiments.executors import Serial
from marketeval.experiments.run_directory import PartSink, RunDirectory, held
from marketeval.experiments.runner import run
from marketeval.experiments.scenario import Tree, read_tree

Start = Callable[..., "subprocess.Popen[str]"]
BOTH = [pytest.param("serial", marks=pytest.mark.slow), "processes"]
SEEDS = list(range(1, 25))


def digests(path: Path) -> list[str]:
    """The log digests of a run and its control."""
    whole = RunDirectory(path)
    return [whole.manifest.log_digest, whole.controls["no-entry"].manifest.log_digest]


def test_a_full_disk_ends_the_run_and_what_was_finished_is_read_and_continued(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, parts = PartSink.write, []

    def full(self: PartSink, kind: str, part: pl.DataFrame) -> None:
        parts.append(kind)
        if len(parts) > 40:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, kind, part)

    unbroken = run(tree, tmp_path / "unbroken", executor=Serial(), seeds=SEEDS)
    monkeypatch.setattr(PartSink, "write", full)
    with pytest.raises(RunError, match=r"No space left on device.*--resume"):
        run(tree, tmp_path / "broken", executor=Serial(), seeds=SEEDS)
    broken = RunDirectory(tmp_path / "broken")
    assert broken.manifest.status == "failed"
    assert "No space left" in broken.manifest.reason
    finished = broken.seeds()
    assert 0 < len(finished) < len(SEEDS)
    assert broken.scan("interaction").collect()["seed"].unique().to_list() == finished
    monkeypatch.setattr(PartSink, "write", write)
    continued = run(tree, tmp_path / "broken", executor=Serial(), seeds=SEEDS, resume=True)
    assert digests(continued.path) == digests(unbroken.path)
    assert continued.manifest.status == "finished"
    assert continued.metrics().equals(unbroken.metrics())
    files = sorted(path.relative_to(continued.path) for path in continued.path.rglob("*"))
    assert files == sorted(path.relative_to(unbroken.path) for path in unbroken.path.rglob("*"))


def test_a_disk_that_is_full_while_metrics_are_written_leaves_no_half_table(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = pl.DataFrame.write_parquet

    def full(self: pl.DataFrame, file: Path, **options: object) -> None:
        if "metrics" in file.name:
            file.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, file, **options)  # type: ignore[arg-type]  # what polars takes

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(RunError, match="No space left"):
        run(tree, tmp_path / "out", executor=Serial(), seeds=[1, 2])
    monkeypatch.undo()
    broken = RunDirectory(tmp_path / "out")
    assert not list(broken.path.glob("metrics*"))
    assert broken.seeds() == [1, 2]
    assert run(tree, broken.path, executor=Serial(), seeds=[1, 2], resume=True).metrics().height


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limits on file sizes here")
def test_a_real_limit_on_the_size_of_files_is_told_in_one_line(folder: Path) -> None:
    (folder / "small.yaml").write_text(SMALL.replace("per_step: 4", "per_step: 4000"))

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    words = ("run", "small.yaml", "--no-report", "--out", "out", "--executor", "serial")
    done = subprocess.run(
        [sys.executable, "-m", "marketeval", *words],
        cwd=folder, capture_output=True, text=True, preexec_fn=small_files,
        env={**os.environ, "NUMBA_CACHE_DIR": ""},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "stopped on its way" in done.stderr
    assert RunDirectory(folder / "out").manifest.status == "failed"


@pytest.mark.parametrize("where", ["file/out", "/proc/no-such/out"])
def test_a_folder_that_cannot_be_written_is_told_in_one_line(
    folder: Path, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "file").write_text("")
    monkeypatch.chdir(folder)
    words = ["run", "late-entry-qwen3", "--no-report", "--executor", "serial", "--out", where]
    assert marketeval(words) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert (folder / "file").read_text() == ""


@pytest.mark.parametrize("executor", BOTH)
def test_an_interrupt_ends_in_one_line_and_the_run_can_be_continued(
    folder: Path, process: Start, unbroken: Path, executor: str
) -> None:
    words = ("run", "small.yaml", "--no-report", "--seeds", "1-8", "--out")
    running = process(*words, "out", "--executor", executor)
    wait_for_unit(folder / "out", running)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: workers get it as well
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out) == (1, ""), err
    assert (
        err == "error: interrupted; what was finished stays readable; a run goes on with --resume\n"
    )
    wait_for_the_end_of(running.pid)
    broken = RunDirectory(folder / "out")
    assert (broken.manifest.status, broken.manifest.reason) == ("failed", "interrupted")
    assert broken.scan("interaction").collect()["seed"].unique().to_list() == broken.seeds() != []
    assert process(*words, "out", "--resume").wait(60) == 0
    assert digests(folder / "out") == digests(unbroken)


def test_an_interrupt_while_workers_start_reaches_the_parent_alone(
    folder: Path, process: Start
) -> None:
    running = process("run", "small.yaml", "--no-report", "--out", "out")
    for _ in range(600):
        if (folder / "out" / "controls" / "no-entry" / "scenario.yaml").exists():
            break
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(0.02)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out) == (1, ""), err
    assert (
        err == "error: interrupted; what was finished stays readable; a run goes on with --resume\n"
    )


@pytest.mark.parametrize("executor", BOTH)
def test_a_killed_run_continues_to_the_log_of_an_unbroken_one(
    folder: Path, process: Start, unbroken: Path, executor: str
) -> None:
    words = ("run", "small.yaml", "--no-report", "--seeds", "1-8", "--out")
    running = process(*words, "out", "--executor", executor)
    wait_for_unit(folder / "out", running)
    running.kill()
    running.communicate()
    wait_for_the_end_of(running.pid)  # workers leave by themselves
    assert RunDirectory(folder / "out").manifest.status == "running"
    assert process("metrics", "out", "HHI").wait(60) == 0
    assert process(*words, "out", "--resume").wait(60) == 0
    assert digests(folder / "out") == digests(unbroken)
    for part in unbroken.rglob("*.parquet"):
        twin = folder / "out" / part.relative_to(unbroken)
        assert twin.read_bytes() == part.read_bytes()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="workers are found as on Linux")
def test_workers_that_are_killed_change_nothing(
    folder: Path, process: Start, unbroken: Path
) -> None:
    running = process(
        "run", "small.yaml", "--no-report", "--seeds", "1-8", "--out", "out", "--executor",
        "processes",
    )  # fmt: skip
    wait_for_unit(folder / "out", running)
    killed: set[int] = set()
    for _ in range(2):  # the second time those that were started in their place
        both: set[int] = set()
        while len(both) < 2 and running.poll() is None:  # one at a time could be one piece's three
            both = workers_of(running) - killed
            time.sleep(0.005)
        for pid in both:
            os.kill(pid, signal.SIGKILL)
        killed |= both
    _, err = running.communicate(timeout=120)
    assert len(killed) == 4
    assert running.returncode == 0, err
    assert digests(folder / "out") == digests(unbroken)
    files = sorted(path.relative_to(unbroken) for path in unbroken.rglob("*"))
    assert sorted(path.relative_to(folder / "out") for path in (folder / "out").rglob("*")) == files
    for part in unbroken.rglob("*.parquet"):
        assert (folder / "out" / part.relative_to(unbroken)).read_bytes() == part.read_bytes()


def test_seeds_that_kill_every_worker_are_told_in_one_line_and_the_rest_can_be_continued(
    folder: Path, process: Start, unbroken: Path
) -> None:
    path = folder / "small.yaml"
    healthy = path.read_text()
    deadly = "python:slow:Slow, options: {seconds: 0, dies_at: 7}"
    path.write_text(healthy.replace("python:slow:Slow", deadly))
    running = process("run", "small.yaml", "--no-report", "--seeds", "1-8", "--out", "out")
    out, err = running.communicate(timeout=120)
    assert (running.returncode, out) == (1, "")
    assert re.search(r"unit \d+ of \S+ \(seeds 7\) ended its worker process 3 times", err), err
    assert "(exit code 3); what was finished is in out; continue it with --resume" in err
    assert err.count("\n") == 1
    assert RunDirectory(folder / "out").manifest.status == "failed"


def test_an_agent_that_is_not_immediate_after_all_ends_the_run_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "liar.py").write_text(
        "import asyncio\nclass Liar:\n"
        "    immediate, deterministic, privileged = True, True, False\n"
        "    async def act(self, request):\n        await asyncio.sleep(0)\n"
    )
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    seat = ["--seat", "gamma=python:liar:Liar"]
    words = ["run", "small.yaml", "--no-report", "--executor", "serial", "--out", "out"]
    assert marketeval([*words, *seat]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_folder_left_by_a_run_that_was_killed_at_its_start_can_be_resumed_or_replaced(
    tree: Tree, tmp_path: Path
) -> None:
    whole = run(tree, tmp_path / "whole", executor=Serial(), seeds=[1, 2])
    for name, options in (("a", {"resume": True}), ("b", {"force": True})):
        started = tmp_path / name
        started.mkdir()
        text = (whole.path / "manifest.json").read_text()
        manifest = {**json.loads(text), "units": [], "status": "running"}
        (started / "manifest.json").write_text(json.dumps(manifest))
        done = run(tree, started, executor=Serial(), seeds=[1, 2], **options)
        assert digests(done.path) == digests(whole.path)


def test_a_folder_that_another_process_is_writing_is_left_alone(tmp_path: Path) -> None:
    with held(tmp_path / "run"), pytest.raises(UsageError, match="another process"):
        run(read_tree("late-entry-qwen3"), tmp_path / "run", executor=Serial(), seeds=[1])
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_replay_notices_an_event_that_was_changed_on_disk(tmp_path: Path) -> None:
    tree = {**read_tree("late-entry-qwen3"), "controls": {}}
    done = run(tree, tmp_path / "run", executor=Serial(), seeds=[1, 2])
    part = next((tmp_path / "run" / "events" / "interaction").glob("*.parquet"))
    pl.read_parquet(part).with_columns(user=pl.col("user") + 1).write_parquet(part)

    with pytest.raises(ReplayError, match="'interaction'"):
        list(replay_run(done, progress=lambda count, total: None))


def test_force_replaces_a_run_by_one_of_a_changed_scenario(tmp_path: Path) -> None:
    tree = {**read_tree("late-entry-qwen3"), "controls": {}}
    run(tree, tmp_path / "run", executor=Serial(), seeds=[1])
    changed = {**tree, "market": {**tree["market"], "horizon": 105}}

    done = run(changed, tmp_path / "run", executor=Serial(), seeds=[1], force=True)

    assert done.scan("interaction").collect()["step"].max() == 104
