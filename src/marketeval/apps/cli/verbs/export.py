"""`marketeval export`: a run's log in another form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from marketeval.core.errors import UsageError

if TYPE_CHECKING:
    from marketeval.experiments.run_directory import RunDirectory


def command(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    to: Annotated[str, typer.Option(help="The format; see list exports.")],
    seed: Annotated[int | None, typer.Option(help="One seed [all, where the format can].")] = None,
    out: Annotated[Path | None, typer.Option(help="The file [in the run directory].")] = None,
) -> None:
    """Write a run's interactions as another program reads them."""
    from marketeval.apps.cli.inputs import open_run
    from marketeval.core.errors import UnknownNameError
    from marketeval.experiments.targets import check_target

    if to not in FORMATS:
        raise UnknownNameError("export format", to, FORMATS)
    opened = open_run(run)
    if seed is not None and seed not in opened.seeds():
        raise UsageError(f"{run} has no seed {seed}; it has {opened.manifest.seeds}")
    name, write = NAMES[to], FORMATS[to][1]
    target = out or run / name
    check_target(target, "--out")
    if target.exists():
        raise UsageError(f"{target} is there already; choose another --out")
    write(opened, seed, target)
    typer.echo(target)


def _marketplace_eval(run: RunDirectory, seed: int | None, target: Path) -> None:
    from marketeval.adapters.marketplace_eval_scenario import write_run

    write_run(run, target, seed=seed)


def _csv(run: RunDirectory, seed: int | None, target: Path) -> None:
    import polars as pl

    from marketeval.core.errors import UsageError

    if run.manifest.family != "information":
        raise UsageError(f"csv is of interactions; {run.path} is of family {run.manifest.family}")
    rows = run.scan("interaction")
    if seed is not None:
        rows = rows.filter(pl.col("seed") == seed)
    seats = run.scan("generator").select("agent", generator="seat")
    questions = run.scan("question").select("question", item_id="item")
    topics = run.scan("topic").select("topic", topic_name="name")
    rows = rows.join(seats, on="agent", maintain_order="left")
    rows = rows.join(questions, on="question", maintain_order="left")
    rows = rows.join(topics, on="topic", maintain_order="left")
    rows.collect().write_csv(target)


def _magentic(run: RunDirectory, seed: int | None, target: Path) -> None:
    from marketeval.adapters.magentic import write_database
    from marketeval.adapters.magentic_calls import call_documents
    from marketeval.experiments.exchanges import exchanges

    if run.manifest.family != "two_sided":
        raise UsageError(f"magentic is for two-sided markets; this run is {run.manifest.family}")
    chosen = run.seeds()[0] if seed is None else seed
    write_database(run, target, seed=chosen, llm_calls=call_documents(exchanges(run, chosen)))


def _trajectories(run: RunDirectory, seed: int | None, target: Path) -> None:
    from marketeval.adapters.trajectories import write_trajectories

    write_trajectories(run, target, seed=seed)


Writer = Callable[["RunDirectory", int | None, Path], None]
FORMATS: dict[str, tuple[str, Writer]] = {
    "marketplace-eval": (
        "simulation_log.csv of the reference package, one seed",
        _marketplace_eval,
    ),
    "magentic": ("SQLite file of the Magentic Marketplace, one seed [first]", _magentic),
    "trajectories": (
        "JSONL for training: observation, action, outcome, reward per seat and step (supply chain)",
        _trajectories,
    ),
    "csv": ("one row per interaction, names beside the numbers", _csv),
}
NAMES = {
    "marketplace-eval": "simulation_log.csv",
    "magentic": "marketplace.db",
    "trajectories": "trajectories.jsonl",
    "csv": "interactions.csv",
}
