"""`marketeval rate`: one rating per agent from the profits of many games."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    run: Annotated[list[Path], typer.Argument(help="Run directories of the supply-chain family.")],
    by: Annotated[str, typer.Option(help="Who is a player: agent (its text) or label.")] = "agent",
    model: Annotated[
        str, typer.Option(help="bradley-terry (1500 = average), or plackett-luce (25 = average).")
    ] = "bradley-terry",
) -> None:
    """Rate agents over games: each seed of each run is one, in which more profit wins."""
    from marketeval.apps.cli.inputs import open_run
    from marketeval.apps.cli.tables import aligned
    from marketeval.core.errors import UnknownNameError, UsageError
    from marketeval.metrics.base import evaluate, parse_metric
    from marketeval.metrics.rating import rate
    from marketeval.metrics.skill import skills

    models = {"bradley-terry": (rate, 0), "plackett-luce": (skills, 1)}
    if model not in models:
        raise UnknownNameError("model of ratings", model, models)
    if by not in ("agent", "label"):
        raise UnknownNameError("way to name a player", by, ("agent", "label"))
    games: dict[tuple[int, int], dict[str, list[float]]] = {}
    known: set[Path] = set()
    for place, path in enumerate(run):
        opened = open_run(path)
        if opened.manifest.family != "supply_chain":
            raise UsageError(
                f"ratings are of supply-chain runs; {path} is of family {opened.manifest.family}"
            )
        if path.resolve() in known:
            raise UsageError(f"{path} is given twice; its games would count twice")
        known.add(path.resolve())
        seats = opened.scenario.seats
        profits = evaluate(opened, [parse_metric("Profit")]).select("seed", "subject", "value")
        for seed, seat, value in profits.iter_rows():
            player = seats[seat].agent if by == "agent" else seats[seat].label or seat
            games.setdefault((place, seed), {}).setdefault(player, []).append(value)
    means = [
        {player: sum(values) / len(values) for player, values in game.items()}
        for game in games.values()
    ]
    rated, digits = models[model]

    def shown(value: float | None) -> str:
        return "n/a" if value is None else f"{value:,.{digits}f}"

    rows = [
        [one.player, shown(one.rating), shown(one.low), shown(one.high), f"{one.games:,}"]
        for one in rated(means)
    ]
    typer.echo(aligned(["player", "rating", "low", "high", "games"], rows))
