"""A grid of scenarios: its cells are runs, finished ones are kept, and effects are theirs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from marketeval.core.errors import DataError, RunError, UsageError
from marketeval.experiments.compare import compare
from marketeval.experiments.executors import Processes, Serial
from marketeval.experiments.run_directory import RunDirectory
from marketeval.experiments.runner import run
from marketeval.experiments.scenario import Tree, with_overrides
from marketeval.experiments.sweep import parse_grid, sweep

GRID = {"market.choice.epsilon": [0.1, 0.4], "market.users.population": [5, 20]}
SEEDS = list(range(1, 5))


def test_a_cell_is_the_run_of_its_values_and_its_effect_the_paired_one(
    tree: Tree, tmp_path: Path
) -> None:
    tree["metrics"] = ["HHI", "MarketShare"]
    effects = sweep(tree, GRID, tmp_path / "sweep", seeds=SEEDS)
    changes = {"market.choice.epsilon": 0.4, "market.users.population": 5}
    alone = run(with_overrides(tree, changes), tmp_path / "alone", seeds=SEEDS, executor=Serial())

    cell = RunDirectory(tmp_path / "sweep" / "cells" / "epsilon=0.4,population=5")
    assert cell.metrics().equals(alone.metrics())
    here = effects.filter(
        (pl.col("market.choice.epsilon") == "0.4") & (pl.col("market.users.population") == "5")
    )
    paired = compare(alone, alone.controls["no-entry"]).select("mean", "low", "high")
    assert here.filter(minus="no-entry").select("mean", "low", "high").equals(paired)
    assert effects.height == 4 * here.height


def test_finished_cells_are_not_played_again_and_a_grid_may_grow(
    tree: Tree, tmp_path: Path
) -> None:
    told: list[tuple[int, int]] = []
    first = {**GRID, "market.choice.epsilon": [0.1]}
    sweep(tree, first, tmp_path, seeds=SEEDS)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").rglob("*.parquet")}
    sweep(
        tree, GRID, tmp_path, seeds=SEEDS, progress=lambda done, total: told.append((done, total))
    )
    assert told == [(2, 4), (3, 4), (4, 4)]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert len(json.loads((tmp_path / "sweep.json").read_text())["cells"]) == 4


def test_processes_and_this_one_give_the_same_bytes(tree: Tree, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    sweep(tree, GRID, one, seeds=SEEDS, keep="log")
    sweep(tree, GRID, two, seeds=SEEDS, keep="log", executor=Processes(2))
    tables = sorted(path.relative_to(one) for path in one.rglob("*.parquet"))
    assert tables == sorted(path.relative_to(two) for path in two.rglob("*.parquet"))
    for table in tables:
        assert (one / table).read_bytes() == (two / table).read_bytes(), table


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ([], "at least one --grid"),
        (["epsilon"], "expected --grid KEY=VALUE"),
        (["epsilon="], "expected --grid KEY=VALUE"),
        (["epsilno=1,2"], "unknown key 'epsilno'; did you mean 'epsilon'"),
        (["epsilon=0.1", "market.choice.epsilon=0.2"], "each key of the grid once"),
        (["seeds=1,2"], "seeds are given by --seeds"),
        *(
            ([f"{key}=[HHI],[MeanScore]"], f"setting of the market in --grid, got '{key}'")
            for key in ("name", "title", "description", "family", "metrics", "controls", "prices")
        ),
        (["controls.no-entry=1,2"], "setting of the market in --grid, got 'controls.no-entry'"),
        (["epsilon=0.1,2"], "cell epsilon=2: market.choice.epsilon: .*less than or equal to 1"),
    ],
)
def test_a_grid_that_cannot_be_is_refused_and_nothing_written(
    tree: Tree, tmp_path: Path, grid: list[str], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        sweep(tree, parse_grid(grid, tree), tmp_path / "out", seeds=SEEDS)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("grid", "options", "words"),
    [
        ({"seeds": ["1", "2"]}, {}, "seeds are given by --seeds"),
        ({}, {}, "at least one --grid"),
        ({"epsilon": []}, {}, "at least one value for 'epsilon' in the grid, got none"),
        ({"epsilon": 0.1}, {}, "expected a list of values for 'epsilon' in the grid, got 0.1"),
        ({"epsilon": "0.1"}, {}, "expected a list of values for 'epsilon' in the grid, got '0.1'"),
        ({"epsilon": [0.1], "market.choice.epsilon": [0.2]}, {}, "each key of the grid once"),
        ({3: [1]}, {}, "unknown key '3'"),
        (GRID, {"seeds": []}, "expected seeds of 0 or more, at least one, got"),
        (GRID, {"seeds": [-1]}, "expected seeds of 0 or more"),
        (GRID, {"keep": "logs"}, "unknown keep 'logs'; did you mean 'log'"),
        (GRID, {"engine": "fast"}, "unknown engine 'fast'"),
    ],
)
def test_the_grid_of_a_caller_in_python_is_held_to_the_same(
    tree: Tree, tmp_path: Path, grid: Any, options: Any, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        sweep(tree, grid, tmp_path / "out", **{"seeds": SEEDS, **options})
    assert not (tmp_path / "out").exists()


def test_a_caller_in_python_may_use_the_last_part_of_a_key_and_a_value_twice(
    tree: Tree, tmp_path: Path
) -> None:
    short = sweep(tree, {"epsilon": [0.1, 0.1]}, tmp_path / "short", seeds=SEEDS)
    full = sweep(tree, {"market.choice.epsilon": [0.1]}, tmp_path / "full", seeds=SEEDS)
    assert short.equals(full)


def test_a_grid_may_vary_who_fills_a_seat(tree: Tree, tmp_path: Path) -> None:
    seat = f"seats.{next(iter(tree['seats']))}.agent"
    grid = parse_grid([f"{seat}=bernoulli:0.2,bernoulli:0.9"], tree)
    effects = sweep({**tree, "controls": {}}, grid, tmp_path / "out", seeds=SEEDS)
    assert effects[seat].unique().sort().to_list() == ["bernoulli:0.2", "bernoulli:0.9"]


def test_a_folder_of_something_else_and_another_sweeps_cells_are_left_alone(
    tree: Tree, tmp_path: Path
) -> None:
    sweep(tree, GRID, tmp_path / "out", seeds=SEEDS)
    with pytest.raises(UsageError, match="other seeds"):
        sweep(tree, GRID, tmp_path / "out", seeds=[9])
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="holds no sweep"):
        sweep(tree, GRID, tmp_path / "used", seeds=SEEDS)


@pytest.mark.parametrize(
    ("arm", "name"),
    [
        ("", "metrics.parquet"),
        ("", "manifest.json"),
        ("", "scenario.yaml"),
        ("controls/no-entry", "metrics.parquet"),
        ("controls/no-entry", "manifest.json"),
    ],
)
def test_a_broken_file_of_a_cell_is_named_with_the_remedy_which_helps(
    tree: Tree, tmp_path: Path, arm: str, name: str
) -> None:
    one = {"market.choice.epsilon": [0.1]}
    whole = sweep(tree, one, tmp_path, seeds=SEEDS)
    cell = tmp_path / "cells" / "epsilon=0.1"
    (cell / arm / name).write_text("[junk")
    with pytest.raises(DataError) as caught:
        sweep(tree, one, tmp_path, seeds=SEEDS)
    assert str(cell / arm / name) in str(caught.value)
    assert str(caught.value).endswith(f"delete the folder {cell} and run the sweep again")
    shutil.rmtree(cell)
    assert sweep(tree, one, tmp_path, seeds=SEEDS).equals(whole)


@pytest.mark.parametrize("gone", ["controls", "controls/no-entry", "metrics.parquet"])
def test_a_cell_from_which_something_is_gone_is_played_again(
    tree: Tree, tmp_path: Path, gone: str
) -> None:
    told: list[tuple[int, int]] = []
    one = {"market.choice.epsilon": [0.1, 0.4]}
    whole = sweep(tree, one, tmp_path, seeds=SEEDS)
    lost = tmp_path / "cells" / "epsilon=0.4" / gone
    shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
    again = sweep(
        tree, one, tmp_path, seeds=SEEDS, progress=lambda done, total: told.append((done, total))
    )
    assert told == [(1, 2), (2, 2)]
    assert again.equals(whole)
    assert lost.exists()


def test_a_cell_that_stops_on_its_way_names_the_cell_and_how_the_sweep_goes_on(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    one = {"market.choice.epsilon": [0.1]}
    with monkeypatch.context() as patch:
        patch.setattr("marketeval.experiments.pieces.write_table", full)
        with pytest.raises(RunError, match=r"cell epsilon=0\.1 stopped .*No space") as caught:
            sweep(tree, one, tmp_path, seeds=SEEDS)
    assert "--resume" not in str(caught.value)
    assert not list((tmp_path / "cells").iterdir())
    assert sweep(tree, one, tmp_path, seeds=SEEDS).height
