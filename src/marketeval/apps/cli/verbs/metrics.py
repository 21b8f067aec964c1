"""`marketeval metrics`: metrics of a run, or of a log of one of the reference packages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from marketeval.core.log import LogReader


def command(
    log: Annotated[
        Path, typer.Argument(help="A run directory, a simulation_log.csv, or a marketplace.db.")
    ],
    metric: Annotated[
        list[str] | None, typer.Argument(help="Such as 'HHI(window=10)'; see list metrics.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="table, csv or json.")] = "table",
    by_seed: Annotated[
        bool, typer.Option("--by-seed", help="A row per seed, not the mean over seeds.")
    ] = False,
    analysis: Annotated[
        bool,
        typer.Option("--analysis", help="The Magentic Marketplace's own analysis, as JSON."),
    ] = False,
    audit: Annotated[
        bool,
        typer.Option(
            "--audit", help="Its audit: which proposals were in a last prompt, who lost what."
        ),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="The episode of --analysis or --audit [first].")
    ] = None,
) -> None:
    """Compute metrics from the event log: means over seeds with 95 % bootstrap intervals."""
    from marketeval.apps.cli.inputs import open_log
    from marketeval.apps.cli.tables import FORMATS, show
    from marketeval.core.errors import UnknownNameError
    from marketeval.experiments.measured import measured
    from marketeval.experiments.run_directory import RunDirectory
    from marketeval.metrics.base import evaluate, parse_metric
    from marketeval.metrics.resampling import summarise

    if format_ not in FORMATS:
        raise UnknownNameError("format", format_, FORMATS)
    opened = open_log(log)
    if analysis or audit:
        typer.echo(_analysis(log, opened, seed, audit=audit))
        return
    asked = metric or _default(opened)
    if isinstance(opened, RunDirectory):
        tidy = measured(opened, asked)
    else:
        tidy = evaluate(opened, [parse_metric(text) for text in asked])
    typer.echo(show(tidy if by_seed else summarise(tidy), format_))


def _default(log: LogReader) -> Sequence[str]:
    """The metrics where none are named: those of the run's scenario, else of the log's family."""
    from marketeval.experiments.families import FAMILIES
    from marketeval.experiments.run_directory import RunDirectory

    if isinstance(log, RunDirectory) and log.scenario.metrics:
        return log.scenario.metrics
    if _is_two_sided(log):
        return tuple(FAMILIES["two_sided"].DEFAULT_METRICS)
    return ("MarketShare", "HHI", "Retention(m=10)")


def _is_two_sided(log: LogReader) -> bool:
    from marketeval.core.errors import MarketevalError

    try:
        log.scan("proposal")
    except MarketevalError:
        return False
    return True


def _analysis(path: Path, log: LogReader, seed: int | None, *, audit: bool) -> str:
    import json

    from marketeval.adapters.magentic import is_database, llm_statistics
    from marketeval.adapters.magentic_calls import call_documents, statistics
    from marketeval.core.errors import UsageError
    from marketeval.experiments.exchanges import exchanges
    from marketeval.experiments.run_directory import RunDirectory
    from marketeval.metrics import analytics as reference

    if not _is_two_sided(log):
        flag = "--audit" if audit else "--analysis"
        raise UsageError(f"{flag} is for two-sided markets; {path} is of another family")
    seeds = log.seeds()
    if not seeds or (seed is not None and seed not in seeds):
        raise UsageError(f"{path} has no seed {seed}; it has {seeds}")
    chosen = seeds[0] if seed is None else seed
    if audit:
        return json.dumps(reference.audit(log, chosen), indent=1, ensure_ascii=False)
    found = reference.analytics(log, chosen)
    if isinstance(log, RunDirectory):
        found |= statistics(one for _, one in call_documents(exchanges(log, chosen)))
    elif path.is_file() and is_database(path):
        found |= llm_statistics(path)
    return json.dumps(found, indent=1, ensure_ascii=False)
