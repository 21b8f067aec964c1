"""The metrics of a run, where its events were kept and where only its metrics were."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from marketeval.core.errors import DataError, UsageError
from marketeval.experiments.run_directory import RunDirectory
from marketeval.metrics.base import evaluate, parse_metric


def measured(run: RunDirectory, metrics: Sequence[str]) -> pl.DataFrame:
    """The tidy table of some metrics, from the events, or as stored where there are none.

    Raises UsageError for a metric that can be had from neither, naming those that are stored.
    """
    asked = list(dict.fromkeys(parse_metric(text) for text in metrics))
    if run.manifest.keep != "metrics":
        return evaluate(run, asked)
    texts, stored = [str(one) for one in asked], run.scenario.metrics
    lacking = [text for text in texts if text not in stored]
    if lacking:
        raise UsageError(
            f"{run.path} was run with --keep metrics and has no events to compute {lacking[0]} "
            f"from; stored: {', '.join(stored)}; for others run it with --keep log"
        )
    if run.manifest.status != "finished":
        raise DataError(
            f"{run.path} is not finished and has no metrics yet; continue it with run --resume"
        )
    table = run.metrics()
    return pl.concat([table.filter(metric=text) for text in texts])
