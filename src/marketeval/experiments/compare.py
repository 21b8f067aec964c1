"""The difference between two runs, paired by seed: what a change really caused."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from marketeval.core.errors import UsageError
from marketeval.experiments.measured import measured
from marketeval.experiments.run_directory import RunDirectory
from marketeval.metrics.resampling import paired_effect


def compare(
    run: RunDirectory, control: RunDirectory, *, metrics: Sequence[str] | None = None
) -> pl.DataFrame:
    """Mean of value minus control value over the seeds both have, with its bootstrap interval.

    Without `metrics`, those that both runs computed, series left out. Columns as in
    `metrics.resampling.paired_effect`.
    """
    if not set(run.seeds()) & set(control.seeds()):
        raise UsageError(
            f"{run.path} has the seeds {run.manifest.seeds}, {control.path} has "
            f"{control.manifest.seeds}: expected some seeds in both, since effects are paired"
        )
    if metrics is None:
        mine, theirs = run.metrics(), control.metrics()
        mine, theirs = (one.filter(pl.col("step").is_null()) for one in (mine, theirs))
    else:
        mine, theirs = measured(run, metrics), measured(control, metrics)
    return paired_effect(mine, theirs)
