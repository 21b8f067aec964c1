"""A small scenario with a seat slow enough to break its run off, and how to wait for things."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

SMALL = """\
name: small
seats:
  alpha: bernoulli:0.7
  beta: {agent: "bernoulli:0.5", enters: 4}
  gamma: {agent: "bernoulli:0.3"}
market:
  horizon: 8
  users: {population: 6, per_step: 4}
  questions: 12
controls:
  no-entry: {seats.beta: null}
metrics: [MarketShare, HHI]
"""

# Agents whose answers take long enough to interrupt them, or that end their process.
AGENTS = """
import os, time
from marketeval.actions.information import Answers

class Slow:
    immediate, deterministic, privileged = True, True, False
    def __init__(self, seconds=0.02, dies_at=None):
        self.seconds, self.dies_at = seconds, dies_at
    async def act(self, request):
        time.sleep(self.seconds)
        if request.draws.seed == self.dies_at:
            os._exit(3)
        return Answers(score=[1.0] * len(request.batch["question"]))
"""


def write_scenario(folder: Path) -> None:
    (folder / "slow.py").write_text(AGENTS)
    (folder / "small.yaml").write_text(SMALL.replace('"bernoulli:0.3"', "python:slow:Slow"))


def wait_for_unit(run: Path, process: subprocess.Popen[str]) -> None:
    """Until the first unit of the run is finished."""
    for _ in range(1200):
        manifest = run / "manifest.json"
        if manifest.is_file() and '"digests"' in manifest.read_text():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("no unit was finished in a minute")


def wait_for_the_end_of(group: int) -> None:
    """Until no process of the group is left."""
    for _ in range(200):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("processes outlive their parent by 20 s")


def workers_of(process: subprocess.Popen[str]) -> set[int]:
    """The numbers of the worker processes of a run, as Linux tells them."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return {int(one) for one in children if "multiprocessing-fork" in _command_of(one)}


def _command_of(number: str) -> str:
    try:
        return Path(f"/proc/{number}/cmdline").read_text()
    except OSError:  # it has ended since it was listed
        return ""
