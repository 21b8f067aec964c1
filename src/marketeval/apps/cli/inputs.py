"""What several verbs take: run directories and logs, overrides, and the reference's files."""

from __future__ import annotations

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
    """The log of a run directory, or a simulation_log.csv of the reference package."""
    if path.is_dir():
        return open_run(path)
    from marketeval.adapters.marketplace_eval import read_log

    return read_log(path)


def scenario_tree(
    name: str,
    *,
    settings: Sequence[str] = (),
    seats: Sequence[str] = (),
    outcomes: Sequence[Path] = (),
    missing: str | None = None,
    items: Path | None = None,
    entries: Path | None = None,
) -> dict[str, Any]:  # any: a scenario's YAML
    """A scenario's tree with what the command line changes in it."""
    from marketeval.adapters.marketplace_eval_scenario import is_config, load_tree
    from marketeval.experiments.scenario import override, parse_value, read_tree

    path = Path(name)
    tree = load_tree(path) if path.is_file() and is_config(path) else read_tree(name)
    if outcomes:
        tree["outcomes"] = [str(one.resolve()) for one in outcomes]
    if missing:
        tree["missing"] = missing
    if items:
        tree["items"] = str(items.resolve())
    if entries:
        tree["entries"] = {"file": str(entries.resolve())}
    for text in seats:
        seat, agent = _pair(text, "--seat NAME=AGENT")
        override(tree, f"seats.{seat}.agent", agent)
    for text in settings:
        key, value = _pair(text, "--set KEY=VALUE")
        override(tree, key, parse_value(value))
    return tree


def _pair(text: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"expected {form}, got '{text}'")
    return name.strip(), value.strip()
