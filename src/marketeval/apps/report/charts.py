"""The pictures of a run as Vega-Lite specifications, made with altair.

Every mark carries a description, which is its text for screen readers and the page's tooltip; it
begins with the name of the agent, so that the page can highlight one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from marketeval.apps.report.facts import Agent, Control, Facts, Phase, hhi_of, of_phase
from marketeval.apps.report.marks import (
    COLOURED,
    COLOURS,
    CONTROL,
    GREY,
    IS,
    MORE_COLOURS,
    NAME,
    RUN,
    SEPARATOR,
    STYLE,
    WIDTH,
    Chart,
    Row,
    Rows,
    band,
    change_rules,
    changes_in_words,
    colours,
    dashes,
    line,
    point_row,
    points,
    seed_spread,
    series_rows,
    steps_axis,
    targets,
)
from marketeval.apps.report.numbers import Numbers
from marketeval.apps.report.words import PERCENT, PLAIN, POINTS, both, number
from marketeval.metrics.base import Metric
from marketeval.metrics.ranking import KendallTau, SpearmanRho, StaticRank
from marketeval.metrics.share import MarketShare

MOST_POINTS = 36  # differences that one picture shows


@dataclass(frozen=True)
class Picture:
    """A chart with its file name, its title and what to say of it in words."""

    name: str
    title: str
    caption: str
    alt_text: str
    chart: Chart
    data: dict[str, list[Row]]
    agents: tuple[str, ...] = ()


def pictures(facts: Facts) -> list[Picture]:
    """All pictures of a run that its log allows."""
    found = [_shares(facts), _hhi(facts), _ranks(facts), _retention(facts)]
    found += [_effect(facts, control) for control in facts.controls]
    return [one for one in found if one is not None]


def specification(picture: Picture) -> dict[str, Any]:  # any: JSON
    """The Vega-Lite specification, in the house style."""
    found = dict(picture.chart.to_dict(validate=False))
    found["datasets"] = picture.data
    found["config"] = STYLE
    return found


def _shares(facts: Facts) -> Picture | None:
    series = facts.details.series(facts.share_series)
    if series.is_empty():
        return None
    agents = facts.ranked
    shown, others = agents[:COLOURED], agents[COLOURED:]
    names: dict[str | None, str] = {agent.seat: agent.name for agent in agents}
    rows = series_rows(series, facts, names, PERCENT)
    grey = {agent.name for agent in others}
    front = [row for row in rows if row["name"] not in grey]
    back = [row for row in rows if row["name"] in grey]
    colour = colours([agent.name for agent in shown])
    x, y = steps_axis(facts), alt.Y("mean:Q", title="market share, %", scale=alt.Scale(zero=True))
    data, layers = Rows(), []
    if back:
        layers.append(
            line(data, back, x, y, detail=alt.Detail("name:N")).mark_line(color=GREY, strokeWidth=1)
        )
    if len(facts.seeds) > 1:
        layers.append(band(data, front, x).encode(color=colour, description=NAME))
    dash = alt.StrokeDash("name:N", scale=dashes([a.name for a in shown]))
    layers.append(line(data, front, x, y, color=colour, strokeDash=dash))
    layers.append(targets(data, front, x, y, colour))
    layers += change_rules(data, facts)
    spread = (
        "Bands: 95% bootstrap interval of the mean over seeds."
        if len(facts.seeds) > 1
        else "One seed: no band."
    )
    rest = f" The {len(others)} smallest of {len(agents)} systems are grey." if others else ""
    caption = (
        f"Market share in windows of {facts.window} steps side by side, each drawn at its middle. "
        f"{spread}{rest}{changes_in_words(facts)}"
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
        alt.layer(*layers).properties(width=WIDTH, height=290),
        data.sets,
        tuple(agent.name for agent in shown),
    )


def _hhi(facts: Facts) -> Picture | None:
    series = facts.details.series(facts.hhi_series)
    if series.is_empty():
        return None
    lines = [("this run", facts.details)]
    lines += [(f"control: {one.name}", facts.series_of(one)) for one in facts.controls]
    lines = [(name, numbers) for name, numbers in lines if not _of(numbers, facts).is_empty()]
    names = [name for name, _ in lines]
    palette = [RUN, CONTROL, *COLOURS[2:5], *MORE_COLOURS][: len(names)]
    colour = alt.Color(
        "name:N",
        scale=alt.Scale(domain=names[: len(palette)], range=palette),
        legend=alt.Legend(columns=3) if len(names) > 1 else None,
    )
    dash = alt.StrokeDash("name:N", scale=dashes(names, solid=1))
    x = steps_axis(facts)
    y = alt.Y("mean:Q", title="HHI, points", scale=alt.Scale(zero=True))
    rows = [
        row
        for name, numbers in lines
        for row in series_rows(_of(numbers, facts), facts, {None: name}, POINTS)
    ]
    data, layers = Rows(), []
    spread = "One seed: no band."
    if len(facts.seeds) > 1:
        layers.append(
            band(data, seed_spread(facts), x, opacity=1).encode(color=alt.value("#eeeeee"))
        )
        layers.append(band(data, rows, x).encode(color=colour, description=NAME))
        spread = (
            "Coloured bands: 95% bootstrap interval of the mean over seeds. Grey: from the 5th to "
            "the 95th percentile of single seeds of this run."
        )
    layers.append(line(data, rows, x, y, color=colour, strokeDash=dash))
    layers.append(targets(data, rows, x, y, colour))
    layers += change_rules(data, facts)
    against = "" if len(names) > 1 else " No control was played: a rise is not yet an effect."
    values = "; ".join(
        f"{p.title} {both(facts.numbers.pooled(hhi_of(p)), POINTS)}" for p in facts.phases
    )
    return Picture(
        "hhi",
        "Concentration over time (HHI)",
        f"Herfindahl-Hirschman index in windows of {facts.window} steps, in points of 10,000 "
        f"(= monopoly); few interactions in a window raise it above that of a whole phase. "
        f"{spread}{against}{changes_in_words(facts)}",
        f"Lines of HHI over {facts.horizon} steps: {', '.join(names)}. By phase: {values}.",
        alt.layer(*layers).properties(width=WIDTH, height=250),
        data.sets,
        tuple(names),
    )


def _ranks(facts: Facts) -> Picture | None:
    phases = [p for p in facts.main_phases if any(_static(facts, p, a) for a in facts.standing(p))]
    if not phases:
        return None
    agents = facts.ranked
    colour = dict(zip((a.name for a in agents), [*COLOURS, *MORE_COLOURS], strict=False))
    data, panels, words = Rows(), [], []
    for phase in phases:
        standing = facts.standing(phase)
        rows = []
        for place, agent in enumerate(standing):
            static = _static(facts, phase, agent)
            if static is None:
                continue
            told = f"{agent.name}{SEPARATOR}static {number(static, (0, 1))}, market {place + 1}"
            its = colour.get(agent.name, GREY)
            for side, rank in (("static", static), ("market", place + 1.0)):
                rows.append({"side": side, "rank": rank, "name": agent.name, "is": told, "c": its})
        panels.append(_slope(data, facts, phase, rows))
        words.append(f"{phase.name}: {_order_in_words(facts, phase)}")
    return Picture(
        "static-rank-market-rank",
        "Static rank against market rank",
        "Left, the place by static F-score among the systems there; right, the place by mean "
        "market share. Correlations are means over seeds of each seed's own.",
        f"Slopes from static to market rank. {'. '.join(words)}.",
        alt.concat(*panels, columns=2, spacing=20) if len(panels) > 1 else panels[0],
        data.sets,
    )


def _slope(data: Rows, facts: Facts, phase: Phase, rows: list[Row]) -> Chart:
    count = len(facts.agents)
    x = alt.X(
        "side:N",
        sort=["static", "market"],
        axis=alt.Axis(title=None, labelAngle=0, orient="top", grid=False, domain=False),
        scale=alt.Scale(padding=0.02 if count > COLOURED else 0.05),
    )
    places = alt.Scale(domain=[count + 0.5, 0.5], nice=False)
    y = alt.Y("rank:Q", scale=places, axis=None)
    colour = alt.Color("c:N", scale=None)
    base = data.chart(rows)
    size = 12 if count <= COLOURED else 11
    label = {"fontSize": size, "limit": 105}
    left = data.chart(_stacked([row for row in rows if row["side"] == "static"]))
    right = data.chart([row for row in rows if row["side"] == "market"])
    title = [phase.title, *_order_in_words(facts, phase).split("; ")]
    return alt.layer(
        base.mark_line(strokeWidth=2).encode(
            x, y, detail=alt.Detail("name:N"), color=colour, description=IS
        ),
        base.mark_point(filled=True, size=50, opacity=1).encode(x, y, color=colour, description=IS),
        left.mark_text(align="right", dx=-8, **label).encode(
            x, alt.Y("at:Q", scale=places, axis=None), text=alt.Text("label:N"), description=IS
        ),
        right.mark_text(align="left", dx=8, **label).encode(
            x, y, text=alt.Text("name:N"), description=IS
        ),
    ).properties(
        width=alt.Step(70),
        height=max(180, (22 if count <= COLOURED else 16) * count),
        title=alt.Title(title[0], subtitle=title[1:]),
    )


def _retention(facts: Facts) -> Picture | None:
    data, rows = Rows(), []
    for agent in facts.ranked:
        value = facts.details.pooled(facts.retention, agent.seat)
        if value.mean is not None:
            rows.append(point_row(agent.name, agent.name, value, PERCENT))
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
        points(data, rows, "retention, %", zero=False),
        data.sets,
    )


def _effect(facts: Facts, control: Control) -> Picture | None:
    data, panels, told = Rows(), [], []
    hhi, shares = [], []
    several = len(facts.phases) > 1
    for phase in facts.phases:
        value = control.effect.pooled(hhi_of(phase))
        if value.mean is not None:
            hhi.append(
                point_row(f"HHI {phase.name}" if several else "HHI", "", value, POINTS, signed=True)
            )
            told.append(f"HHI {phase.name} {both(value, POINTS, signed=True)} points")
        for agent in facts.standing(phase) if phase in facts.main_phases else []:
            value = control.effect.pooled(of_phase(MarketShare, phase), agent.seat)
            if value.mean is None or value.mean == value.low == value.high == 0:
                continue
            row = f"{agent.name}, {phase.name}" if several else agent.name
            shares.append(point_row(row, agent.name, value, PERCENT, signed=True))
            told.append(f"share of {row} {both(value, PERCENT, signed=True)} points")
    rest = max(0, len(shares) - MOST_POINTS)
    if rest:
        shares = sorted(shares, key=lambda row: -abs(row["mean"]))[:MOST_POINTS]
    if hhi:
        panels.append(points(data, hhi, "difference in HHI, points", zero=True))
    if shares:
        panels.append(points(data, shares, "difference in share, percentage points", zero=True))
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
        "not tell the effect from none. Shares that are equal in every seed are left out"
        + (f", and so are the {rest} smallest differences." if rest else "."),
        f"Paired differences to the control: {'; '.join(told[:COLOURED])}.",
        alt.vconcat(*panels, spacing=20) if len(panels) > 1 else panels[0],
        data.sets,
    )


def _of(numbers: Numbers, facts: Facts) -> pl.DataFrame:
    return numbers.series(facts.hhi_series)


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
