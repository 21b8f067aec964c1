"""`marketeval conversation`: one customer's story in a two-sided market."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    log: Annotated[Path, typer.Argument(help="A run directory or a database of the reference.")],
    customer: Annotated[str, typer.Option(help="The customer's id.")],
    business: Annotated[
        str | None, typer.Option(help="Only what passed between it and this business.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The episode [the first].")] = None,
    prompts: Annotated[
        bool, typer.Option("--prompts/--no-prompts", help="Show what models were told and replied.")
    ] = True,
) -> None:
    """Show what one customer decided, saw, heard and paid, round by round."""
    from marketeval.adapters.magentic import is_database
    from marketeval.apps.cli.inputs import open_log
    from marketeval.apps.report.conversation import story
    from marketeval.core.errors import UsageError
    from marketeval.experiments.exchanges import exchanges
    from marketeval.experiments.run_directory import RunDirectory

    opened = open_log(log)
    if isinstance(opened, RunDirectory):
        family = opened.manifest.family
    else:
        family = "two_sided" if is_database(log) else "information"
    if family != "two_sided":
        raise UsageError(f"conversations are of two-sided runs; {log} is of family {family}")
    seeds = opened.seeds()
    if not seeds or (seed is not None and seed not in seeds):
        raise UsageError(f"{log} has no seed {seed}; it has {seeds}")
    chosen = seeds[0] if seed is None else seed
    said = exchanges(opened, chosen) if prompts and isinstance(opened, RunDirectory) else ()
    typer.echo(story(opened, seed=chosen, customer=customer, business=business, said=said))
