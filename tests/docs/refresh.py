"""Bring the outputs in documents and beside examples up to date: `python tests/docs/refresh.py`.

Look at the difference before committing it: an output that changed is a behaviour that changed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from documents import DOCUMENTS, EXAMPLES, as_shown, play

for example in EXAMPLES:
    done = subprocess.run([sys.executable, example], capture_output=True, check=True)
    example.with_suffix(".out").write_bytes(done.stdout)
    print(example.name)

for document in DOCUMENTS:
    lines = document.read_text("utf-8").splitlines()
    with tempfile.TemporaryDirectory() as folder:
        played = list(play(document, Path(folder)))
    for command, printed in reversed(played):
        if command.shown:
            lines[command.line : command.line + len(command.shown)] = as_shown(command, printed)
    document.write_text("\n".join(lines) + "\n", "utf-8")
    print(document.name)
