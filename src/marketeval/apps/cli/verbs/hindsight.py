"""`marketeval hindsight`: profit as a share of what each retailer could have earned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    run: Annotated[Path, typer.Argument(help="A run directory of the supply-chain family.")],
    seeds: Annotated[str | None, typer.Option(help="Seeds, such as 1-3 [all].")] = None,
) -> None:
    """Play every seat's best response against what the others did, and compare."""
    from marketeval.apps.cli.inputs import open_run
    from marketeval.apps.cli.progress import bar
    from marketeval.apps.cli.tables import aligned
    from marketeval.core.errors import UsageError
    from marketeval.experiments.hindsight import best_responses
    from marketeval.experiments.scenario import parse_seeds
    from marketeval.metrics.resampling import summarise

    opened = open_run(run)
    wanted = None if seeds is None else parse_seeds(seeds)
    missing = sorted(set(wanted or ()) - set(opened.seeds()))
    if missing:
        raise UsageError(f"{run} has no seed {missing[0]}; it has {opened.manifest.seeds}")
    with bar("seats") as progress:
        found = summarise(best_responses(opened, seeds=wanted, progress=progress))
    rows = [
        [subject, metric, *("n/a" if one is None else f"{one:,.4g}" for one in numbers)]
        for subject, metric, *numbers in found.select(
            "subject", "metric", "mean", "low", "high"
        ).iter_rows()
    ]
    typer.echo(aligned(["retailer", "metric", "mean", "low", "high"], rows))
