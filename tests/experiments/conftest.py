"""A small scenario, and `marketeval` as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from slow_run import SMALL, write_scenario

from marketeval.experiments.scenario import Tree, parse_yaml


@pytest.fixture
def tree() -> Tree:
    return parse_yaml(SMALL, "small")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a scenario whose second seat is slow."""
    write_scenario(tmp_path)
    return tmp_path


@pytest.fixture
def process(folder: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start `python -m marketeval ...` there, in a process group of its own as a terminal does."""

    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "marketeval", *words],
            cwd=folder, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return start


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the slow scenario that nothing breaks off, over 8 seeds."""
    folder = tmp_path_factory.mktemp("unbroken")
    write_scenario(folder)
    words = ("run", "small.yaml", "--no-report", "--seeds", "1-8", "--out", "out")
    subprocess.run([sys.executable, "-m", "marketeval", *words], cwd=folder, check=True)
    return folder / "out"
