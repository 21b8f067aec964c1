"""Small coupled markets, ready to be played, and the real data where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from marketeval.core.drive import lockstep
from marketeval.core.log import EventLog
from marketeval.core.market import Agent
from marketeval.experiments.assembly import Experiment, assemble
from marketeval.experiments.scenario import check
from marketeval.metrics.base import evaluate, parse_metric

DATA = Path(__file__).parents[3] / "shared" / "data"


def data(name: str) -> Path:
    """A folder of real data; the test is skipped where it is absent."""
    if not (DATA / name).is_dir():
        pytest.skip(f"the data of {name} are not there")
    return DATA / name


def experiment(market: Mapping[str, Any], seats: Mapping[str, Any] | None = None) -> Experiment:
    """A checked scenario."""
    return assemble(
        check({"name": "test", "family": "coupled", "market": market, "seats": dict(seats or {})})
    )


def play(
    market: Mapping[str, Any],
    seats: Mapping[str, Any] | None = None,
    *,
    seeds: Sequence[int] = (1,),
    agents: Mapping[str, Agent] | None = None,
) -> EventLog:
    """The log of some episodes; `agents` sit in seats themselves."""
    made = experiment(market, seats)
    log = EventLog(made.market.events)
    for seed in seeds:
        lockstep(made.market, {**made.seats, **(agents or {})}, seed=seed, log=log)
    return log


def value(log: EventLog, text: str, subject: str | None = None) -> float:
    """The mean over seeds of one metric."""
    import polars as pl

    table = evaluate(log, [parse_metric(text)]).filter(pl.col("subject").eq_missing(subject))
    assert table.height
    return float(table["value"].mean())


def values(log: EventLog, text: str) -> dict[str | None, float | None]:
    """The values of one metric by subject, of the only seed."""
    table = evaluate(log, [parse_metric(text)])
    return dict(table.select("subject", "value").iter_rows())


def rows(log: EventLog, kind: str, *columns: str) -> list[tuple[Any, ...]]:
    """Columns of an event table, row by row."""
    return log.scan(kind).select(columns).collect().rows()
