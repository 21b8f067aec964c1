"""The arms of two-sided studies side by side: who traded under which search, and what came of it.

An arm is a run or one of its controls. Over several runs, or a run whose controls differ in models
and search, the arms are the cells of a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from marketeval.apps.report.tables import Cell, Table
from marketeval.apps.report.words import both, number
from marketeval.metrics.base import parse_metric

if TYPE_CHECKING:
    from marketeval.apps.report.bazaars import Told
    from marketeval.apps.report.numbers import Numbers, Value
    from marketeval.experiments.run_directory import RunDirectory

# what tells arms apart: a title, and where it stands in a scenario
DIMENSIONS = ("customers", "businesses", "search", "results", "population", "attack")
PAYMENTS = "PaymentsReceived"
FEW = 9  # businesses that a table of payments has room for
MEASURES = (
    ("EvaluationScore", "Score", 3),
    ("WelfareOverOptimum(raw=true)", "Welfare over optimum", 3),
    ("PurchaseCompletion", "Bought", 3),
    ("NeedsMet", "Needs met", 3),
    ("SellerProfit", "Profit", 2),
    ("MessagesPerPurchase", "Messages", 1),
    ("TokensPerPurchase", "Tokens", 0),
    ("AttackSuccess", "To attackers", 3),
)


@dataclass(frozen=True)
class Arm:
    """One arm: its name, what tells it from others, and its numbers."""

    name: str
    traits: dict[str, str]
    numbers: Numbers

    def value(self, text: str) -> Value:
        """The mean over seeds of a metric of the whole run."""
        return self.numbers.pooled(parse_metric(text))


def arms(told: Sequence[Told]) -> list[Arm]:
    """The arms of all runs, in the order of the runs; names say the run where there are several."""
    found = []
    for one in told:
        prefix = f"{one.run.path.resolve().name}: " if len(told) > 1 else ""
        found.append(Arm(f"{prefix}this run" if not prefix else prefix[:-2], _traits(one.run),
                         one.numbers))  # fmt: skip
        found += [
            Arm(f"{prefix}{name}", _traits(one.run.controls[name]), numbers)
            for name, numbers in one.controls.items()
        ]
    return found


def varying(found: Sequence[Arm]) -> list[str]:
    """The traits in which the arms differ."""
    return [one for one in DIMENSIONS if len({arm.traits[one] for arm in found}) > 1]


def arm_table(found: Sequence[Arm]) -> Table:
    """A row per arm: its name, what tells it apart, its outcomes with intervals over seeds."""
    traits = varying(found)
    columns = ["Arm", *(one.capitalize() for one in traits)]
    columns += [f">{title}" for _, title, _ in MEASURES]
    rows = [
        [
            Cell(arm.name),
            *(Cell(arm.traits[one]) for one in traits),
            *(Cell(both(arm.value(text), (digits, 1.0))) for text, _, digits in MEASURES),
        ]
        for arm in found
    ]
    caption = "All arms: means over seeds with 95% intervals where there are several seeds."
    return Table("arms", caption, columns, rows)


def payments_table(found: Sequence[Arm], businesses: Sequence[str]) -> Table:
    """Payments that each business received in each arm: what studies of manipulation compare."""
    rows = [
        [
            Cell(arm.name),
            *(
                Cell(both(arm.numbers.pooled(parse_metric(PAYMENTS), one), (2, 1.0)))
                for one in businesses
            ),
        ]
        for arm in found
    ]
    caption = "Payments received per episode, means over seeds with 95% intervals."
    return Table("payments", caption, ["Arm", *(f">{one}" for one in businesses)], rows)


def cells(found: Sequence[Arm], text: str) -> list[dict[str, object]]:
    """The arms as cells of a grid, models down and search across; none unless each has its own."""
    traits = varying(found)
    across = next((one for one in ("search", "results", "attack") if one in traits), "")
    down = [one for one in traits if one != across]
    if not across or not down:
        return []
    rows: list[dict[str, object]] = []
    for arm in found:
        mean = arm.value(text).mean
        rows.append(
            {
                "across": arm.traits[across],
                "down": ", ".join(arm.traits[one] for one in down),
                "mean": mean,
                "label": number(mean, (2, 1.0)),
                "is": f"{arm.name}: {both(arm.value(text), (3, 1.0))}",
            }
        )
    return rows if len({(one["across"], one["down"]) for one in rows}) == len(rows) else []


def _traits(run: RunDirectory) -> dict[str, str]:
    scenario = run.scenario
    market = scenario.market
    attacks = [f"{one.kind} in {one.where}" for one in market.manipulation]
    return {
        **{side: scenario.seats[side].agent for side in ("customers", "businesses")},
        "search": market.search,
        "results": "all" if market.limit < 1 else str(market.limit),
        "population": "generated" if market.generate is not None else market.population,
        "attack": "; ".join(attacks) or "none",
    }
