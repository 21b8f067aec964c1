"""Run a market from Python on a small table of recorded answers made here."""

import tempfile
from pathlib import Path

import polars as pl

from marketeval.experiments.executors import Serial
from marketeval.experiments.runner import run
from marketeval.experiments.scenario import read_tree, with_overrides
from marketeval.metrics.base import evaluate, parse_metric
from marketeval.metrics.resampling import summarise

# 40 questions; the large model is right on 3 of 4, the small one on 2 of 4 and on other ones.
answers = [
    {"item_id": f"q{number}", "model": model, "score": float(number % 4 in right)}
    for number in range(40)
    for model, right in (("large", (0, 1, 2)), ("small", (2, 3)))
]

with tempfile.TemporaryDirectory() as folder:
    table = Path(folder) / "answers.csv"
    pl.DataFrame(answers).write_csv(table)
    tree = with_overrides(read_tree("static-vs-market"), {"outcomes": [str(table)], "horizon": 50})
    done = run(tree, Path(folder) / "run", executor=Serial(), seeds=range(1, 11))
    asked = [parse_metric(text) for text in ("FairShare", "MarketShare", "Retention(10)")]
    for row in summarise(evaluate(done, asked)).iter_rows(named=True):
        print("{metric:15} {subject}  {mean:.3f} [{low:.3f}, {high:.3f}]".format(**row))
