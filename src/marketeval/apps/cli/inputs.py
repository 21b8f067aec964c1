"""What several verbs take: run directories and logs, overrides, and the reference's files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marketeval.core.errors import UsageError

if TYPE_CHECKING:
    from marketeval.core.log import LogReader
    from marketeval.experiments.run_directory import RunDirectory


def open_run(path: Path) -> RunDirectory:
    """A run directory, or one line that says why it is none."""
    from marketeval.experiments.run_directory import RunDirectory

    return RunDirectory(path)


def open_log(path: Path) -> LogReader:
    """The log of a run directory, a simulation_log.csv of the marketplace-eval package, or a
    database of the Magentic Marketplace."""
    if path.is_dir():
        run = open_run(path)
        if not run.seeds():
            raise UsageError(f"no seed of {path} is finished; continue it with run --resume")
        return run
    from marketeval.adapters.magentic import is_database, read_database

    if path.is_file() and is_database(path):
        return read_database(path)
    from marketeval.adapters.marketplace_eval import read_log

    return read_log(path)


def scenario_tree(
    name: str,
    *,
    settings: Sequence[str] = (),
    seats: Sequence[str] = (),
    seat_option: str = "--seat",
    outcomes: Sequence[Path] = (),
    missing: str | None = None,
    items: Path | None = None,
    entries: Path | None = None,
) -> tuple[dict[str, Any], list[str]]:  # any: a scenario's YAML
    """A scenario's tree with what the command line changes in it, and notes on how it was read.

    `seat_option` is the verb's name of the option that gave `seats`, for what is said of them.
    """
    from marketeval.adapters.marketplace_eval_scenario import is_config, load_tree
    from marketeval.experiments.assembly import with_seats
    from marketeval.experiments.scenario import (
        fill_seat,
        make_absolute,
        override,
        parse_value,
        read_tree,
    )

    notes: list[str] = []
    if os.path.isfile(name) and is_config(Path(name)):
        tree, notes = load_tree(Path(name), replayed=bool(outcomes or seats))
    else:
        tree = read_tree(name)
    if outcomes:
        tree["outcomes"] = [str(one) for one in outcomes]
    if missing is not None:
        tree["missing"] = missing
    if items:
        tree["items"] = str(items)
    if entries:
        given = tree.get("entries")
        tree["entries"] = {**(given if isinstance(given, dict) else {}), "file": str(entries)}
    make_absolute(tree, Path.cwd())
    changes = [_pair(text, "--set KEY=VALUE") for text in settings]
    if seats or any(key.startswith("seats.") for key, _ in changes):
        tree = with_seats(tree)
    for text in seats:
        fill_seat(tree, *_pair(text, f"{seat_option} NAME=AGENT"))
    for key, value in changes:
        override(tree, key, parse_value(value))
    make_absolute(tree, Path.cwd())
    return tree, notes


def _pair(text: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"expected {form}, got '{text}'")
    return name.strip(), value.strip()
