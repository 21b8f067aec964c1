"""`marketeval prompts`: what a seat's model would be sent, without calling anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from marketeval.agents.preview import Preview


def command(
    scenario: Annotated[str, typer.Argument(help="A shipped name (see list) or a YAML file.")],
    seat: Annotated[str, typer.Option(help="The seat, such as a generator's, or judge.")],
    step: Annotated[int, typer.Option(min=0, help="The first request at this step or later.")] = 0,
    seed: Annotated[int, typer.Option(help="The seed of the episode.")] = 1,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE over the scenario's own.")
    ] = None,
    agent: Annotated[
        list[str] | None, typer.Option("--agent", help="NAME=AGENT, as --seat of run.")
    ] = None,
    outcomes: Annotated[
        list[Path] | None, typer.Option(help="A table of recorded answers; may be repeated.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All calls of the request, not only the first.")
    ] = False,
) -> None:
    """Show the prompt and schema of a seat's decision; no model, endpoint or person is asked.

    Other models' answers are left out or, for a judge, replaced by an example. Of a seat that is no
    model, the request itself is shown.
    """
    from marketeval.actions.wire import request_json
    from marketeval.agents.preview import previews
    from marketeval.apps.cli.inputs import scenario_tree
    from marketeval.apps.cli.progress import say
    from marketeval.experiments.assembly import assemble
    from marketeval.experiments.preview import first_request
    from marketeval.experiments.scenario import check

    tree, notes = scenario_tree(
        scenario,
        settings=set_ or (),
        seats=agent or (),
        seat_option="--agent",
        outcomes=outcomes or (),
    )
    experiment = assemble(check(tree))
    request = first_request(experiment.market, experiment.seats, seat, step=step, seed=seed)
    calls = list(previews(experiment.seats[seat], request))
    for line in notes:
        say(line)
    say(f"seat {seat}, step {request.step}, decision '{request.decision}', calls: {len(calls)}")
    if not calls:
        say("it asks no model; this is the request as a decision endpoint gets it:")
        typer.echo(json.dumps(request_json(request), indent=1, ensure_ascii=False))
    shown = calls if every else calls[:1]
    typer.echo(
        "\n\n".join(_told(number, one) for number, one in enumerate(shown, 1)), nl=bool(shown)
    )
    if len(shown) < len(calls):
        say(f"and {len(calls) - len(shown)} more like it; --all shows them")


def _told(number: int, one: Preview) -> str:
    """A call in words."""
    lines = [f"== call {number}: {one.seat} -> {one.model}"]
    if one.prompt:
        lines.append(f"prompt: {one.prompt}")
    for message in one.messages:
        lines += [f"-- {message.role}", message.text.rstrip("\n")]
    if one.schema is not None:
        lines += ["-- schema", json.dumps(one.schema, indent=1)]
    return "\n".join(lines)
