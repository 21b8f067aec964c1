"""The pictures of a two-sided run: its arms, the grid they make, and what was paid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from marketeval.apps.report.bazaar_arms import Arm, cells
from marketeval.apps.report.charts import Picture
from marketeval.apps.report.marks import IS, RUN, WIDTH, Row, Rows, point_row, points
from marketeval.apps.report.numbers import Value
from marketeval.apps.report.words import Unit
from marketeval.metrics.base import parse_metric
from marketeval.metrics.unmet import REASONS

if TYPE_CHECKING:
    from marketeval.apps.report.bazaars import Told

SHARE: Unit = (3, 1.0)
SCORE = "EvaluationScore"
WELFARE = "WelfareOverOptimum(raw=true)"


def pictures(told: Told, found: Sequence[Arm]) -> list[Picture]:
    """All pictures of a run that its log allows."""
    made = [*arm_pictures(found), _unmet(told), _paid(told)]
    return [one for one in made if one is not None]


def arm_pictures(found: Sequence[Arm]) -> list[Picture]:
    """Welfare by arm, where there are several, and the grid where they make one."""
    made = [_welfare(found), _grid(found)] if len(found) > 1 else []
    return [one for one in made if one is not None]


def _welfare(found: Sequence[Arm]) -> Picture | None:
    rows = [
        point_row(arm.name, arm.name, arm.value(WELFARE), SHARE)
        for arm in found
        if arm.value(WELFARE).mean is not None
    ]
    if not rows:
        return None
    data = Rows()
    return Picture(
        "welfare-by-arm",
        "Welfare by arm",
        "Customers' welfare over the optimum at menu prices; 1 is the optimum, below 0 customers "
        "lose by trading. Bars: 95% bootstrap interval of the mean over seeds.",
        f"Points of welfare over the optimum: {_in_words(rows)}.",
        points(data, rows, "welfare over the menu-price optimum", zero=True),
        data.sets,
    )


def _grid(found: Sequence[Arm]) -> Picture | None:
    rows = cells(found, SCORE)
    if not rows:
        return None
    data = Rows()
    base = data.chart(rows)
    x = alt.X("across:N", sort=None, axis=alt.Axis(title=None, labelAngle=0, orient="top"))
    y = alt.Y("down:N", sort=None, axis=alt.Axis(title=None, labelLimit=220))
    scale = alt.Scale(domain=[0, 1], range=["#f1f6fa", RUN])
    colour = alt.Color("mean:Q", scale=scale, legend=None)
    square = base.mark_rect(stroke="white").encode(x, y, color=colour, description=IS)
    ink = alt.condition("datum.mean > 0.55", alt.value("white"), alt.value("#222"))
    label = base.mark_text(fontSize=13).encode(
        x, y, text=alt.Text("label:N"), color=ink, description=IS
    )
    told = "; ".join(f"{one['down']}, {one['across']} {one['label']}" for one in rows)
    return Picture(
        "grid",
        "Evaluation score by models and search",
        "Mean over seeds of the plain mean of purchase completion, needs met, clipped welfare and "
        "proposal validity.",
        f"A table of scores: {told}.",
        alt.layer(square, label).properties(width=WIDTH - 160, height=alt.Step(34)),
        data.sets,
    )


def _unmet(told: Told) -> Picture | None:
    values = {reason: told.value("UnmetNeeds", reason) for reason in REASONS}
    rows = [
        point_row(reason, reason, value, (1, 1.0)) for reason, value in values.items() if value.mean
    ]
    if not rows:
        return None
    data = Rows()
    return Picture(
        "unmet-needs",
        "Where errands broke off",
        f"Of {told.customers:,} customers, those whose needs were not met, by the first thing "
        "that went wrong; means over seeds with 95% intervals.",
        f"Points of customers by reason: {_in_words(rows)}.",
        points(data, rows, "customers per episode", zero=True),
        data.sets,
    )


def _paid(told: Told) -> Picture | None:
    rows: list[Row] = []
    for text in ("PaidByPlace", "PaidByArrival"):
        table = told.numbers.summary.filter(pl.col("metric") == str(parse_metric(text)))
        for subject in table["subject"].to_list():
            value: Value = told.value(text, subject)
            if value.mean is not None:
                rows.append(point_row(str(subject), str(subject), value, SHARE))
    if not rows:
        return None
    data = Rows()
    return Picture(
        "paid",
        "Which place and which arrival was paid",
        "Share of first payments that went to each place of the search result, and to the first, "
        "second and third proposal received; means over seeds with 95% intervals. What would be "
        "equal stands in the notes of PaidByPlace and PaidByArrival.",
        f"Points of shares of first payments: {_in_words(rows)}.",
        points(data, rows, "share of first payments", zero=True),
        data.sets,
    )


def _in_words(rows: Sequence[Row]) -> str:
    return ", ".join(f"{row['name']} {row['mean']:.2f}" for row in rows)
