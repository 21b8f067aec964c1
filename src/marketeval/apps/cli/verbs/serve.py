"""`marketeval serve`: a two-sided marketplace over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    database: Annotated[
        str,
        typer.Option(help="memory:, a SQLite file, or postgresql://USER@HOST/NAME?schema=MARKET."),
    ] = "market.sqlite",
    rules: Annotated[
        str, typer.Option(help="strict, compatible, or strict with changes: strict,offers_last=60.")
    ] = "strict",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    layout: Annotated[
        str, typer.Option(help="reference: keep the reference's three SQLite tables as well.")
    ] = "",
    older_clients: Annotated[
        bool, typer.Option("--older-clients", help="Tokens and numbered ids as before 11/2025.")
    ] = False,
    clock: Annotated[str, typer.Option(help="wall, or logical: moved by the operator.")] = "wall",
    access_log: Annotated[
        str | None, typer.Option(help="A file for the access log as JSON lines, or - for stderr.")
    ] = None,
    agent_rate: Annotated[
        float | None, typer.Option(min=0.1, help="Requests of one agent a second [strict: 500].")
    ] = None,
    rate: Annotated[float | None, typer.Option(min=0.1, help="Requests a second in all.")] = None,
    largest_body: Annotated[int, typer.Option(min=1024, help="Bytes of a body.")] = 256 * 1024,
    connections: Annotated[int, typer.Option(min=1, help="Connections at once.")] = 1024,
    header_timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds for the head of a request.")
    ] = 10.0,
    body_timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds between two parts of a body.")
    ] = 20.0,
    longest_wait: Annotated[
        float, typer.Option(min=0.0, help="Seconds that a request may wait for mail.")
    ] = 30.0,
) -> None:
    """Serve a two-sided marketplace over HTTP until it is stopped."""
    import os

    from marketeval.apps.cli.progress import say
    from marketeval.core.errors import UnknownNameError, UsageError
    from marketeval.experiments.targets import check_target

    if access_log and access_log != "-":
        check_target(Path(access_log), "--access-log", inputs=[Path(database)])
    try:
        from marketeval.apps.server.rules import parse_rules
        from marketeval.apps.server.serving import Opened, serve
        from marketeval.apps.server.settings import Limits, Settings
    except ModuleNotFoundError as error:
        raise UsageError(
            f"serving needs the package {error.name}: python -m pip install 'marketeval[server]'"
        ) from None
    if clock not in ("wall", "logical"):
        raise UnknownNameError("clock", clock, ("wall", "logical"))
    chosen = parse_rules(rules, logical=clock == "logical")
    strict = chosen.sender_is_caller
    settings = Settings(
        rules=chosen,
        auth="suffixed" if older_clients else "tokens" if strict else "header",
        clock="logical" if clock == "logical" else "wall",
        host=host,
        port=port,
        operator=os.environ.get("MARKETEVAL_OPERATOR_TOKEN", ""),
        registration=os.environ.get("MARKETEVAL_REGISTRATION_TOKEN", ""),
        access_log="-" if access_log == "-" else Path(access_log) if access_log else None,
        limits=Limits(
            largest_body=largest_body,
            connections=connections,
            headers_within=header_timeout,
            body_within=body_timeout,
            agent_rate=agent_rate or (500.0 if strict else None),
            rate=rate,
            longest_wait=longest_wait,
        ),
    )

    def ready(url: str, opened: Opened) -> None:
        state = opened.service.host.state
        if opened.said:
            say(opened.said)
        say(
            f"a market under {chosen.preset} rules in {opened.where}: "
            f"{len(opened.service.host.documents)} agents, {state.rows} actions"
        )
        typer.echo(url)

    serve(settings, database, layout=layout, ready=ready)
