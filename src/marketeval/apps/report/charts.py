"""The pictures of a run as Vega-Lite specifications, made with altair.

Every mark carries a description, which is its text for screen readers and the page's tooltip; it
begins with the name of the agent, so that the page can highlight one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from marketeval.apps.report.facts import (
    Agent,
    Control,
    Facts,
    Numbers,
    Phase,
    Value,
    hhi_of,
    of_phase,
    steps,
)
from marketeval.apps.report.words import PERCENT, PLAIN, POINTS, Unit, both, number
from marketeval.core.errors import UsageError
from marketeval.metrics.base import Metric
from marketeval.metrics.ranking import KendallTau, SpearmanRho, StaticRank
from marketeval.metrics.share import MarketShare

if TYPE_CHECKING:
    import altair as alt
else:
    try:
        import altair as alt
    except ImportError as error:
        raise UsageError(
            "a report needs altair and vl-convert-python; install them with "
            "pip install 'marketeval[report]'"
        ) from error

# Okabe and Ito (2008) without yellow, then dark hues of Tol's muted scheme, drawn dashed
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000")
MORE_COLOURS = ("#332288", "#882255", "#117733", "#999933", "#8c564b")
COLOURED = len(COLOURS) + len(MORE_COLOURS)
GREY = "#b8b8b8"
RUN, CONTROL = "#0072b2", "#d55e00"
WIDTH = 600
SEPARATOR = " · "
_TEXT = {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal"}
STYLE = {
    "background": "white",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {**_TEXT, "gridColor": "#e8e8e8", "domainColor": "#888", "tickColor": "#888"},
    "legend": {
        "labelFontSize": 13,
        "labelLimit": 190,
        "orient": "bottom",
        "symbolType": "stroke",
        "symbolSize": 300,
        "symbolStrokeWidth": 3,
        "symbolOpacity": 1,
        "title": None,
    },
    "title": {"fontSize": 13, "subtitleFontSize": 12, "anchor": "start", "offset": 8},
}
Row = dict[str, Any]  # any: what JSON holds
Chart = Any  # any: altair's charts share no useful type


@dataclass(frozen=True)
class Picture:
    """A chart with its file name, its title and what to say of it in words."""

    name: str
    title: str
    caption: str
    alt_text: str
    chart: Chart
    agents: tuple[str, ...] = ()


def pictures(facts: Facts) -> list[Picture]:
    """All pictures of a run that its log allows."""
    found = [_shares(facts), _hhi(facts), _ranks(facts), _retention(facts)]
    found += [_effect(facts, control) for control in facts.controls]
    return [one for one in found if one is not None]


def specification(picture: Picture) -> dict[str, Any]:  # any: JSON
    """The Vega-Lite specification, in the house style."""
    found = dict(picture.chart.to_dict(validate=False))
    found["config"] = STYLE
    return found


def _shares(facts: Facts) -> Picture | None:
    series = facts.numbers.series(facts.share_series)
    if series.is_empty():
        return None
    agents = facts.ranked
    shown, others = agents[:COLOURED], agents[COLOURED:]
    names: dict[str | None, str] = {agent.seat: agent.name for agent in agents}
    rows = _series_rows(series, facts, names, PERCENT)
    grey = {agent.name for agent in others}
    front = [row for row in rows if row["name"] not in grey]
    back = [row for row in rows if row["name"] in grey]
    colour = _colours([agent.name for agent in shown])
    x, y = _steps_axis(facts), alt.Y("mean:Q", title="market share, %", scale=alt.Scale(zero=True))
    layers: list[Chart] = []
    if back:
        layers.append(
            _chart(back)
            .mark_line(color=GREY, strokeWidth=1)
            .encode(x, y, detail="name:N", description="name:N")
        )
    if len(facts.seeds) > 1:
        layers.append(_band(front, x).encode(color=colour, description="name:N"))
    dash = alt.StrokeDash("name:N", scale=_dashes([a.name for a in shown]))
    line = _chart(front).mark_line(strokeWidth=2)
    layers.append(line.encode(x, y, color=colour, strokeDash=dash, description="name:N"))
    layers.append(_targets(front, x, y, colour))
    layers += _change_rules(facts)
    spread = (
        "Bands: 95% bootstrap interval of the mean over seeds."
        if len(facts.seeds) > 1
        else "One seed: no band."
    )
    rest = f" The {len(others)} smallest of {len(agents)} systems are grey." if others else ""
    caption = (
        f"Market share in windows of {facts.window} steps side by side, each drawn at its middle. "
        f"{spread}{rest}{_changes_in_words(facts)}"
    )
    last = ", ".join(
        f"{a.name} {number(facts.numbers.pooled(_last_share(facts), a.seat).mean, PERCENT)}%"
        for a in facts.standing(facts.phases[-1])[:5]
    )
    return Picture(
        "market-share",
        "Market share over time",
        caption,
        f"Lines of market share over {facts.horizon} steps for {len(agents)} systems. "
        f"Largest mean shares in {facts.phases[-1].name}: {last}.",
        alt.layer(*layers).properties(width=WIDTH, height=320),
        tuple(agent.name for agent in shown),
    )


def _hhi(facts: Facts) -> Picture | None:
    series = facts.numbers.series(facts.hhi_series)
    if series.is_empty():
        return None
    lines = [("this run", facts.numbers)]
    lines += [(f"control: {one.name}", one.numbers) for one in facts.controls]
    lines = [(name, numbers) for name, numbers in lines if not _of(numbers, facts).is_empty()]
    names = [name for name, _ in lines]
    palette = [RUN, CONTROL, *COLOURS[2:5], *MORE_COLOURS][: len(names)]
    colour = alt.Color(
        "name:N",
        scale=alt.Scale(domain=names[: len(palette)], range=palette),
        legend=alt.Legend(columns=3) if len(names) > 1 else None,
    )
    dash = alt.StrokeDash("name:N", scale=_dashes(names, solid=1))
    x = _steps_axis(facts)
    y = alt.Y("mean:Q", title="HHI, points", scale=alt.Scale(zero=True))
    rows = [
        row
        for name, numbers in lines
        for row in _series_rows(_of(numbers, facts), facts, {None: name}, POINTS)
    ]
    layers: list[Chart] = []
    spread = "One seed: no band."
    if len(facts.seeds) > 1:
        layers.append(_band(_seed_spread(facts), x, opacity=1).encode(color=alt.value("#eeeeee")))
        layers.append(_band(rows, x).encode(color=colour, description="name:N"))
        spread = (
            "Coloured bands: 95% bootstrap interval of the mean over seeds. Grey: from the 5th to "
            "the 95th percentile of single seeds of this run."
        )
    line = _chart(rows).mark_line(strokeWidth=2)
    layers.append(line.encode(x, y, color=colour, strokeDash=dash, description="name:N"))
    layers.append(_targets(rows, x, y, colour))
    layers += _change_rules(facts)
    against = "" if len(names) > 1 else " No control was played: a rise is not yet an effect."
    values = "; ".join(
        f"{p.name} ({p.steps}) {both(facts.numbers.pooled(hhi_of(p)), POINTS)}"
        for p in facts.phases
    )
    return Picture(
        "hhi",
        "Concentration over time (HHI)",
        f"Herfindahl-Hirschman index in windows of {facts.window} steps, in points of 10,000 "
        f"(= monopoly); few interactions in a window raise it above that of a whole phase. "
        f"{spread}{against}{_changes_in_words(facts)}",
        f"Lines of HHI over {facts.horizon} steps: {', '.join(names)}. By phase: {values}.",
        alt.layer(*layers).properties(width=WIDTH, height=280),
        tuple(names),
    )


def _ranks(facts: Facts) -> Picture | None:
    phases = [p for p in facts.phases if any(_static(facts, p, a) for a in facts.standing(p))]
    if not phases:
        return None
    agents = facts.ranked
    colours = dict(zip((a.name for a in agents), [*COLOURS, *MORE_COLOURS], strict=False))
    panels, words = [], []
    for phase in phases:
        standing = facts.standing(phase)
        rows = []
        for place, agent in enumerate(standing):
            static = _static(facts, phase, agent)
            if static is None:
                continue
            told = f"{agent.name}{SEPARATOR}static {number(static, (0, 1))}, market {place + 1}"
            colour = colours.get(agent.name, GREY)
            for side, rank in (("static", static), ("market", place + 1.0)):
                rows.append(
                    {"side": side, "rank": rank, "name": agent.name, "is": told, "c": colour}
                )
        panels.append(_slope(facts, phase, rows, count=len(facts.agents)))
        words.append(f"{phase.name}: {_order_in_words(facts, phase)}")
    return Picture(
        "static-rank-market-rank",
        "Static rank against market rank",
        "Left, the place by static F-score among the systems there; right, the place by mean "
        "market share. Correlations are means over seeds of each seed's own.",
        f"Slopes from static to market rank. {'. '.join(words)}.",
        alt.hconcat(*panels, spacing=30) if len(panels) > 1 else panels[0],
    )


def _slope(facts: Facts, phase: Phase, rows: list[Row], *, count: int) -> Chart:
    x = alt.X(
        "side:N",
        sort=["static", "market"],
        axis=alt.Axis(title=None, labelAngle=0, orient="top", grid=False, domain=False),
        scale=alt.Scale(padding=0.02 if count > COLOURED else 0.05),
    )
    places = alt.Scale(domain=[count + 0.5, 0.5], nice=False)
    y = alt.Y("rank:Q", scale=places, axis=None)
    colour = alt.Color("c:N", scale=None)
    base = _chart(rows)
    size = 12 if count <= COLOURED else 11
    label = {"fontSize": size, "limit": 105}
    left = _chart(_stacked([row for row in rows if row["side"] == "static"]))
    right = _chart([row for row in rows if row["side"] == "market"])
    title = [f"{phase.name} ({phase.steps})", *_order_in_words(facts, phase).split("; ")]
    return alt.layer(
        base.mark_line(strokeWidth=2).encode(
            x, y, detail="name:N", color=colour, description="is:N"
        ),
        base.mark_point(filled=True, size=50, opacity=1).encode(
            x, y, color=colour, description="is:N"
        ),
        left.mark_text(align="right", dx=-8, **label).encode(
            x, alt.Y("at:Q", scale=places, axis=None), text="label:N", description="is:N"
        ),
        right.mark_text(align="left", dx=8, **label).encode(
            x, y, text="name:N", description="is:N"
        ),
    ).properties(
        width=alt.Step(90),
        height=max(180, 22 * count),
        title=alt.Title(title[0], subtitle=title[1:]),
    )


def _retention(facts: Facts) -> Picture | None:
    rows = []
    for agent in facts.ranked:
        value = facts.numbers.pooled(facts.retention, agent.seat)
        if value.mean is not None:
            rows.append(_point_row(agent.name, agent.name, value, PERCENT))
    if not rows:
        return None
    m = facts.retention.m
    spread = "Bars: 95% bootstrap interval of the mean over seeds. " if len(facts.seeds) > 1 else ""
    told = ", ".join(f"{row['name']} {row['mean']:.1f}%" for row in rows[:COLOURED])
    return Picture(
        "retention",
        "Retention",
        f"Of a user's next {m} interactions after first trying a system, the share that stays "
        f"with it. {spread}Users with fewer than {m} later interactions are left out.",
        f"Points of retention by system: {told}.",
        _points(rows, "retention, %", zero=False),
    )


def _effect(facts: Facts, control: Control) -> Picture | None:
    panels, told = [], []
    hhi, shares = [], []
    several = len(facts.phases) > 1
    for phase in facts.phases:
        value = control.effect.pooled(hhi_of(phase))
        if value.mean is not None:
            hhi.append(_point_row(f"HHI {phase.name}" if several else "HHI", "", value, POINTS))
            told.append(f"HHI {phase.name} {both(value, POINTS, signed=True)} points")
        for agent in facts.standing(phase):
            value = control.effect.pooled(of_phase(MarketShare, phase), agent.seat)
            if value.mean is None or value.mean == value.low == value.high == 0:
                continue
            row = f"{agent.name}, {phase.name}" if several else agent.name
            shares.append(_point_row(row, agent.name, value, PERCENT))
            told.append(f"share of {row} {both(value, PERCENT, signed=True)} points")
    if hhi:
        panels.append(_points(hhi, "difference in HHI, points", zero=True))
    if shares:
        panels.append(_points(shares, "difference in share, percentage points", zero=True))
    if not panels:
        return None
    spread = (
        "Points: mean paired difference; bars: its 95% bootstrap interval over seeds. "
        if len(facts.seeds) > 1
        else "One seed: no intervals. "
    )
    return Picture(
        f"effect-{control.name}",
        f"Effect against the control '{control.name}'",
        f"This run minus the control on the same seed. {spread}An interval that includes 0 does "
        "not tell the effect from none. Shares that are equal in every seed are left out.",
        f"Paired differences to the control: {'; '.join(told[:COLOURED])}.",
        alt.vconcat(*panels, spacing=20) if len(panels) > 1 else panels[0],
    )


def _points(rows: list[Row], title: str, *, zero: bool) -> Chart:
    order = [row["row"] for row in rows]
    y = alt.Y("row:N", sort=order, axis=alt.Axis(title=None, labelLimit=200, grid=True))
    x = alt.X("mean:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6))
    base = _chart(rows)
    layers: list[Chart] = []
    if zero:
        layers.append(_chart([{"zero": 0}]).mark_rule(color="#444").encode(x="zero:Q"))
    if any(row["low"] is not None for row in rows):
        bar = base.mark_rule(strokeWidth=3, color=RUN, opacity=0.55)
        layers.append(bar.encode(alt.X("low:Q", title=title), y, x2="high:Q", description="is:N"))
    point = base.mark_point(filled=True, size=70, color=RUN, opacity=1)
    layers.append(point.encode(x, y, description="is:N"))
    step = 26 if len(rows) <= 2 * COLOURED else 17
    return alt.layer(*layers).properties(width=WIDTH - 160, height=alt.Step(step))


def _point_row(row: str, name: str, value: Value, unit: Unit) -> Row:
    scale = unit[1]
    told = both(value, unit, signed=not name)
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


def _series_rows(
    series: pl.DataFrame, facts: Facts, names: Mapping[str | None, str], unit: Unit
) -> list[Row]:
    rows = []
    for row in series.select("step", "subject", "mean", "low", "high").iter_rows():
        step, subject, *numbers = row
        value = Value(*numbers)
        name = names.get(subject)
        if name is None or value.mean is None:
            continue
        stop = step + 1
        start = (step // facts.window) * facts.window
        told = f"{name}{SEPARATOR}{steps(start, stop)}: {both(value, unit)}"
        rows.append(
            {
                "x": (start + 1 + stop) / 2,
                "name": name,
                **{k: None if v is None else round(v * unit[1], 4) for k, v in _named(value)},
                "is": told,
            }
        )
    return rows


def _named(value: Value) -> list[tuple[str, float | None]]:
    return [("mean", value.mean), ("low", value.low), ("high", value.high)]


def _seed_spread(facts: Facts) -> list[Row]:
    found = (
        facts.numbers.tidy.filter(pl.col("metric") == str(facts.hhi_series))
        .group_by("step", maintain_order=True)
        .agg(low=pl.col("value").quantile(0.05), high=pl.col("value").quantile(0.95))
        .drop_nulls()
    )
    rows = []
    for step, low, high in found.iter_rows():
        start = (step // facts.window) * facts.window
        rows.append({"x": (start + 2 + step) / 2, "low": low, "high": high, "name": ""})
    return rows


def _of(numbers: Numbers, facts: Facts) -> pl.DataFrame:
    return numbers.series(facts.hhi_series)


def _chart(rows: list[Row]) -> Chart:
    return alt.Chart(alt.InlineData(values=rows))


def _band(rows: list[Row], x: Chart, *, opacity: float = 0.18) -> Chart:
    return _chart(rows).mark_area(opacity=opacity).encode(x, y="low:Q", y2="high:Q")


def _targets(rows: list[Row], x: Chart, y: Chart, colour: Chart) -> Chart:
    """Points that are seen only under the pointer; they carry the tooltips."""
    point = _chart(rows).mark_point(filled=True, size=90, opacity=0)
    return point.encode(x, y, color=colour, description="is:N")


def _steps_axis(facts: Facts) -> Chart:
    scale = alt.Scale(domain=[0, facts.horizon], nice=False)
    return alt.X("x:Q", title="step", scale=scale, axis=alt.Axis(grid=False, tickCount=10))


def _colours(names: Sequence[str]) -> Chart:
    scale = alt.Scale(domain=list(names), range=[*COLOURS, *MORE_COLOURS][: len(names)])
    columns = 4 if len(names) > 4 else len(names)
    return alt.Color("name:N", scale=scale, legend=alt.Legend(columns=columns))


def _dashes(names: Sequence[str], *, solid: int = len(COLOURS)) -> Chart:
    return alt.Scale(
        domain=list(names), range=[[1, 0] if i < solid else [6, 3] for i in range(len(names))]
    )


def _change_rules(facts: Facts) -> list[Chart]:
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
    base = _chart(rows)
    x = alt.X("x:Q")
    rule = base.mark_rule(strokeDash=[4, 3], color="#444", strokeWidth=1.5)
    layers = [rule.encode(x, description="is:N")]
    if len(rows) > 4:
        return layers
    for side, shift in (("left", 5), ("right", -5)):
        part = _chart([row for row in rows if row["side"] == side])
        text = part.mark_text(align=side, dx=shift, y=8, fontSize=12, color="#222")
        layers.append(text.encode(x, text="label:N", description="is:N"))
    return layers


def _changes_in_words(facts: Facts) -> str:
    if not facts.changes:
        return ""
    told = [f"{change.text} at step {change.step + 1}" for change in facts.changes]
    if len(told) > 40:
        told = [*told[:40], f"and {len(told) - 40} more"]
    return f" Dashed rules: {'; '.join(told)}."


def _last_share(facts: Facts) -> Metric:
    return of_phase(MarketShare, facts.phases[-1])


def _static(facts: Facts, phase: Phase, agent: Agent) -> float | None:
    return facts.numbers.pooled(of_phase(StaticRank, phase), agent.seat).mean


def _order_in_words(facts: Facts, phase: Phase) -> str:
    tau, rho = (facts.numbers.pooled(of_phase(cls, phase)) for cls in (KendallTau, SpearmanRho))
    return f"Kendall tau {both(tau, PLAIN)}; Spearman rho {both(rho, PLAIN)}"


def _stacked(rows: list[Row]) -> list[Row]:
    """Labels of tied places below one another, so that each can be read."""
    ordered = sorted(rows, key=lambda row: row["rank"])
    return [
        {**row, "label": f"{row['name']}", "at": place + 1.0} for place, row in enumerate(ordered)
    ]
