"""Who enters when, the phases that entries cut a run into, and what is measured over them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import polars as pl

from marketeval.core.errors import DataError, ScenarioError
from marketeval.experiments.pool import read_csv
from marketeval.experiments.scenario import Entries, Phase, Scenario, Seat

PHASE_METRICS = (
    "MarketShare", "ShareVersusFair", "FairShare", "HHI(points=true)", "Dominance", "Rank",
    "KendallTau", "SpearmanRho", "LongitudinalUtility",
)  # fmt: skip
WHOLE_METRICS = (
    "MarketShare", "HHI(points=true)", "Rank", "StaticRank", "KendallTau", "SpearmanRho", "EED",
    "Dominance", "ExpectedExposure", "Gini", "Entropy", "CR(k=4)", "Retention(m=10)",
    "SwitchRate", "LongitudinalUtility", "FailureRate",
    "MarketShare(window=10, mode=tumbling)", "HHI(points=true, window=10, mode=tumbling)",
)  # fmt: skip


def with_entries(
    seats: Mapping[str, Seat], entries: Entries | None, horizon: int
) -> dict[str, Seat]:
    """The seats with the entry steps that a table of dates or steps gives them."""
    if entries is None:
        return dict(seats)
    path = Path(entries.file)
    try:
        table = read_csv(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is not a readable CSV: {str(error).splitlines()[0]}") from None
    when = "step" if "step" in table.columns else "date"
    if "model" not in table.columns or when not in table.columns:
        raise DataError(
            f"{path}: expected the columns model and date (or step), "
            f"found {', '.join(table.columns):.200}"
        )
    named = table["model"].filter(table["model"].is_in(list(seats)))
    twice = named.filter(named.is_duplicated())
    if twice.len():
        raise DataError(f"{path} has several rows for '{twice[0]}'; expected one {when} per model")
    given = dict(zip(table["model"], table[when], strict=True))
    lacking = [name for name in seats if not given.get(name)]
    if lacking:
        raise DataError(f"{path} has no {when} for {len(lacking)} seats, the first '{lacking[0]}'")
    steps: Mapping[str, int]
    try:
        if when == "step":
            steps = {name: int(given[name]) for name in seats}
        else:
            days = sorted({date.fromisoformat(given[name]) for name in seats})
            every = entries.every or min(20, max(1, horizon // len(days)))
            steps = {name: days.index(date.fromisoformat(given[name])) * every for name in seats}
    except ValueError as error:
        raise DataError(f"{path}, column {when}: {error}") from None
    early = [name for name, step in steps.items() if step < 0]
    if early:
        raise ScenarioError(f"{path}: '{early[0]}' enters at step {steps[early[0]]}, before step 0")
    return {name: seat.model_copy(update={"enters": steps[name]}) for name, seat in seats.items()}


def phases_between_entries(scenario: Scenario, seats: Mapping[str, Seat]) -> tuple[Phase, ...]:
    """The stretches between entries: before and after the only one, or one per entry date."""
    horizon = scenario.market.horizon
    steps = {seat.enters for seat in seats.values()}
    steps |= {one.step for one in scenario.market.interventions if one.kind == "entry"}
    cuts = sorted(step for step in steps if step)
    if not cuts:
        return (Phase(name="all steps", start=0, stop=horizon),)
    names = ["before", "after"]
    if len(cuts) > 1:
        ends = [*cuts, horizon]
        names = [f"steps {a + 1}-{b}" for a, b in zip([0, *cuts], ends, strict=True)]
    return tuple(
        Phase(name=name, start=a, stop=b)
        for name, a, b in zip(names, [0, *cuts], [*cuts, horizon], strict=True)
    )


def default_metrics(phases: Sequence[Phase]) -> tuple[str, ...]:
    """What is computed where a scenario names no metrics: over the run and over each phase."""
    by_phase = [
        _with_argument(metric, f"phase={_quoted(one.name)}")
        for one in phases
        for metric in PHASE_METRICS
    ]
    return tuple(dict.fromkeys((*WHOLE_METRICS, *by_phase)))


def _with_argument(metric: str, argument: str) -> str:
    return f"{metric[:-1]}, {argument})" if metric.endswith(")") else f"{metric}({argument})"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
