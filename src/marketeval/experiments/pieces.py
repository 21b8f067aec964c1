"""Pieces of work: some seeds of one arm of a run, played into that arm's folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import polars as pl

from marketeval.core.errors import RunError
from marketeval.core.log import EventLog
from marketeval.core.market import Agent, Market
from marketeval.experiments.assembly import assemble
from marketeval.experiments.engines import play_all, playable
from marketeval.experiments.experiment import Experiment
from marketeval.experiments.families import FAMILIES
from marketeval.experiments.run_directory import PartSink, Unit, write_table
from marketeval.experiments.scenario import check, parse_yaml
from marketeval.metrics.base import evaluate, parse_metric

Keep = Literal["log", "metrics"]
KEEPS: tuple[Keep, ...] = ("log", "metrics")
SEEDS_AT_ONCE = 1000  # whose events lie in memory where only the metrics are kept


@dataclass(frozen=True, slots=True)
class Piece:
    """Some seeds of one arm; `keep` says whether their events are written or only metrics."""

    path: Path
    number: int
    seeds: Sequence[int]
    data: tuple[tuple[str, str], ...]  # the file hashes that were checked
    engine: Literal["general", "compiled"]
    keep: Keep = "log"

    def __str__(self) -> str:
        return f"unit {self.number} of {self.path} (seeds {seeds_text(self.seeds)})"


def play_piece(piece: Piece) -> Unit:
    """Play some seeds of an arm and write what is kept; a pure function of the run's scenario."""
    text = (piece.path / "scenario.yaml").read_text("utf-8")
    experiment = _experiment(text, piece.data)
    market, seats = playable(experiment, piece.engine)
    if piece.keep == "metrics":
        return _metrics_alone(piece, experiment, market, dict(seats))
    sink = PartSink(piece.path, piece.number)
    log = EventLog(experiment.market.events, sink=sink)
    play_all(market, seats, piece.seeds, log)
    log.close()
    return Unit(
        number=piece.number, digests=log.digests, shared=log.shared_digest, events=sink.rows
    )


def played(piece: Piece) -> tuple[Path, Unit]:
    """Play a piece; with the folder that it belongs to."""
    return piece.path, play_piece(piece)


def metrics_of(path: Path, unit: int) -> Path:
    """Where a unit's metrics wait for those of the others."""
    return path / "metrics" / f"{unit:06d}.parquet"


def _metrics_alone(
    piece: Piece, experiment: Experiment, market: Market, seats: dict[str, Agent]
) -> Unit:
    """Play some seeds at a time, compute their metrics, and forget what happened."""
    metrics = [parse_metric(text) for text in experiment.scenario.metrics]
    sink, tables = PartSink(piece.path, piece.number), []
    for start in range(0, len(piece.seeds), SEEDS_AT_ONCE):
        log = EventLog(experiment.market.events, hashed=False)
        play_all(market, seats, piece.seeds[start : start + SEEDS_AT_ONCE], log)
        tables.append(evaluate(log, metrics))
        if start == 0 and piece.number == 0:
            for kind in FAMILIES[experiment.scenario.family].SHARED:
                if log.has_shared(kind.name):
                    facts = log.scan(kind.name).filter(pl.col("seed").is_null())
                    sink.write(kind.name, facts.collect())
    target = metrics_of(piece.path, piece.number)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_table(target, pl.concat(tables))
    digests = dict.fromkeys(piece.seeds, "")
    return Unit(number=piece.number, digests=digests, shared=log.shared_digest, events=0)


@lru_cache(maxsize=8)
def _experiment(text: str, data: tuple[tuple[str, str], ...]) -> Experiment:
    experiment = assemble(check(parse_yaml(text, "scenario.yaml")))
    if tuple(experiment.hashes.items()) != data:
        raise RunError("the tables of answers changed while the run was under way")
    return experiment


def seeds_text(seeds: Sequence[int]) -> str:
    """Seeds as runs: `1-10,12`."""
    runs: list[list[int]] = []
    for seed in seeds:
        if runs and seed == runs[-1][1] + 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    return ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in runs)
