"""Progress and prose on stderr: a bar with the time left where somebody is looking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from marketeval.llm.calls import Tally


def say(line: str) -> None:
    """One line of prose."""
    sys.stderr.write(line + "\n")


@contextmanager
def bar(
    what: str, tallies: Mapping[str, Tally] | None = None
) -> Iterator[Callable[[float, int], None]]:
    """A function of (done, total) that moves a bar with the time left, above a table of what each
    seat has used so far; silent where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    shown = Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )
    task = shown.add_task(what, total=None)

    class View:
        def __rich__(self) -> Group:
            return Group(shown, *([seats_table(tallies)] if tallies else ()))

    with Live(View(), console=console, transient=True, refresh_per_second=4):
        yield lambda done, total: shown.update(task, completed=done, total=total)


def seats_table(tallies: Mapping[str, Tally]) -> Table:
    """What each seat has used so far."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for number, name in enumerate(
        ("seat", "calls", "served", "failed", "tokens in", "out", "dollars", "s a call")
    ):
        table.add_column(name, justify="right" if number else "left")
    for seat, one in sorted(tallies.items()):  # copied first: the run goes on
        mean = f"{one.latency_s / one.calls:.2f}" if one.calls else "-"
        table.add_row(
            seat,
            f"{one.calls:,}",
            f"{one.served:,}",
            f"{one.failures:,}",
            f"{one.input_tokens:,}",
            f"{one.output_tokens:,}",
            _dollars(one),
            mean,
        )
    return table


def _dollars(one: Tally) -> str:
    if not one.unpriced:
        return f"{one.cost_usd:.4f}"
    return f"{one.cost_usd:.4f} + {one.unpriced:,} unpriced" if one.cost_usd else "unpriced"


def used(tallies: Mapping[str, Tally]) -> list[str]:
    """What the seats of a run have used, a line each: calls, failures, tokens, cost, latency."""
    lines = []
    for seat, one in sorted(tallies.items()):
        price = f"${one.cost_usd:.4f}" + (f" and {one.unpriced} unpriced" if one.unpriced else "")
        mean = one.latency_s / one.calls if one.calls else 0.0
        lines.append(
            f"{seat}: {one.calls} calls ({one.served} served from the cassette, {one.failures} "
            f"failed{f', {one.refused} refused in that form' if one.refused else ''}), "
            f"{one.input_tokens}+{one.output_tokens} tokens, {price}, {mean:.2f} s a call"
        )
    return lines
