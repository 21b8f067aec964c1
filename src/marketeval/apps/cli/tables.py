"""Tables on stdout: aligned text, CSV or JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from marketeval.experiments.run_directory import RunDirectory

FORMATS = ("table", "csv", "json")


def show(table: pl.DataFrame, format_: str) -> str:
    """A data frame in one of FORMATS, without a final newline."""
    if format_ == "csv":
        return table.write_csv().rstrip("\n")
    if format_ == "json":
        return table.write_json()
    shown = table.drop([name for name in table.columns if table[name].null_count() == table.height])
    return aligned(shown.columns, [[_cell(one) for one in row] for row in shown.iter_rows()])


def metric_tables(run: RunDirectory) -> str:
    """The means of a run's metrics, and what differs from each control, with intervals."""
    from marketeval.experiments.compare import compare
    from marketeval.metrics.resampling import summarise

    parts = [show(_pooled(summarise(run.metrics())), "table")]
    for name, control in run.controls.items():
        parts += [f"minus {name}, paired by seed", show(_pooled(compare(run, control)), "table")]
    return "\n\n".join(parts)


def _pooled(summary: pl.DataFrame) -> pl.DataFrame:
    """Without series: they are for pictures."""
    import polars as pl

    return summary.filter(pl.col("step").is_null())


def aligned(head: list[str], rows: list[list[str]]) -> str:
    """Columns padded to their widest cell, numbers to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    right = [
        all(
            row[place].replace("-", "").replace(".", "").isdigit() or not row[place] for row in rows
        )
        for place in range(len(head))
    ]
    lines = []
    for row in (head, *rows):
        cells = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4f}"
    return str(value)
