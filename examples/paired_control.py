"""A paired control by hand: the same seeds with and without the entrant, then the difference."""

import tempfile
from pathlib import Path

from marketeval.experiments.compare import compare
from marketeval.experiments.executors import Serial
from marketeval.experiments.runner import run
from marketeval.experiments.scenario import read_tree, with_overrides

# The two phases are named, since without an entrant the control would have only one.
phases = [
    {"name": "before", "start": 0, "stop": 100},
    {"name": "after", "start": 100, "stop": 200},
]
late = with_overrides(read_tree("late-entry-qwen3"), {"controls": {}, "phases": phases})
never = with_overrides(late, {"seats.qwen3": None})

with tempfile.TemporaryDirectory() as folder:
    entry = run(late, Path(folder) / "entry", executor=Serial(), seeds=range(1, 21))
    without = run(never, Path(folder) / "without", executor=Serial(), seeds=range(1, 21))
    asked = ["HHI(points=true, phase=before)", "HHI(points=true, phase=after)"]
    for row in compare(entry, without, metrics=asked).iter_rows(named=True):
        print("{window:6}  {mean:+7.1f} points [{low:+.1f}, {high:+.1f}]".format(**row))
