"""Read the event log with polars: how often do users explore, and does it pay?"""

import tempfile
from pathlib import Path

import polars as pl

from marketeval.experiments.executors import Serial
from marketeval.experiments.runner import run
from marketeval.experiments.scenario import read_tree

with tempfile.TemporaryDirectory() as folder:
    tree = read_tree("late-entry-qwen3")
    done = run(tree, Path(folder) / "run", executor=Serial(), seeds=range(1, 6))
    seats = done.scan("generator").select("agent", "label")
    by_choice = (
        done.scan("interaction")
        .filter(pl.col("step") >= 100)
        .join(seats, on="agent")
        .group_by("label", "explored")
        .agg(asked=pl.len(), right=pl.col("score").mean())
        .sort("label", "explored")
        .collect()
    )
    for row in by_choice.iter_rows(named=True):
        how = "explored" if row["explored"] else "preferred"
        print(f"{row['label']:13}  {how:9}  asked {row['asked']:4}  right {row['right']:.2f}")
