"""A metric of your own: windows, phases, notes and intervals come with it."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from marketeval.experiments.executors import Serial
from marketeval.experiments.runner import run
from marketeval.experiments.scenario import read_tree
from marketeval.metrics.base import METRICS, evaluate, metric, parse_metric
from marketeval.metrics.resampling import summarise
from marketeval.metrics.series import NOTHING, Block, Part, Series, divide


@metric
class LeaderShare(Series):
    """Share of the agent that was asked most, from 1/n to 1.

    max over agents of MS_a(t; w)
    """

    def measure(self, block: Block) -> Sequence[Part]:
        """One value per seed and window; undefined without any interaction."""
        most = block.counts.max(axis=-1)
        return [Part(divide(most, block.totals), [(block.empty, NOTHING)])]


METRICS.add("LeaderShare", LeaderShare)
with tempfile.TemporaryDirectory() as folder:
    tree = read_tree("late-entry-qwen3")
    done = run(tree, Path(folder) / "run", executor=Serial(), seeds=range(1, 11))
    asked = parse_metric("LeaderShare(window=50, mode=tumbling)")
    for row in summarise(evaluate(done, [asked])).iter_rows(named=True):
        print("{metric}  to step {step:3}  {mean:.3f} [{low:.3f}, {high:.3f}]".format(**row))
