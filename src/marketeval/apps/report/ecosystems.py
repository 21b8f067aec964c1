"""What a report says about a run of coupled markets: its graph, its agents, its markets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from marketeval.apps.report.graph import Drawn, of_log
from marketeval.apps.report.numbers import Numbers, Value, summarised, tidy_of_possible
from marketeval.apps.report.tables import Cell, Table
from marketeval.apps.report.words import interval, number
from marketeval.metrics.base import Metric, parse_metric
from marketeval.metrics.potential import CAUSES
from marketeval.metrics.resampling import paired_effect

if TYPE_CHECKING:
    from marketeval.experiments.run_directory import RunDirectory

WHOLE = (
    ("LongitudinalUtility", "Utility of users, mean", 4),
    ("MeanScore", "Quality of answers, mean", 4),
    ("HHI", "HHI of the users' market", 4),
    ("Regret", "Regret against the best fixed path", 4),
    ("Regret(best=topic)", "Regret against the best path per topic", 4),
    ("Regret(best=item)", "Regret against the best path per question", 4),
    ("AllocationEfficiency", "Utility over that of the best paths", 4),
    ("CostPerUtility", "Dollars per unit of utility", 4),
)
WITHOUT = "without-"  # controls of this name take one agent out


@dataclass(frozen=True)
class Told:
    """All that is told about one run."""

    run: RunDirectory
    graph: Drawn
    populations: dict[str, str]
    agents: Sequence[tuple[str, str, str]]  # seat, label, population
    numbers: Numbers
    effects: dict[str, Numbers]

    def value(self, text: str, subject: str | None = None) -> Value:
        """The mean over seeds of a metric of the whole run."""
        return self.numbers.pooled(parse_metric(text), subject)


def gather(run: RunDirectory) -> Told:
    """Read a run and its controls."""
    roles = dict(run.scan("population").select("population", "role").collect().iter_rows())
    populations = {name: role for name, role in roles.items() if role != "user"}
    wanted = [text for text, _, _ in WHOLE]
    wanted += ["LostUtility", "MarginalContribution", "Contribution", "NetIncome", "Congestion"]
    for name in populations:
        wanted += [f"In({name}, {one})" for one in ("MarketShare", "HHI", "MeanScore", "Survival")]
    numbers = summarised(tidy_of_possible(run, _metrics(wanted)))
    effects = {
        name: Numbers(
            numbers.tidy,
            paired_effect(
                numbers.tidy.filter(pl.col("metric").is_in(_compared(populations))),
                tidy_of_possible(one, _metrics(_there(one, _compared(populations)))),
                resamples=1000,
            ),
        )
        for name, one in run.controls.items()
    }
    agents = run.scan("agent").select("seat", "label", "population").collect().rows()
    return Told(run, of_log(run), populations, agents, numbers, effects)


def _compared(populations: dict[str, str]) -> list[str]:
    texts = ["LongitudinalUtility", "HHI", "Regret", *(f"In({one}, HHI)" for one in populations)]
    return [str(parse_metric(text)) for text in texts]


def _there(run: RunDirectory, texts: Sequence[str]) -> list[str]:
    """Those of the metrics whose population a control still has."""
    names = set(run.scan("population").select("population").collect()["population"])
    return [
        text for text in texts
        if not text.startswith("In(") or any(f"population={name}," in text for name in names)
    ]  # fmt: skip


def _metrics(texts: Sequence[str]) -> list[Metric]:
    return [parse_metric(text) for text in texts]


def tables(told: Told) -> list[Table]:
    """All tables, in the order of the report."""
    found = [_whole(told), _lost(told), *(_population(told, one) for one in told.populations)]
    return [*found, _controls(told)] if told.effects else found


def notes(told: Told) -> list[str]:
    """What must be said beside the tables."""
    return [
        "Shares are of the selections of an agent's own population. Contribution: Shapley value of "
        "a retriever, of the mean utility of answers; marginal: with all, less with all but it.",
    ]


def _whole(told: Told) -> Table:
    rows = [[Cell(title), *_cells(told.value(text), digits)] for text, title, digits in WHOLE]
    rows += [
        [Cell(f"HHI of {name}"), *_cells(told.value(f"In({name}, HHI)"), 4)]
        for name in told.populations
    ]
    return Table(
        "markets", "The markets as a whole, means over seeds.",
        ["", ">Mean", ">95% interval"], rows,
    )  # fmt: skip


def _lost(told: Told) -> Table:
    rows = [[Cell(one), *_cells(told.value("LostUtility", one), 4)] for one in CAUSES]
    return Table(
        "lost", "Utility lost against a perfect free answer, by who lost it.",
        ["Lost by", ">Mean", ">95% interval"], rows,
    )  # fmt: skip


def _population(told: Told, population: str) -> Table:
    role = told.populations[population]
    columns = ["Agent", ">Share %", ">95% interval", ">Score", ">Survival", ">Congestion",
               ">Net income $"]  # fmt: skip
    contributes = role == "retriever"
    if contributes:
        columns += [">Marginal", ">Contribution"]
    rows = []
    for seat, label, of in told.agents:
        if of != population:
            continue
        share = told.value(f"In({population}, MarketShare)", seat)
        cells = [
            Cell(label),
            Cell(number(share.mean, (1, 100.0))),
            Cell(interval(share, (1, 100.0))),
            Cell(number(told.value(f"In({population}, MeanScore)", seat).mean, (3, 1.0))),
            Cell(number(told.value(f"In({population}, Survival)", seat).mean, (3, 1.0))),
            Cell(number(told.value("Congestion", seat).mean, (3, 1.0))),
            Cell(number(told.value("NetIncome", seat).mean, (2, 1.0))),
        ]
        if contributes:
            lone = told.effects.get(f"{WITHOUT}{seat}")
            marginal = (
                lone.pooled(parse_metric("LongitudinalUtility"))
                if lone is not None
                else told.value("MarginalContribution", seat)
            )
            cells += [
                Cell(number(marginal.mean, (4, 1.0), signed=True)),
                Cell(number(told.value("Contribution", seat).mean, (4, 1.0), signed=True)),
            ]
        rows.append(cells)
    rows.sort(key=lambda cells: -(_share(told, population, cells[0].text)))
    caption = f"Population {population}: {len(rows)} agents of role {role}."
    if contributes and any(name.startswith(WITHOUT) for name in told.effects):
        caption += " Marginal contribution by playing again without it, paired by seed."
    return Table(f"population-{population}", caption, columns, rows)


def _share(told: Told, population: str, label: str) -> float:
    seat = next(one for one, name, of in told.agents if name == label and of == population)
    return told.value(f"In({population}, MarketShare)", seat).mean or 0.0


def _controls(told: Told) -> Table:
    texts = _compared(told.populations)
    rows = [
        [
            Cell(name),
            *(
                cell
                for text in texts
                for cell in _cells(effect.pooled(parse_metric(text)), 4, signed=True)
            ),
        ]
        for name, effect in told.effects.items()
    ]
    columns = ["Control", *(c for text in texts for c in (f">{_short(text)}", ">95% interval"))]
    return Table("controls", "This run less each control, paired by seed.", columns, rows)


def _short(text: str) -> str:
    names = {"LongitudinalUtility": "Utility"}
    if text.startswith("In("):
        return f"HHI {text.split('population=')[1].split(',')[0]}"
    return names.get(text, text)


def _cells(value: Value, digits: int, *, signed: bool = False) -> list[Cell]:
    unit = digits, 1.0
    return [
        Cell(number(value.mean, unit, signed=signed)),
        Cell(interval(value, unit, signed=signed)),
    ]
