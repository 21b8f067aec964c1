"""`marketeval compare`: what differs between two runs, paired by seed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    against: Annotated[Path, typer.Argument(help="The run directory it is held against.")],
    metric: Annotated[
        list[str] | None, typer.Option(help="A metric; may be repeated. [those both runs have]")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="table, csv or json.")] = "table",
) -> None:
    """The difference of two runs in each metric, paired by seed, with its 95 % interval."""
    from marketeval.apps.cli.inputs import open_run
    from marketeval.apps.cli.tables import FORMATS, show
    from marketeval.core.errors import UnknownNameError
    from marketeval.experiments.compare import compare

    if format_ not in FORMATS:
        raise UnknownNameError("format", format_, FORMATS)
    typer.echo(show(compare(open_run(run), open_run(against), metrics=metric), format_))
