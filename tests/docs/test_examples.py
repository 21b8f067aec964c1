"""Every example runs and prints what stands beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from documents import EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.stem)
def test_an_example_prints_what_stands_beside_it(example: Path) -> None:
    done = subprocess.run(
        [sys.executable, example], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == example.with_suffix(".out").read_text("utf-8")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.stem)
def test_an_example_is_short(example: Path) -> None:
    assert len(example.read_text("utf-8").splitlines()) < 40
