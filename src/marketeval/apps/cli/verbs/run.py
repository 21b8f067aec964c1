"""`marketeval run`: play a scenario and its controls over many seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from marketeval.apps.cli.options import Engine, Missing, Outcomes, Scenario, Seats, Seeds, Settings


def command(
    scenario: Scenario,
    seeds: Seeds = None,
    set_: Settings = None,
    seat: Seats = None,
    outcomes: Outcomes = None,
    missing: Missing = None,
    items: Annotated[
        Path | None, typer.Option(help="A CSV with item_id (or qid): the questions, in order.")
    ] = None,
    entries: Annotated[
        Path | None, typer.Option(help="A CSV with model and date (or step): who enters when.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run directory [runs/SCENARIO].")] = None,
    engine: Engine = "auto",
    executor: Annotated[
        str, typer.Option(help="Who does the work: auto, serial, threads, processes or ray.")
    ] = "auto",
    keep: Annotated[
        str, typer.Option(help="log, or metrics: throw the events away once these are computed.")
    ] = "log",
    replay_only: Annotated[
        bool, typer.Option("--replay-only", help="Ask no model: recorded calls only.")
    ] = False,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Stop before more calls.")] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0, help="Stop before more dollars are spent.")
    ] = None,
    retry_missing: Annotated[
        bool, typer.Option("--retry-missing", help="Make calls again that failed for good.")
    ] = False,
    no_record: Annotated[
        bool, typer.Option("--no-record", help="Neither read nor keep calls: asked anew, and lost.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="A line on each call that is made, on stderr.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the run in --out.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    over: Annotated[
        str, typer.Option(help="http: against a server of its own, each seat in its own process.")
    ] = "",
    report: Annotated[bool, typer.Option(help="Write report.html and pictures.")] = True,
) -> None:
    """Play a scenario and its controls over many seeds, and report with intervals."""
    from marketeval.apps.cli.inputs import scenario_tree
    from marketeval.apps.cli.progress import bar, say, used
    from marketeval.apps.cli.tables import metric_tables
    from marketeval.apps.report.terminal import terminal_tables
    from marketeval.core.errors import UnknownNameError, UsageError
    from marketeval.experiments.asking import Asking
    from marketeval.experiments.engines import ENGINES
    from marketeval.experiments.executors import EXECUTORS
    from marketeval.experiments.pieces import KEEPS
    from marketeval.experiments.runner import run
    from marketeval.experiments.scenario import check, parse_seeds

    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)
    if keep not in KEEPS:
        raise UnknownNameError("keep", keep, KEEPS)
    if executor not in ("auto", *EXECUTORS):
        raise UnknownNameError("executor", executor, ("auto", *EXECUTORS))
    if force and resume:
        raise UsageError("expected --force (start anew) or --resume (continue), got both")
    if no_record and (replay_only or resume or retry_missing):
        raise UsageError(
            "expected --no-record alone: --resume, --replay-only and --retry-missing need what was "
            "recorded"
        )
    tree, notes = scenario_tree(
        scenario,
        settings=set_ or (),
        seats=seat or (),
        outcomes=outcomes or (),
        missing=missing,
        items=items,
        entries=entries,
    )
    if over not in ("", "http"):
        raise UnknownNameError("way to play", over, ("http",))
    stage = None
    if over:
        from marketeval.apps.server.lockstep import OverHttp

        stage = OverHttp()
    asking = Asking(
        stage=stage,
        mode="replay-only" if replay_only else "off" if no_record else "record",
        max_calls=max_calls,
        max_cost=max_cost,
        retry_missing=retry_missing,
        told=say if verbose else None,
        note=say,
    )
    try:
        where = out or Path("runs") / check(tree).name
        with bar("episodes", asking.tallies) as progress:
            done = run(
                tree,
                where,
                executor=None if executor == "auto" else EXECUTORS[executor](),
                engine=engine,
                keep=keep,
                asking=asking,
                seeds=None if seeds is None else parse_seeds(seeds),
                force=force,
                resume=resume,
                progress=progress,
            )
    except UsageError as error:
        raise UsageError(" | ".join((str(error), *notes))) from error
    for line in notes:
        say(line)
    for line in used(asking.tallies):
        say(line)
    if keep == "metrics":
        typer.echo(metric_tables(done))
        if report:
            say("no report: it is drawn from the events, which --keep metrics throws away")
    else:
        typer.echo(terminal_tables(done))
    if report and keep == "log":
        from marketeval.apps.report.page import write_report

        try:
            say(f"report: {write_report([done])}")
        except UsageError as error:
            say(f"no report: {error}")
    say(f"run: {where}")
