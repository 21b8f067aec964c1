"""Which model calls belong to which decision of a two-sided run: the log joined to its cassette.

The log says, of every decision by a model, what its call goes by (`structured.call`); the cassette
of the run holds the calls. Controls share the cassette of the run that they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from marketeval.experiments.run_directory import CALLS
from marketeval.llm.recorded_calls import RecordedCall, read_calls

if TYPE_CHECKING:
    from marketeval.experiments.run_directory import RunDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A decision of a model, and the calls it took: the first, and those that asked again.

    `toward` is the customer whom a business answers, empty for customers; `number` the customer's
    own count of decisions, or the business's attempt.
    """

    round: int
    agent: str
    toward: str
    number: int
    calls: Sequence[RecordedCall]


def exchanges(run: RunDirectory, seed: int) -> Sequence[Exchange]:
    """Every decision of a model in one episode, with its calls, in the order of the log.

    None where the run has no cassette.
    """
    calls = _by_name(_cassette(run.path), seed)
    if not calls:
        return []
    asked = _asked(run, seed)
    found = []
    for round_, agent, toward, number in _decisions(run, seed):
        names = asked.get((round_, agent))
        taken = calls.get(names.pop(0)) if names else None
        if taken:
            found.append(
                Exchange(round=round_, agent=agent, toward=toward, number=number, calls=taken)
            )
    return found


def _cassette(run: Path) -> Path:
    """The run's own, or for a control that of the run it belongs to."""
    own = run / CALLS
    return own if own.is_file() else run.resolve().parent.parent / CALLS


def _by_name(cassette: Path, seed: int) -> Mapping[str, Sequence[RecordedCall]]:
    found: dict[str, list[RecordedCall]] = {}
    for call in read_calls(cassette):
        if call.sample.startswith(f"{seed}/"):
            for name in call.names:
                found.setdefault(name, []).append(call)
    return found


def _decisions(run: RunDirectory, seed: int) -> Sequence[tuple[Any, ...]]:  # any: column values
    columns = ("round", "agent", "toward", "number")
    return run.scan("decision").filter(pl.col("seed") == seed).select(columns).collect().rows()


def _asked(run: RunDirectory, seed: int) -> dict[tuple[int, str], list[str]]:
    """The names of the calls of each round and seat, in order.

    What is noted with an action stands in the log before its round is written, so the round is
    that of the next decision.
    """
    noted = run.scan("structured").filter(pl.col("seed") == seed).sort("turn", maintain_order=True)
    rounds = (
        run.scan("decision")
        .filter(pl.col("seed") == seed)
        .select("turn", "round")
        .unique(maintain_order=True)
        .sort("turn", maintain_order=True)
    )
    joined = noted.join_asof(rounds, on="turn", strategy="forward")
    found: dict[tuple[int, str], list[str]] = {}
    for round_, seat, name in joined.select("round", "seat", "call").collect().iter_rows():
        found.setdefault((round_, seat), []).append(name)
    return found
