"""The command line in this process, and the small inputs of its tests."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from marketeval.apps.cli.main import run as marketeval

SMALL = """\
title: Three systems and a late one
seats:
  alpha: bernoulli:0.7
  beta: {agent: "bernoulli:0.5", label: Beta, enters: 4}
  gpt-4.1: {agent: "bernoulli:0.3", options: {cost_usd: 0.01, latency_s: 2}}
market:
  horizon: 8
  users: {population: 6, per_step: 4}
  questions: 12
controls:
  no-entry: {seats.beta: null}
seeds: 1-3
"""

TABLE = """\
item_id,model,score,grade,topic
q1,ada,1,correct,art
q1,bob,0,incorrect,art
q2,ada,0,not_attempted,law
q2,bob,1,correct,law
q3,ada,1,correct,art
q3,bob,1,correct,art
q4,ada,0,incorrect,law
q4,bob,0,not_attempted,law
"""


@dataclass(frozen=True)
class Answer:
    """What a command gave: its exit code and what it wrote."""

    code: int
    out: str
    err: str


Shell = Callable[..., Answer]


def call(*words: object) -> Answer:
    """One command, in this process."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = marketeval([str(word) for word in words])
    return Answer(code, out.getvalue(), err.getvalue())


def listing(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder with its bytes, every folder with None."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }
