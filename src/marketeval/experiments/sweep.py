"""A grid of scenarios: every combination of some values is a run of its own over the same seeds.

SWEEP/sweep.json             the grid, the seeds, and the cells
SWEEP/cells/NAME/            a cell: a run directory
SWEEP/effects.parquet        a row per cell and metric: mean over seeds, or effect on a control

A cell takes its name only once it is finished, so one that is there need not be played again, and
one whose worker died may be played by another.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from marketeval.core.errors import DataError, RunError, UnknownNameError, UsageError
from marketeval.experiments.asking import is_live
from marketeval.experiments.compare import compare
from marketeval.experiments.engines import ENGINES, Engine, engine_for
from marketeval.experiments.executors import Executor, Serial, WorkerDied
from marketeval.experiments.pieces import KEEPS, Keep, seeds_text
from marketeval.experiments.run_directory import (
    RunDirectory,
    held,
    scenario_text,
    write_table,
    write_text,
)
from marketeval.experiments.runner import arms_of, run
from marketeval.experiments.scenario import (
    Tree,
    check,
    full_key,
    parse_seeds,
    parse_value,
    with_overrides,
)
from marketeval.metrics.base import TIDY
from marketeval.metrics.resampling import summarise

Grid = Mapping[str, Sequence[Any]]  # any: values as in a scenario's YAML
HALF = ".half-"
GOES_ON = "the same command plays the cells that are not finished"
SWEPT = ("market", "seats", "outcomes", "missing", "items", "static", "entries", "phases")


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of the grid's values, and the tree of its scenario."""

    values: tuple[tuple[str, Any], ...]  # any: as in `Grid`
    tree: Tree
    path: Path
    seeds: tuple[int, ...]
    engine: Engine
    keep: Keep

    def __str__(self) -> str:
        return f"cell {self.path.name}"


def parse_grid(texts: Sequence[str], tree: Tree) -> dict[str, list[Any]]:
    """`key=a,b,c` per text; a key may be the last part of one under `market`, such as epsilon.

    Raises UsageError for a key that is not there, or twice, or without values, or that changes
    nothing in the market.
    """
    grid: dict[str, list[Any]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals or not key.strip() or not values.strip():
            raise UsageError(f"expected --grid KEY=VALUE,VALUE,..., got '{text}'")
        listed = parse_value(f"[{values}]")
        if not isinstance(listed, list):
            listed = values.split(",")
        settled = full_grid({key.strip(): listed}, tree)
        twice = next((name for name in settled if name in grid), None)
        if twice:
            raise UsageError(f"expected each key of the grid once, got '{twice}' twice")
        grid |= settled
    return full_grid(grid, tree)


def full_grid(grid: Grid, tree: Tree) -> dict[str, list[Any]]:
    """The grid with keys in full and each value once.

    Raises UsageError for a key or for values that cannot be, as `parse_grid`.
    """
    if not grid:
        raise UsageError("expected at least one --grid KEY=VALUE,VALUE,...")
    full: dict[str, list[Any]] = {}
    for key, values in grid.items():
        name = full_key(tree, str(key))
        _check_key(name)
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
            raise UsageError(f"expected a list of values for '{key}' in the grid, got {values!r}")
        listed = list(values)
        if not listed:
            raise UsageError(f"expected at least one value for '{key}' in the grid, got none")
        if name in full:
            raise UsageError(f"expected each key of the grid once, got '{name}' twice")
        told = {json.dumps(one, sort_keys=True, default=str): one for one in listed}
        full[name] = list(told.values())
    return full


def _check_key(name: str) -> None:
    """Refuse what a whole sweep has in common, as all columns of its result are."""
    top = name.partition(".")[0]
    if top == "seeds":
        raise UsageError("expected a setting of the market in --grid; seeds are given by --seeds")
    if top not in SWEPT:
        raise UsageError(
            f"expected a setting of the market in --grid, got '{name}', which all cells have in "
            f"common; what may vary: {', '.join(SWEPT)}"
        )


def cells_of(
    tree: Tree, grid: Grid, out: Path, *, seeds: Sequence[int], engine: Engine, keep: Keep
) -> list[Cell]:
    """All cells of a grid, in its order, each checked.

    Raises UsageError, naming the cell, for one that cannot be played.
    """
    cells = []
    for values in itertools.product(*grid.values()):
        pairs = tuple(zip(grid, values, strict=True))
        told = ",".join(f"{key.rpartition('.')[2]}={value}" for key, value in pairs)
        try:
            changed = with_overrides(tree, dict(pairs))
            arms = arms_of(changed)
            for arm in arms.values():
                engine_for(arm, engine)
        except UsageError as error:
            raise UsageError(f"cell {told}: {error}") from None
        if any(is_live(arm) for arm in arms.values()):
            raise UsageError(
                "a sweep plays seats that ask nobody; run scenarios with models or people one by "
                "one with marketeval run"
            )
        cells.append(
            Cell(pairs, changed, out / "cells" / _folder(told, pairs), tuple(seeds), engine, keep)
        )
    return cells


def sweep(
    tree: Tree,
    grid: Grid,
    out: Path,
    *,
    seeds: Sequence[int] | None = None,
    executor: Executor | None = None,
    engine: Engine = "auto",
    keep: Keep = "metrics",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> pl.DataFrame:
    """Play every cell that is not finished; the effects of all, as in SWEEP/effects.parquet.

    Raises UsageError before anything is written if a cell cannot be played, or if the folder holds
    something else.
    """
    scenario = check(tree)
    seeds = parse_seeds(scenario.seeds) if seeds is None else sorted(set(seeds))
    if not seeds or seeds[0] < 0:
        raise UsageError(f"expected seeds of 0 or more, at least one, got {seeds[:3]}")
    if keep not in KEEPS:
        raise UnknownNameError("keep", keep, KEEPS)
    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)
    grid = full_grid(grid, tree)
    cells = cells_of(tree, grid, out, seeds=seeds, engine=engine, keep=keep)
    _check_folder(out)
    finished = [cell for cell in cells if _is_finished(cell)]
    waiting = [cell for cell in cells if cell not in finished]
    with held(out):
        _clear_halves(out)
        told = {
            "scenario": scenario.name,
            "seeds": seeds_text(seeds),
            "grid": {key: list(values) for key, values in grid.items()},
            "cells": [cell.path.name for cell in cells],
        }
        write_text(out / "sweep.json", json.dumps(told, indent=1) + "\n")
        for cell in waiting:  # what is left of one that something was taken from
            shutil.rmtree(cell.path, ignore_errors=True)
        progress(len(finished), len(cells))
        found = {}
        try:
            with contextlib.closing((executor or Serial()).map(play_cell, waiting)) as results:
                for count, (name, table) in enumerate(results, len(finished) + 1):
                    found[name] = table
                    progress(count, len(cells))
        except WorkerDied as error:
            raise RunError(f"{error}; {GOES_ON}") from error
        _clear_halves(out)  # of workers that died
        found |= {cell.path.name: effects_of(cell) for cell in finished}
        effects = pl.concat([found[cell.path.name] for cell in cells], how="vertical_relaxed")
        write_table(out / "effects.parquet", effects)
    return effects


def _clear_halves(out: Path) -> None:
    for half in (out / "cells").glob(f"{HALF}*"):
        shutil.rmtree(half, ignore_errors=True)


def play_cell(cell: Cell) -> tuple[str, pl.DataFrame]:
    """Play a cell in a place of its own, and give it its name at the end; a pure function.

    The name, and the cell's effects: whoever plays computes them, so that nobody waits for it.
    """
    if not _is_finished(cell):
        _play(cell)
    return cell.path.name, effects_of(cell)


def _play(cell: Cell) -> None:
    half = cell.path.with_name(f"{HALF}{cell.path.name}-{os.getpid()}-{uuid.uuid4().hex[:8]}")
    try:
        run(
            cell.tree, half, executor=Serial(), seeds=cell.seeds, engine=cell.engine,
            keep=cell.keep, units=1,
        )  # fmt: skip
        with contextlib.suppress(OSError):  # another was as quick, with the same result
            half.rename(cell.path)
    except RunError as error:  # its half is thrown away, so there is nothing to resume
        reason = str(error.__cause__ or error)
        raise RunError(f"{cell} stopped on its way: {reason}; {GOES_ON}") from error
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _is_finished(cell: Cell) -> bool:
    """Whether the cell is there with all its controls; a refusal if what is there is another one.

    Raises DataError, naming the file and what to do, for one that cannot be read.
    """
    if not cell.path.exists():
        return False
    arms = arms_of(cell.tree)
    with _readable(cell):
        there = RunDirectory(cell.path)
        manifest, text = there.manifest, scenario_text(there.scenario)
        found = {"": there, **there.controls}
        whole = found.keys() >= arms.keys() and all(_is_whole(one) for one in found.values())
    same = text == scenario_text(arms[""].scenario) and manifest.keep == cell.keep
    if not same or manifest.seeds != seeds_text(cell.seeds):
        raise UsageError(
            f"{cell.path} holds a cell of another scenario, other seeds or another --keep; choose "
            "another --out"
        )
    return whole


def _is_whole(run: RunDirectory) -> bool:
    path = run.path / "metrics.parquet"
    if run.manifest.status != "finished" or not path.is_file():
        return False
    try:
        columns = pl.read_parquet_schema(path).keys()
    except pl.exceptions.PolarsError:
        raise DataError(f"{path} is no readable Parquet file") from None
    if not columns >= TIDY.keys():
        raise DataError(f"{path}: expected the columns {', '.join(TIDY)}, got {', '.join(columns)}")
    return True


@contextlib.contextmanager
def _readable(cell: Cell) -> Iterator[None]:
    """What is broken in a cell's files, with what to do about it."""
    try:
        yield
    except (UsageError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{error}; delete the folder {cell.path} and run the sweep again") from None


def effects_of(cell: Cell) -> pl.DataFrame:
    """Mean over seeds of each metric of a finished cell, and its difference from each control."""
    with _readable(cell):
        there = RunDirectory(cell.path)
        tables = {"": summarise(there.metrics())}
        tables |= {name: compare(there, control) for name, control in there.controls.items()}
    values = [
        pl.lit(value if _is_plain(value) else json.dumps(value)).cast(pl.String).alias(key)
        for key, value in cell.values
    ]
    return pl.concat(
        [
            table.filter(pl.col("step").is_null()).select(
                *values, pl.lit(name).alias("minus"), pl.exclude("step")
            )
            for name, table in tables.items()
        ],
        how="vertical_relaxed",
    )


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _check_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UsageError(f"the output {out} is a file; choose another --out")
    inside = {one.name for one in out.iterdir()} if out.exists() else set()
    if inside - {".lock"} and "sweep.json" not in inside:
        raise UsageError(f"the folder {out} is in use and holds no sweep; choose another --out")


def _folder(told: str, pairs: Sequence[tuple[str, Any]]) -> str:
    """A name for a cell's folder, which says its values and is its own."""
    safe = re.sub(r"[^\w=.,+-]", "_", told)
    names = {key.rpartition(".")[2] for key, _ in pairs}
    if safe == told and len(safe) <= 80 and len(names) == len(pairs):
        return safe
    whole = json.dumps(pairs, sort_keys=True, default=str)
    return f"{safe[:80]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def read_sweep(path: Path) -> tuple[dict[str, Any], pl.DataFrame]:
    """What a sweep's folder says of itself, and its effects."""
    if not (path / "effects.parquet").is_file():
        raise DataError(f"{path} is no finished sweep: expected an effects.parquet in it")
    told: dict[str, Any] = json.loads((path / "sweep.json").read_text("utf-8"))
    return told, pl.read_parquet(path / "effects.parquet")
