"""What the pictures are made of: colours, axes, bands, rules, points with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from marketeval.apps.report.facts import Facts, steps
from marketeval.apps.report.numbers import Value
from marketeval.apps.report.words import Unit, both

# Okabe and Ito (2008) without yellow, then dark hues of Tol's muted scheme, drawn dashed
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000")
MORE_COLOURS = ("#332288", "#882255", "#117733", "#999933", "#8c564b")
COLOURED = len(COLOURS) + len(MORE_COLOURS)
GREY = "#b8b8b8"
RUN, CONTROL = "#0072b2", "#d55e00"
WIDTH = 520
SEPARATOR = " · "
MOST_LABELS = 4  # of rules in one picture
_TEXT = {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal"}
STYLE = {
    "background": "white",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {**_TEXT, "gridColor": "#e8e8e8", "domainColor": "#888", "tickColor": "#888"},
    "legend": {
        "labelFontSize": 13,
        "labelLimit": 140,
        "orient": "bottom",
        "symbolType": "stroke",
        "symbolSize": 300,
        "symbolStrokeWidth": 3,
        "symbolOpacity": 1,
        "title": None,
    },
    "title": {"fontSize": 13, "subtitleFontSize": 12, "anchor": "start", "offset": 8},
}
# Channels are given as what they are: altair looks through its whole schema for what a text may be.
IS, NAME = alt.Description("is:N"), alt.Description("name:N")
Row = dict[str, Any]  # any: what JSON holds
Chart = Any  # any: altair's charts share no useful type


class Rows:
    """The data of one picture: charts name them, so that layers share what they draw."""

    def __init__(self) -> None:
        self.sets: dict[str, list[Row]] = {}

    def chart(self, rows: list[Row]) -> Chart:
        """A chart of these rows; the same list is stored once."""
        name = next((name for name, one in self.sets.items() if one is rows), "")
        if not name:
            name = f"rows{len(self.sets)}"
            self.sets[name] = rows
        return alt.Chart(alt.NamedData(name))


def points(data: Rows, rows: list[Row], title: str, *, zero: bool) -> Chart:
    """A point with its interval per row, one below the other; `zero` draws a rule there."""
    order = [row["row"] for row in rows]
    y = alt.Y("row:N", sort=order, axis=alt.Axis(title=None, labelLimit=200, grid=True))
    x = alt.X("mean:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6))
    base = data.chart(rows)
    layers: list[Chart] = []
    if zero:
        layers.append(data.chart([{"zero": 0}]).mark_rule(color="#444").encode(x=alt.X("zero:Q")))
    if any(row["low"] is not None for row in rows):
        bar = base.mark_rule(strokeWidth=3, color=RUN, opacity=0.55)
        layers.append(
            bar.encode(alt.X("low:Q", title=title), y, x2=alt.X2("high:Q"), description=IS)
        )
    point = base.mark_point(filled=True, size=70, color=RUN, opacity=1)
    layers.append(point.encode(x, y, description=IS))
    step = 26 if len(rows) <= 2 * COLOURED else 17
    return alt.layer(*layers).properties(width=WIDTH - 140, height=alt.Step(step))


def band(data: Rows, rows: list[Row], x: Chart, *, opacity: float = 0.18) -> Chart:
    """The area between low and high."""
    return (
        data.chart(rows).mark_area(opacity=opacity).encode(x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    )


def targets(data: Rows, rows: list[Row], x: Chart, y: Chart, colour: Chart) -> Chart:
    """Points that are seen only under the pointer; they carry the tooltips."""
    point = data.chart(rows).mark_point(filled=True, size=90, opacity=0)
    return point.encode(x, y, color=colour, description=IS)


def line(data: Rows, rows: list[Row], x: Chart, y: Chart, **more: Any) -> Chart:  # any: channels
    """A line per name, which breaks where there is no value; dots where there are few windows."""
    dots = {"size": 40, "filled": True} if len({row["x"] for row in rows}) < 4 else False
    mark = data.chart(rows).mark_line(strokeWidth=2, point=dots)
    return mark.encode(x, y, description=NAME, **more)


def steps_axis(facts: Facts) -> Chart:
    """The steps of the episode."""
    scale = alt.Scale(domain=[0, facts.horizon], nice=False)
    return alt.X("x:Q", title="step", scale=scale, axis=alt.Axis(grid=False, tickCount=8))


def colours(names: Sequence[str]) -> Chart:
    """A colour per name, with a legend below the picture."""
    scale = alt.Scale(domain=list(names), range=[*COLOURS, *MORE_COLOURS][: len(names)])
    columns = 4 if max(map(len, names), default=0) < 16 else 3
    return alt.Color("name:N", scale=scale, legend=alt.Legend(columns=columns))


def dashes(names: Sequence[str], *, solid: int = len(COLOURS)) -> Chart:
    """Which lines are drawn dashed, so that colour is not all that tells them apart."""
    return alt.Scale(
        domain=list(names), range=[[1, 0] if i < solid else [6, 3] for i in range(len(names))]
    )


def change_rules(data: Rows, facts: Facts) -> list[Chart]:
    """A rule before each step at which something scheduled happens, labelled while they fit."""
    if not facts.changes:
        return []
    by_step: dict[int, list[str]] = {}
    for change in facts.changes:
        by_step.setdefault(change.step, []).append(change.text)
    rows = [
        {
            "x": step + 0.5,
            "label": texts[0] if len(texts) == 1 else f"{texts[0]} and {len(texts) - 1} more",
            "is": f"{steps(step, step + 1)}: {', '.join(texts)}",
            "side": "right" if step > 0.6 * facts.horizon else "left",
        }
        for step, texts in by_step.items()
    ]
    base = data.chart(rows)
    x = alt.X("x:Q")
    colour, width = ("#444", 1.5) if len(rows) <= MOST_LABELS else ("#999", 1)
    rule = base.mark_rule(strokeDash=[4, 3], color=colour, strokeWidth=width)
    layers = [rule.encode(x, description=IS)]
    if len(rows) > MOST_LABELS:
        return layers
    for side, shift in (("left", 5), ("right", -5)):
        part = data.chart([row for row in rows if row["side"] == side])
        text = part.mark_text(align=side, dx=shift, y=8, fontSize=12, color="#222")
        layers.append(text.encode(x, text=alt.Text("label:N"), description=IS))
    return layers


def changes_in_words(facts: Facts) -> str:
    """What the rules stand for."""
    if not facts.changes:
        return ""
    told = facts.schedule()
    if len(told) > MOST_LABELS:
        return " Dashed rules: scheduled changes, listed at the top."
    return f" Dashed rules: {'; '.join(told)}."


def point_row(row: str, name: str, value: Value, unit: Unit, *, signed: bool = False) -> Row:
    """The data of a point: its row in the picture and, if it is one agent's, the agent's name."""
    scale = unit[1]
    told = both(value, unit, signed=signed)
    return {
        "row": row,
        "name": name or row,
        "mean": None if value.mean is None else value.mean * scale,
        "low": None if value.low is None else value.low * scale,
        "high": None if value.high is None else value.high * scale,
        "is": f"{name or row}{SEPARATOR}{row}: {told}"
        if name != row
        else f"{row}{SEPARATOR}{told}",
    }


def series_rows(
    series: pl.DataFrame, facts: Facts, names: Mapping[str | None, str], unit: Unit
) -> list[Row]:
    """The data of lines: a row per window, without a mean where there is none to show."""
    found: dict[str, dict[int, Value]] = {}
    for row in series.select("step", "subject", "mean", "low", "high").iter_rows():
        step, subject, *numbers = row
        if subject in names:
            found.setdefault(names[subject], {})[step // facts.window] = Value(*numbers)
    rows = []
    for name, values in found.items():
        for place in range(min(values), max(values) + 1):
            value = values.get(place, Value(None))
            start = place * facts.window
            stop = min(start + facts.window, facts.horizon)
            scaled = {
                key: None if number is None else round(number * unit[1], 4)
                for key, number in (("mean", value.mean), ("low", value.low), ("high", value.high))
            }
            told = f"{name}{SEPARATOR}{steps(start, stop)}: {both(value, unit)}"
            rows.append({"x": _middle(start, stop), "name": name, **scaled, "is": told})
    return rows


def seed_spread(facts: Facts) -> list[Row]:
    """From the 5th to the 95th percentile of the seeds' HHI, window by window."""
    found = (
        facts.details.tidy.filter(pl.col("metric") == str(facts.hhi_series))
        .group_by("step", maintain_order=True)
        .agg(low=pl.col("value").quantile(0.05), high=pl.col("value").quantile(0.95))
        .drop_nulls()
    )
    return [
        {
            "x": _middle(step // facts.window * facts.window, step + 1),
            "low": low,
            "high": high,
            "name": "single seeds",
        }
        for step, low, high in found.iter_rows()
    ]


def _middle(start: int, stop: int) -> float:
    """Of steps [start, stop), as people count them from 1."""
    return (start + 1 + stop) / 2
