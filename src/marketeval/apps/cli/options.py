"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Scenario = Annotated[str, typer.Argument(help="A shipped name (see list) or a YAML file.")]
Seeds = Annotated[str | None, typer.Option(help="Seeds, such as 1-50 or 1,4,7-9.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="KEY=VALUE over the scenario's own.")
]
Seats = Annotated[list[str] | None, typer.Option(help="NAME=AGENT, such as qwen3=bernoulli:0.6.")]
Outcomes = Annotated[
    list[Path] | None, typer.Option(help="A table of recorded answers; may be repeated.")
]
Missing = Annotated[str | None, typer.Option(help="What a missing answer is: fail, skip or zero.")]
Engine = Annotated[str, typer.Option(help="auto, general or compiled; the log is the same.")]
