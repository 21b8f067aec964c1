"""`marketeval list`: what there is to choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

import typer


def command(
    kind: Annotated[str | None, typer.Argument(help="Such as scenarios or metrics.")] = None,
) -> None:
    """List the shipped scenarios, metrics, agents, choice rules, kinds of learning or events."""
    from marketeval.apps.cli.tables import aligned
    from marketeval.core.errors import UnknownNameError

    if kind is None:
        typer.echo("\n".join(_KINDS))
        return
    if kind not in _KINDS:
        raise UnknownNameError("kind of thing to list", kind, _KINDS)
    typer.echo(aligned(["name", "what it is"], [list(row) for row in _KINDS[kind]()]))


Rows = Iterable[tuple[str, str]]


def _scenarios() -> Rows:
    from marketeval.experiments.scenario import read_tree, shipped

    return [(name, read_tree(name).get("title", "")) for name in shipped()]


def _metrics() -> Rows:
    from marketeval.metrics.base import METRICS, describe

    return [(name, describe(name)) for name in METRICS]


def _agents() -> Rows:
    from marketeval.agents.registry import AGENTS

    return [(name, _first_line(AGENTS[name])) for name in AGENTS]


def _choice_rules() -> Rows:
    from marketeval.choice.rules import RULES

    return [
        (name, f"{_first_line(RULES[name])} Learning: {', '.join(RULES[name].LEARNING)}.")
        for name in RULES
    ]


def _learning() -> Rows:
    from marketeval.choice.preference import KINDS, learn

    lines = [line.strip() for line in (learn.__doc__ or "").splitlines()]
    formula = {line.split()[0]: " ".join(line.split()[1:]) for line in lines if line}
    return [(name, formula.get(name, "")) for name in KINDS]


def _events() -> Rows:
    from marketeval.experiments.families import FAMILIES

    return [
        (f"{kind.name}.{column.name}", f"{column.type}: {column.doc}")
        for family in FAMILIES
        for kind in FAMILIES[family].KINDS
        for column in kind.columns
    ]


def _exports() -> Rows:
    from marketeval.apps.cli.verbs.export import FORMATS

    return [(name, doc) for name, (doc, _) in FORMATS.items()]


def _first_line(thing: object) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]


_KINDS: dict[str, Callable[[], Rows]] = {
    "scenarios": _scenarios,
    "metrics": _metrics,
    "agents": _agents,
    "choice-rules": _choice_rules,
    "learning": _learning,
    "events": _events,
    "exports": _exports,
}
