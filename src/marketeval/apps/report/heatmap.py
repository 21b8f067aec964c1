"""The heat maps of a sweep: a picture per metric, its effects over the grid with intervals."""

from __future__ import annotations

import itertools
from html import escape
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import vl_convert

from marketeval.apps.report.marks import STYLE
from marketeval.experiments.run_directory import write_text
from marketeval.experiments.sweep import read_sweep

MOST = 60  # pictures in one page
CELL = 92  # pixels


def write_heatmap(folder: Path) -> Path:
    """Write SWEEP/heatmap.html, which opens without a network, and return its path."""
    told, effects = read_sweep(folder)
    keys = list(told["grid"])
    across, rest = keys[0], keys[1:]
    parts = [
        f"<h1>{escape(str(told['scenario']))}: {escape(' × '.join(keys))}</h1>",
        f"<p>Mean over seeds {escape(str(told['seeds']))}, with 95 % bootstrap intervals; "
        "differences from a control are paired by seed.</p>",
    ]
    series = effects.select("minus", "metric", "window", "subject").unique(maintain_order=True)
    for minus, metric, window, subject in itertools.islice(series.iter_rows(), MOST):
        mine = effects.filter(
            pl.col("minus") == minus,
            pl.col("metric") == metric,
            pl.col("window") == window,
            pl.col("subject").eq_missing(pl.lit(subject, pl.String)),
        )
        title = " ".join(filter(None, [metric, subject, f"minus {minus}" if minus else ""]))
        parts.append(f"<h2>{escape(title)}</h2>{_picture(mine, across, rest)}")
    if series.height > MOST:
        parts.append(f"<p>{series.height - MOST} more are in effects.parquet.</p>")
    page = "\n".join(parts)
    target = folder / "heatmap.html"
    write_text(
        target,
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>sweep</title>"
        "<style>body{font:15px sans-serif;margin:2em;max-width:70em}svg{max-width:100%;height:auto}"
        f"</style><body>{page}</body></html>\n",
    )
    return target


def _picture(effects: pl.DataFrame, across: str, rest: list[str]) -> str:
    """One metric as SVG; keys beyond the second stand in the rows' names."""
    rows = [
        {
            "x": one[across],
            "y": ", ".join(f"{key.rpartition('.')[2]} {one[key]}" for key in rest) or "all",
            "mean": one["mean"],
            "text": _number(one["mean"]),
            "interval": ""
            if one["low"] is None
            else f"{_number(one['low'])} to {_number(one['high'])}",
        }
        for one in effects.iter_rows(named=True)
    ]
    xs, ys = (list(dict.fromkeys(row[name] for row in rows)) for name in ("x", "y"))
    means = [row["mean"] for row in rows if row["mean"] is not None]
    diverging = bool(means) and min(means) < 0 < max(means)
    most = max((abs(one) for one in means), default=1.0) or 1.0
    scale = (
        alt.Scale(scheme="blueorange", domain=[-most, most])
        if diverging
        else alt.Scale(scheme="blues")
    )
    data = alt.Data(values=rows)  # type: ignore[no-untyped-call]  # altair's own
    base = alt.Chart(data).encode(
        x=alt.X("x:N", sort=xs, title=across, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("y:N", sort=ys, title=None),
    )
    halo: dict[str, Any] = {"stroke": "white", "strokeWidth": 3, "strokeOpacity": 0.8}
    chart = alt.layer(
        base.mark_rect().encode(color=alt.Color("mean:Q", scale=scale, legend=None)),
        *(
            base.mark_text(dy=dy, fontSize=size, **style).encode(text=f"{name}:N")
            for name, dy, size in (("text", -8, 14), ("interval", 10, 11))
            for style in (halo, {})
        ),
    ).properties(width=CELL * len(xs) * 1.3, height=max(48, 48 * len(ys)), config=STYLE)
    return str(vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[]))


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4g}"
