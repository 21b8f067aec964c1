"""One process or several: the same bytes; and what a pool does with errors and dying workers."""

from __future__ import annotations

import os
import signal
import threading
import time
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest

from marketeval.core.errors import RunError, UnknownNameError
from marketeval.experiments.executors import EXECUTORS, Processes, Serial
from marketeval.experiments.pieces import seeds_text
from marketeval.experiments.runner import cut, run
from marketeval.experiments.scenario import Tree, parse_seeds


def double(number: int) -> int:
    return 2 * number


class TwoWords(Exception):
    """An error that cannot be made again from its text: it does not survive the way."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


def misbehave(number: int) -> int:
    if number == 1:
        raise UnknownNameError("metric", "HIH", ["HHI"])
    if number == 2:
        raise OSError(28, "No space left on device")
    if number == 3:
        os._exit(5)
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 4:
        raise TwoWords("only", "text")
    time.sleep(60)
    return number


@pytest.mark.parametrize("name", ["serial", "threads", "processes"])
def test_every_piece_is_done_once(name: str) -> None:
    assert sorted(EXECUTORS[name]().map(double, range(20))) == list(range(0, 40, 2))
    assert list(EXECUTORS[name]().map(double, [])) == []


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (1, UnknownNameError, "unknown metric 'HIH'; did you mean 'HHI'"),
        (2, OSError, "No space left"),
        (3, RunError, r"^3 ended its worker process 3 times \(exit code 5\)$"),
        (5, RunError, r"^5 ended .* \(killed by signal 9, as where memory runs out\)$"),
        (4, RunError, "TwoWords: only text"),
    ],
)
def test_an_error_of_a_worker_comes_at_once_while_others_are_busy(
    number: int, kind: type[Exception], text: str
) -> None:
    start = time.monotonic()
    with pytest.raises(kind, match=text):
        list(Processes(2).map(misbehave, [0, number, 0]))
    assert time.monotonic() - start < 30


def threads_told(fails: bool) -> dict[str, str]:
    if fails:
        raise OSError(28, "No space left on device")
    return {name: value for name, value in os.environ.items() if name.endswith("_THREADS")}


def test_workers_are_told_how_many_threads_unless_the_caller_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in threads_told(False):
        monkeypatch.delenv(name)
    told = [{"OMP_NUM_THREADS": "3", "POLARS_MAX_THREADS": "3"}]
    assert list(Processes(1, threads=3).map(threads_told, [False])) == told
    with pytest.raises(OSError, match="No space left"):
        list(Processes(1, threads=3).map(threads_told, [True]))
    assert not threads_told(False)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # nothing that goes before it is set
    told = [{"OMP_NUM_THREADS": "2", "POLARS_MAX_THREADS": "3"}]
    assert list(Processes(1, threads=3).map(threads_told, [False])) == told
    assert threads_told(False) == {"OMP_NUM_THREADS": "2"}


def die_twice(marks: Path) -> str:
    """Kills its own process at the first two tries, and says then which try it was."""
    tries = len(list(marks.iterdir()))
    (marks / str(tries)).touch()
    if tries < 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{marks.name} at try {tries + 1}"


@pytest.mark.parametrize("workers", [1, 2])
def test_what_dying_workers_were_doing_is_done_by_others(workers: int, tmp_path: Path) -> None:
    pieces = [tmp_path / name for name in "abc"]
    for piece in pieces:
        piece.mkdir()
    done = sorted(Processes(workers).map(die_twice, pieces))
    assert done == ["a at try 3", "b at try 3", "c at try 3"]


def test_an_interrupt_that_another_thread_takes_waits_until_a_worker_has_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = threading.Event()
    taker = threading.Thread(target=done.wait)  # its mask is not ours
    taker.start()
    start, begun = SpawnProcess.start, []

    def interrupted(process: SpawnProcess) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        start(process)
        begun.append(process)

    monkeypatch.setattr(SpawnProcess, "start", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(Processes(1).map(double, [1]))
    finally:
        done.set()
        taker.join()
    assert len(begun) == 1
    begun[0].join(20)
    assert begun[0].exitcode == 0


def test_serial_and_processes_write_the_same_bytes(tree: Tree, tmp_path: Path) -> None:
    seeds = list(range(1, 20))
    one = run(tree, tmp_path / "one", executor=Serial(), seeds=seeds)
    two = run(tree, tmp_path / "two", executor=Processes(2), seeds=seeds)
    assert one.manifest.log_digest == two.manifest.log_digest
    tables = sorted(path.relative_to(one.path) for path in one.path.rglob("*.parquet"))
    assert tables == sorted(path.relative_to(two.path) for path in two.path.rglob("*.parquet"))
    for table in (*tables, "scenario.yaml", "controls/no-entry/scenario.yaml"):
        assert (one.path / table).read_bytes() == (two.path / table).read_bytes(), table


def test_seeds_are_cut_and_written_alike_wherever_they_are_played() -> None:
    for count in (1, 2, 16, 17, 50, 5000):
        seeds = list(range(3, 3 + count))
        pieces = cut(seeds)
        assert [seed for piece in pieces for seed in piece] == seeds
        assert max(map(len, pieces)) <= 250
        assert parse_seeds(seeds_text(seeds)) == seeds
    assert seeds_text([1, 2, 3, 7, 9, 10]) == "1-3,7,9-10"
