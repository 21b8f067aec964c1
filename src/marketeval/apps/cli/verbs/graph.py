"""`marketeval graph`: who may select whom, as text and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    scenario: Annotated[str, typer.Argument(help="A coupled scenario, or a run of one.")],
    svg: Annotated[Path | None, typer.Option(help="Write the picture to this file.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE over the scenario's own.")
    ] = None,
) -> None:
    """Draw the governance graph: of a scenario as it is, of a run with shares and preferences."""
    from marketeval.apps.cli.inputs import open_run, scenario_tree
    from marketeval.apps.cli.progress import say
    from marketeval.apps.report.graph import as_svg, as_text, of_log, of_scenario
    from marketeval.core.errors import UsageError
    from marketeval.experiments.scenario import check
    from marketeval.experiments.targets import check_target

    if svg is not None:
        check_target(svg, "--svg", inputs=[Path(scenario)] if Path(scenario).is_file() else [])
    if Path(scenario).is_dir():
        run = open_run(Path(scenario))
        family, drawn = run.manifest.family, None
        if family == "coupled" and set_:
            raise UsageError("--set changes a scenario, and a run is over; name the scenario")
        if family == "coupled":
            drawn = of_log(run)
    else:
        tree, _ = scenario_tree(scenario, settings=set_ or ())
        checked = check(tree)
        family = checked.family
        drawn = of_scenario(checked.market) if family == "coupled" else None
    if drawn is None or not drawn.nodes:
        raise UsageError(
            f"only coupled markets have a governance graph; this is of family '{family}'"
        )
    typer.echo(as_text(drawn))
    if svg is not None:
        svg.write_text(as_svg(drawn), "utf-8")
        say(f"picture: {svg}")
