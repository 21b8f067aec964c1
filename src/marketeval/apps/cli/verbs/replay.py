"""`marketeval replay`: play a run again and see whether the log is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    engine: Annotated[str, typer.Option(help="auto, general or compiled; the log is the same.")] = (
        "auto"
    ),
) -> None:
    """Play every episode of a run again and compare the digests of the logs."""
    from marketeval.apps.cli.inputs import open_run
    from marketeval.apps.cli.progress import bar
    from marketeval.core.errors import UnknownNameError
    from marketeval.experiments.again import replay_run
    from marketeval.experiments.engines import ENGINES

    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)

    with bar("episodes") as progress:
        for name, count, digest in replay_run(open_run(run), engine=engine, progress=progress):
            typer.echo(f"{name}: {count} episodes, the same log (digest {digest})")
