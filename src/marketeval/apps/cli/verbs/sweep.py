"""`marketeval sweep`: a scenario over a grid of values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from marketeval.apps.cli.options import Engine, Missing, Outcomes, Scenario, Seats, Seeds, Settings


def command(
    scenario: Scenario,
    grid: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE,VALUE,...; may be repeated.")
    ] = None,
    seeds: Seeds = None,
    set_: Settings = None,
    seat: Seats = None,
    outcomes: Outcomes = None,
    missing: Missing = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="A metric; may be repeated. [the scenario's]")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder [runs/SCENARIO-sweep].")] = None,
    engine: Engine = "auto",
    executor: Annotated[
        str, typer.Option(help="Who plays the cells: serial, threads, processes or ray.")
    ] = "processes",
    keep: Annotated[
        str, typer.Option(help="metrics, or log: write the events of every cell too.")
    ] = "metrics",
    format_: Annotated[str, typer.Option("--format", help="table, csv or json.")] = "table",
    report: Annotated[bool, typer.Option(help="Draw heatmap.html.")] = True,
) -> None:
    """Play a scenario at every combination of a grid's values; finished cells are not repeated."""
    from marketeval.apps.cli.inputs import scenario_tree
    from marketeval.apps.cli.progress import bar, say
    from marketeval.apps.cli.tables import FORMATS, show
    from marketeval.core.errors import UnknownNameError, UsageError
    from marketeval.experiments.engines import ENGINES
    from marketeval.experiments.executors import EXECUTORS
    from marketeval.experiments.pieces import KEEPS
    from marketeval.experiments.scenario import check, parse_seeds
    from marketeval.experiments.sweep import parse_grid, sweep

    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)
    if executor not in EXECUTORS:
        raise UnknownNameError("executor", executor, EXECUTORS)
    if keep not in KEEPS:
        raise UnknownNameError("keep", keep, KEEPS)
    if format_ not in FORMATS:
        raise UnknownNameError("format", format_, FORMATS)
    tree, notes = scenario_tree(
        scenario, settings=set_ or (), seats=seat or (), outcomes=outcomes or (), missing=missing
    )
    if metric:
        tree["metrics"] = list(metric)
    where = out or Path("runs") / f"{check(tree).name}-sweep"
    with bar("cells") as progress:
        effects = sweep(
            tree,
            parse_grid(grid or (), tree),
            where,
            seeds=None if seeds is None else parse_seeds(seeds),
            executor=EXECUTORS[executor](),
            engine=engine,
            keep=keep,
            progress=progress,
        )
    for line in notes:
        say(line)
    typer.echo(show(effects, format_))
    if report:
        try:
            from marketeval.apps.report.heatmap import write_heatmap

            say(f"heat map: {write_heatmap(where)}")
        except ImportError:
            say("no heat map: it needs pip install 'marketeval[report]'")
        except UsageError as error:
            say(f"no heat map: {error}")
    say(f"sweep: {where}")
