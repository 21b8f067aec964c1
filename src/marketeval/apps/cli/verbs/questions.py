"""`marketeval questions`: have a model make questions from documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SHOWN = 5


def command(
    documents: Annotated[Path, typer.Argument(help="JSONL or CSV with id, text [and topic].")],
    model: Annotated[
        str, typer.Option(help="Such as openai:MODEL, http://HOST/v1#MODEL or local:smollm2.")
    ],
    count: Annotated[int, typer.Option(help="How many questions.")],
    out: Annotated[Path, typer.Option(help="The CSV of questions; the calls are kept beside it.")],
    seed: Annotated[int, typer.Option(help="Draws the documents and kinds of question.")] = 1,
    taxonomy: Annotated[str, typer.Option(help="A shipped name or a YAML file.")] = "datamorgana",
    prompt: Annotated[
        str, typer.Option(help="A shipped name or a .txt file.")
    ] = "make-question-v1",
    temperature: Annotated[float, typer.Option(help="From 0 to 2.")] = 0.7,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of an answer.")] = 512,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Stop after so many calls.")] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0, help="Stop before so many dollars.")
    ] = None,
    retry_missing: Annotated[
        bool, typer.Option("--retry-missing", help="Make calls again that had failed.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file in --out.")] = False,
) -> None:
    """Have a model make questions from documents, along a taxonomy, with answers and passages.

    The same command goes on where it stopped: no call is paid for twice.
    """
    from marketeval.apps.cli.progress import bar, say
    from marketeval.experiments.questions import Order, make_questions

    order = Order(
        model=model,
        count=count,
        seed=seed,
        taxonomy=taxonomy,
        prompt=prompt,
        temperature=temperature,
        max_tokens=max_tokens,
        max_calls=max_calls,
        max_cost=max_cost,
        retry_missing=retry_missing,
    )
    with bar("questions") as progress:
        made = make_questions(documents, out, order, force=force, progress=progress)
    failed = f"; {len(made.failures)} failed:" if made.failures else ""
    say(f"{made.table.height} of {count} questions made{failed}")
    for reason, number in made.reasons[:SHOWN]:
        say(f"  {number} x {reason}")
    if len(made.reasons) > SHOWN:
        say(f"  and {len(made.reasons) - SHOWN} other reasons, see {out}.json")
    cost = f"${made.cost_usd:.4f}" + (f" and {made.unpriced} unpriced" if made.unpriced else "")
    say(f"calls: {made.calls} made ({cost}), {made.served} from {out}.calls.sqlite")
    typer.echo(out)
