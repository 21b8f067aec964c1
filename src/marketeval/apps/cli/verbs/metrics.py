"""`marketeval metrics`: metrics of a run, or of a log of the reference package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    log: Annotated[Path, typer.Argument(help="A run directory or a simulation_log.csv.")],
    metric: Annotated[
        list[str] | None, typer.Argument(help="Such as 'HHI(window=10)'; see list metrics.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="table, csv or json.")] = "table",
    by_seed: Annotated[
        bool, typer.Option("--by-seed", help="A row per seed, not the mean over seeds.")
    ] = False,
) -> None:
    """Compute metrics from the event log: means over seeds with 95 % bootstrap intervals."""
    from marketeval.apps.cli.inputs import open_log
    from marketeval.apps.cli.tables import FORMATS, show
    from marketeval.core.errors import UnknownNameError
    from marketeval.metrics.base import evaluate, parse_metric
    from marketeval.metrics.resampling import summarise

    if format_ not in FORMATS:
        raise UnknownNameError("format", format_, FORMATS)
    asked = [parse_metric(text) for text in metric or ("MarketShare", "HHI", "Retention(m=10)")]
    tidy = evaluate(open_log(log), asked)
    typer.echo(show(tidy if by_seed else summarise(tidy), format_))
