"""Figures 3 to 7 of Market-Bench for a run of the supply-chain family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import polars as pl

from marketeval.apps.report.charts import Picture
from marketeval.apps.report.marks import (
    COLOURED,
    IS,
    NAME,
    SEPARATOR,
    WIDTH,
    Chart,
    Row,
    Rows,
    colours,
)
from marketeval.apps.report.retailers import BASES, INDICES, Told, index_text

NARROW = 250
_TITLES = {
    "NPM": "net profit margin",
    "Profit": "profit in the step",
    "Funds": "funds at its end",
    "OSI": "order stability (OSI)",
    "BidEfficiency": "bid efficiency",
    "FillRate": "fill rate",
}


def pictures(told: Told) -> list[Picture]:
    """All pictures of a run."""
    found = [
        _indices(told),
        _lines(
            told, "economic-outcomes", "Figure 4: economic outcomes", ("NPM", "Profit", "Funds")
        ),
        _lines(told, "operations", "Figure 5: operations", ("OSI", "BidEfficiency", "FillRate")),
        _similarity(told),
        _map(told),
    ]
    return [one for one in found if one is not None]


def _rows(series: pl.DataFrame, names: Mapping[str | None, str]) -> list[Row]:
    """Points of lines: step, name, mean and mean with and without a standard deviation."""
    rows = []
    for step, subject, mean, sd in series.select("step", "subject", "mean", "sd").iter_rows():
        if mean is None or subject not in names:
            continue
        name = names[subject]
        spread = sd or 0.0
        told = f"{name}{SEPARATOR}step {step}: {mean:,.4g}"
        rows.append(
            {"x": step, "name": name, "mean": mean, "low": mean - spread, "high": mean + spread,
             "is": told}
        )  # fmt: skip
    return rows


def _panel(data: Rows, rows: list[Row], title: str, colour: Chart, *, spread: bool) -> Chart:
    x = alt.X("x:Q", title="step", axis=alt.Axis(grid=False, tickMinStep=1, format="d"))
    y = alt.Y("mean:Q", title=title, scale=alt.Scale(zero=False))
    base = data.chart(rows)
    layers = []
    if spread:
        area = base.mark_area(opacity=0.12)
        layers.append(
            area.encode(x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=colour, description=NAME)
        )
    dots = base.mark_line(strokeWidth=2, point={"size": 30, "filled": True})
    layers.append(dots.encode(x, y, color=colour, description=IS))
    return alt.layer(*layers).properties(width=NARROW, height=190)


def _grid(panels: Sequence[Chart]) -> Chart:
    return alt.concat(*panels, columns=2)


def _indices(told: Told) -> Picture | None:
    names = {base: base.replace("_", " ") for base in BASES}
    data, panels = Rows(), []
    for index in INDICES:
        rows = [
            row
            for base in BASES
            for row in _rows(told.series(index_text(index, base)), {None: names[base]})
        ]
        if rows:
            panels.append(_panel(data, rows, index, colours(list(names.values())), spread=True))
    active = _rows(told.series("ActiveRatio(by=step)"), {None: "active ratio"})
    if not panels:
        return None
    panels.append(
        _panel(
            data, active, "active ratio", colours([*names.values(), "active ratio"]), spread=True
        )
    )
    return Picture(
        "indices",
        "Figure 3: inequality, concentration, participation",
        "Means over seeds with one standard deviation, over all seats at the start, each index on "
        "three bases: funds at the end of the step, revenue of the step, revenue so far.",
        f"Lines over {told.horizon} steps of {', '.join(INDICES)} and the active ratio.",
        _grid(panels),
        data.sets,
    )


def _shown(told: Told) -> dict[str | None, str]:
    """The seats that get a colour: the first by profit."""
    return {one.seat: told.name[one.seat] for one in told.standing[:COLOURED]}


def _lines(told: Told, name: str, title: str, metrics: Sequence[str]) -> Picture | None:
    shown = _shown(told)
    data, panels = Rows(), []
    colour = colours(list(shown.values()))
    for metric in metrics:
        rows = _rows(told.series(f"{metric}(by=step)"), shown)
        if rows:
            panels.append(_panel(data, rows, _TITLES[metric], colour, spread=False))
    if not panels:
        return None
    rest = len(told.shops) - len(shown)
    more = f" The {rest} retailers with the least profit are left out." if rest > 0 else ""
    return Picture(
        name,
        title,
        f"Means over seeds, by step.{more}",
        f"Lines of {', '.join(_TITLES[one] for one in metrics)} over {told.horizon} steps.",
        _grid(panels),
        data.sets,
        tuple(shown.values()),
    )


def _similarity(told: Told) -> Picture | None:
    shown = _shown(told)
    data, panels = Rows(), []
    colour = colours(list(shown.values()))
    texts = {f'MMS(tribe="{one}", by=step)': one for one in told.tribes}
    texts["MMS(by=step)"] = "weighted (MMS)"
    for text, tribe in texts.items():
        rows = _rows(told.series(text), shown)
        if rows:
            panels.append(_panel(data, rows, f"similarity, {tribe}", colour, spread=True))
    if not panels:
        return None
    return Picture(
        "slogan-similarity",
        "Figure 6: slogans against personas",
        "Cosine of each retailer's slogan with each tribe's persona and their weighted sum, means "
        f"over seeds with one standard deviation. Embedder: {told.embedder}.",
        f"Lines of slogan similarity over {told.horizon} steps for {len(shown)} retailers.",
        _grid(panels),
        data.sets,
        tuple(shown.values()),
    )


def _dots(names: Sequence[str]) -> Chart:
    """A colour per name, with filled circles in the legend."""
    colour = colours(names)
    colour.legend = alt.Legend(columns=4, symbolType="circle", symbolStrokeWidth=0, symbolSize=90)
    return colour


def _map(told: Told) -> Picture | None:
    """Principal components of the mean similarities to the tribes, one panel per step."""
    tables = [told.series(f'MMS(tribe="{one}", by=step)') for one in told.tribes]
    if len(tables) < 2 or any(one.is_empty() for one in tables):
        return None
    wide = tables[0].select("step", "subject")
    for place, one in enumerate(tables):
        wide = wide.join(
            one.select("step", "subject", pl.col("mean").alias(f"t{place}")), on=["step", "subject"]
        )
    wide = wide.drop_nulls()
    if wide.height < 3:
        return None
    points = wide.select(f"t{i}" for i in range(len(tables))).to_numpy()
    centred = points - points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes * np.sign(axes[np.arange(axes.shape[0]), np.abs(axes).argmax(axis=1)])[:, None]
    flat = centred @ axes[:2].T
    part = 100 * (sizes[:2] ** 2).sum() / max(float((sizes**2).sum()), 1e-300)
    shown = _shown(told)
    rows = [
        {"x": float(a), "mean": float(b), "step": step, "name": told.name[seat],
         "is": f"{told.name[seat]}{SEPARATOR}step {step}"}
        for (step, seat), (a, b) in zip(wide["step", "subject"].iter_rows(), flat, strict=True)
        if seat in shown
    ]  # fmt: skip
    data = Rows()
    chart = (
        data.chart(rows)
        .mark_point(filled=True, size=60, opacity=0.85)
        .encode(
            alt.X("x:Q", title="component 1"),
            alt.Y("mean:Q", title="component 2"),
            color=_dots(list(shown.values())),
            description=IS,
        )
        .properties(width=WIDTH // 3 - 20, height=140)
        .facet(facet=alt.Facet("step:O", title="step"), columns=3)
    )
    return Picture(
        "slogan-map",
        "Figure 7: where slogans go",
        "Principal components of the mean similarities to the tribes' personas, all steps in one "
        f"projection ({part:.0f}% of the variance). Points that draw together say alike things.",
        f"Scatter plots of slogans in two dimensions, one per step, {len(shown)} retailers.",
        chart,
        data.sets,
        tuple(shown.values()),
    )
