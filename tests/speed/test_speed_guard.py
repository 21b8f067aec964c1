"""What must not get slower: ratios within one run, and what a short command imports."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CPU = 1  # of what a benchmark spends: seconds by the clock, and of CPU
HEAVY = ("numpy", "numba", "polars", "pydantic", "altair", "openai", "rich.console")
ASKING = ("asyncio", "sqlite3", "marketeval.llm.calls", "altair", "rich.console")


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from marketeval.apps.cli.main import run; run(['--help']);"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules], sep=',')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""


def test_a_run_that_asks_nobody_imports_nothing_that_asks(tmp_path: Path) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(
        "seats: {a: bernoulli:0.6, b: bernoulli:0.4}\n"
        "market: {horizon: 2, users: {population: 4, per_step: 2}}\nseeds: 1\n",
        "utf-8",
    )
    line = ["run", str(scenario), "--out", str(tmp_path / "run"), "--no-report"]
    code = (
        f"import sys; from marketeval.apps.cli.main import run; code = run({line!r});"
        f"print(code, *[name for name in {ASKING!r} if name in sys.modules], sep=',')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"


def test_a_thread_plays_at_least_a_third_of_what_a_bare_kernel_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speed = load("speed", monkeypatch)
    size = (1000, 1000, 50)
    run = speed.ours(*size, log=(), threads=1)
    run(), speed.bare.seconds(10, 5, 10)  # compiled
    pairs = [(run()[CPU], speed.bare.seconds(*size)) for _ in range(7)]
    assert min(mine / bare for mine, bare in pairs) < 3


def test_a_log_in_memory_costs_less_than_three_times_the_market_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speed = load("speed", monkeypatch)
    size = (1000, 1000, 50)
    alone = speed.ours(*size, log=(), threads=1)
    logged = speed.ours(*size, log=speed.LOGGED, threads=1)
    alone(), logged()
    assert min(logged()[CPU] / alone()[CPU] for _ in range(7)) < 3
