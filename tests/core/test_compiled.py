"""Kept machine code must not outlive the source it was made from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import marketeval


def test_a_changed_formula_in_another_file_is_compiled_anew(tmp_path: Path) -> None:
    package = tmp_path / "marketeval"
    shutil.copytree(
        Path(marketeval.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    inner, outer = package / "choice" / "inner_probe.py", package / "choice" / "outer_probe.py"
    outer.write_text(
        "from marketeval.choice.inner_probe import formula\n"
        "from marketeval.core.compiled import kernel\n\n\n"
        "@kernel\ndef probe(x):\n    return formula(x)\n"
    )
    template = (
        "from marketeval.core.compiled import inline\n\n\n@inline\ndef formula(x):\n    return {}\n"
    )

    def answer(formula: str) -> float:
        inner.write_text(template.format(formula))
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "from marketeval.choice.outer_probe import probe; print(probe(3.0))",
            ],
            env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout)

    assert answer("x + 1.0") == 4.0
    assert answer("x * 2.0") == 6.0
