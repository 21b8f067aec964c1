"""Logs and configurations of the published package `marketplace-eval` 0.1.0.

Its users keep their `simulation_log.csv`: `read_log` turns one into an event log that every
metric reads, `write_log` turns an episode of ours into one, `load_config` reads their scenarios.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from marketeval.adapters.marketplace_eval_config import (
    ReferenceConfig,
    ReferenceGenerator,
    ReferenceProfile,
    load_config,
)
from marketeval.adapters.marketplace_eval_reader import read_log
from marketeval.adapters.marketplace_eval_replay import COLUMNS, LETTERS, replay
from marketeval.core.errors import DataError
from marketeval.core.log import LogReader

__all__ = [
    "ReferenceConfig",
    "ReferenceGenerator",
    "ReferenceProfile",
    "load_config",
    "read_log",
    "replay",
    "write_log",
]


def write_log(
    log: LogReader,
    path: str | Path,
    *,
    seed: int | None = None,
    profiles: Sequence[ReferenceProfile] = (),
    drift: float = 0.1,
    floor: float = 0.01,
) -> None:
    """Write one episode as the reference's `simulation_log.csv`.

    The score is the signal, the grade its letter; texts, routers and retrievers stay empty. The
    preferences are those the reference's rule gives for these interactions: uniform at the start
    unless `profiles` name users and their weights, entrants at 1/(n+1), additive drift.
    """
    seed = _one_seed(log, seed)
    agents = log.scan("generator").sort("position").collect()
    seats = dict(zip(agents["agent"], agents["seat"], strict=True))
    items = dict(log.scan("question").select("question", "item").collect().iter_rows())
    rows = (
        log.scan("interaction")
        .filter(pl.col("seed") == seed)
        .sort("step", "slot")
        .select("step", "slot", "user", "question", "agent", "signal", "grade")
        .collect()
    )
    entries, initial = _presence(log, agents, seed)
    if profiles:
        start = [_normalised(profile, initial) for profile in profiles]
    else:
        start = [{name: 1.0 / len(initial) for name in initial}]
    letters = {grade: letter for letter, grade in LETTERS.items()}
    after = replay(
        (
            (step, user, seats[agent], signal)
            for step, _, user, _, agent, signal, _ in rows.iter_rows()
        ),
        start,
        entries,
        drift=drift,
        floor=floor,
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target)
        writer.writerow(COLUMNS)
        for row, beliefs in zip(rows.iter_rows(), after, strict=True):
            step, slot, user, question, agent, signal, grade = row
            name = profiles[user].id if user < len(profiles) else f"user_{user + 1}"
            head = (step, slot, name, items[question], "", "", seats[agent], "", signal)
            writer.writerow((*head, letters.get(grade, ""), json.dumps(beliefs), "", "", "", ""))


def _one_seed(log: LogReader, seed: int | None) -> int:
    known = log.seeds()
    if seed is None and len(known) == 1:
        return known[0]
    if seed is None or seed not in known:
        listed = ", ".join(map(str, known[:20])) + (", ..." if len(known) > 20 else "")
        got = "no seed" if seed is None else f"seed {seed}"
        raise DataError(f"expected one of the log's seeds ({listed or 'none'}), got {got}")
    return seed


def _presence(
    log: LogReader, agents: pl.DataFrame, seed: int
) -> tuple[list[tuple[int, str]], list[str]]:
    """Entries as (step, seat), in step and configuration order; and who is there at the start."""
    seats = dict(zip(agents["agent"], agents["seat"], strict=True))
    places = dict(zip(agents["agent"], agents["position"], strict=True))
    steps = dict(zip(agents["agent"], agents["entry_step"], strict=True))
    logged = (
        log.scan("intervention")
        .filter((pl.col("seed") == seed) & (pl.col("change") == "entry"))
        .select("step", "agent")
        .collect()
    )
    found = {(step, agent) for step, agent in logged.iter_rows()}
    found |= {(step, agent) for agent, step in steps.items() if step > 0}
    ordered = sorted(found, key=lambda entry: (entry[0], places[entry[1]]))
    initial = [seats[agent] for agent, step in steps.items() if step == 0]
    return [(step, seats[agent]) for step, agent in ordered], initial


def _normalised(profile: ReferenceProfile, initial: Sequence[str]) -> dict[str, float]:
    """A profile's weights among those there at the start, divided by their sum."""
    kept = {name: weight for name, weight in profile.preferences if name in initial}
    total = 0.0
    for weight in kept.values():
        total += weight
    if total <= 0:
        raise DataError(f"profile '{profile.id}': expected weights with a positive sum")
    return {name: weight / total for name, weight in kept.items()}
