"""What `marketeval --help` costs over the help of a bare typer program.

    python benchmarks/startup.py [--runs 5]

CPU seconds (user and system) of whole processes, which take turns; medians of the runs, after one
that is not counted and fills the caches. The bare program has one command and, as this package
does, does without typer's colours, which would cost it more than its help.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

BARE = """
import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

@app.command()
def greet(name: str) -> None:
    typer.echo(name)

app()
"""
ALLOWED = 0.1


def seconds(line: Sequence[str]) -> float:
    """CPU seconds of one process with its start."""
    child = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, line)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.py"
        bare.write_text(BARE, "utf-8")
        lines = {
            "python alone": (sys.executable, "-c", "pass"),
            "bare typer program": (sys.executable, str(bare), "--help"),
            "marketeval": (sys.executable, "-m", "marketeval", "--help"),
        }
        times: dict[str, list[float]] = {name: [] for name in lines}
        for place in range(given.runs + 1):
            for name, line in lines.items():
                used = seconds(line)
                if place:
                    times[name].append(used)
    for name, values in times.items():
        print(f"{name:20}{statistics.median(values):8.3f} CPU seconds")
    pairs = list(zip(times["marketeval"], times["bare typer program"], strict=True))
    more = statistics.median(a - b for a, b in pairs)
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"marketeval over bare: {more:+.3f} s (allowed {ALLOWED} s), {ratio:.2f} times")


if __name__ == "__main__":
    main()
