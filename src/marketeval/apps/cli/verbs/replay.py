"""`marketeval replay`: play a run again and see whether the log is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(run: Annotated[Path, typer.Argument(help="A run directory.")]) -> None:
    """Play every episode of a run again and compare the digests of the logs."""
    from marketeval.apps.cli.inputs import open_run
    from marketeval.apps.cli.progress import bar
    from marketeval.experiments.again import replay_run

    with bar("episodes") as progress:
        for name, count, digest in replay_run(open_run(run), progress=progress):
            typer.echo(f"{name}: {count} episodes, the same log (digest {digest})")
