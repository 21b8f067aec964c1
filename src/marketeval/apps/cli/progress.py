"""Progress and prose on stderr: a bar with the time left where somebody is looking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from marketeval.llm.calls import Tally


def say(line: str) -> None:
    """One line of prose."""
    sys.stderr.write(line + "\n")


@contextmanager
def bar(what: str, detail: Callable[[], str] = lambda: "") -> Iterator[Callable[[int, int], None]]:
    """A function of (done, total) that moves a bar, with what `detail` says now beside it; silent
    where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Detail(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(detail())

    shown_columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    columns = (*shown_columns, Detail())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


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


def brief(tallies: Mapping[str, Tally]) -> str:
    """The same for all seats together, short enough to stand beside a bar."""
    if not tallies:
        return ""
    calls, failures = (sum(getattr(t, n) for t in tallies.values()) for n in ("calls", "failures"))
    cost = sum(one.cost_usd for one in tallies.values())
    return f"{calls} calls, {failures} failed, ${cost:.2f}"
