"""What the terminal shows while models are asked, and what `--verbose` and `--no-record` do."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

from marketeval.apps.cli import progress
from marketeval.apps.cli.main import run as marketeval
from marketeval.llm.calls import Tally
from marketeval.testing.fake_endpoint import FakeEndpoint, every, status

SCENARIO = """
seats: {{mine: {{agent: "{agent}", options: {{max_tokens: 8}}}}, other: "bernoulli:0.5"}}
items: questions.csv
endpoints: {{"{url}": {{attempts: 3, backoff_s: 0.01}}}}
market: {{horizon: 3, users: {{population: 4, per_step: 4}}}}
seeds: 1-2
"""


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"q{n},What follows {n}?,{n + 1}" for n in range(12)]
    Path("questions.csv").write_text("\n".join(["item_id,question,answer", *rows]))

    def written(fake: FakeEndpoint, *more: str) -> list[str]:
        Path("s.yaml").write_text(SCENARIO.format(agent=fake.agent, url=fake.url))
        return ["run", "s.yaml", "--out", "out", "--no-report", *more]

    return written


def test_the_table_has_a_line_per_seat_with_failures_tokens_dollars_and_seconds() -> None:
    one = Tally(calls=1200, served=7, failures=3, input_tokens=90, output_tokens=8, latency_s=600.0)
    other = Tally(calls=2, unpriced=2)
    one.cost_usd = 0.25
    shown = Console(file=io.StringIO(), width=100)
    shown.print(progress.seats_table({"qwen": one, "anna": other, "new": Tally()}))
    lines = [line.split() for line in shown.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert lines[1:] == [
        ["anna", "2", "0", "0", "0", "0", "unpriced", "0.00"],
        ["new", "0", "0", "0", "0", "0", "0.0000", "-"],
        ["qwen", "1,200", "7", "3", "90", "8", "0.2500", "0.50"],
    ]


def test_on_a_terminal_the_view_moves_with_the_steps(
    words, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, moved = io.StringIO(), []
    real = progress.bar

    def watched(*told):
        monkeypatch.setattr(shown, "isatty", lambda: True, raising=False)
        monkeypatch.setattr(progress.sys, "stderr", shown)
        return real(*told)

    monkeypatch.setattr(progress, "bar", watched)

    def update(self, task, **how):
        moved.append(how)
        real_update(self, task, **how)

    real_update = Progress.update
    monkeypatch.setattr(Progress, "update", update)
    with FakeEndpoint() as fake:
        assert marketeval(words(fake)) == 0
    done = [one["completed"] for one in moved]
    assert done == sorted(done)
    assert any(0 < one % 1 < 1 for one in done)  # parts of episodes, for the time that is left
    assert done[-1] == moved[-1]["total"] == 2
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown.getvalue())  # without colours and moves
    assert re.search(r"seat +calls +served +failed", text)
    assert re.search(r"mine +\d+ +\d+ +0", text)


def test_verbose_tells_each_call_with_its_failed_attempts(
    words, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeEndpoint(faults=every(3, status(500, message="tired"))) as fake:
        assert marketeval(words(fake, "--verbose")) == 0
        told = [line for line in capsys.readouterr().err.splitlines() if " -> http" in line]
        assert (
            len(told) == fake.requests - fake.requests // 3 - 1
        )  # the preflight is told by nobody
        assert sum("attempt 1: HTTP 500: tired" in line for line in told) >= 1
        assert marketeval(words(fake, "--force", "--verbose")) == 0
    assert " -> http" not in capsys.readouterr().err


def test_without_a_record_all_is_asked_anew_and_nothing_is_kept(
    words, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeEndpoint() as fake:
        for _ in range(2):
            before = fake.requests
            assert marketeval(words(fake, "--no-record", "--force")) == 0
            assert fake.requests > before
        assert not list(Path("out").glob("calls.sqlite*"))
        assert marketeval(words(fake, "--no-record", "--resume")) == 2
    assert "expected --no-record alone" in capsys.readouterr().err
