"""Commands in an empty folder, and small runs that many tests read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from shell import SMALL, TABLE, Shell, call, listing


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return call


@pytest.fixture
def refused(shell: Shell, tmp_path: Path) -> Callable[..., str]:
    """A command that must end with exit code 2, one line, and nothing written; the line."""

    def check(*words: object) -> str:
        before = listing(tmp_path)
        answer = shell(*words)
        assert (answer.code, answer.out) == (2, ""), answer
        assert answer.err.startswith("error: ")
        assert answer.err.count("\n") == 1
        assert answer.err.endswith("\n")
        assert listing(tmp_path) == before
        return answer.err

    return check


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A small scenario in the current folder."""
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A small table of recorded answers in the current folder."""
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A finished run of the small scenario; tests read it and leave it as it is."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "small.yaml").write_text(SMALL)
    with chdir(folder):
        answer = call("run", "small.yaml", "--executor", "serial", "--no-report", "--out", "done")
    assert answer.code == 0, answer.err
    before = listing(folder / "done")
    yield folder / "done"
    assert listing(folder / "done") == before
