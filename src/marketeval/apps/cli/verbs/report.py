"""`marketeval report`: one HTML page and the pictures of one run or several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    run: Annotated[list[Path], typer.Argument(help="Run directories.")],
    out: Annotated[Path | None, typer.Option(help="The page [report.html of the first run].")] = (
        None
    ),
) -> None:
    """Write one page that opens without a network, and its pictures as PNG files."""
    from marketeval.apps.cli.inputs import open_run
    from marketeval.apps.report.page import write_report

    typer.echo(write_report([open_run(one) for one in run], out))
