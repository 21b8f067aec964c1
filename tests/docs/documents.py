"""Documents as scripts: their fenced blocks are files, Python and commands, played in order.

    ```python NAME    a file, written before anything is played; yaml, csv, toml alike
    ```python         run as a script
    ```console        commands after `$ marketeval`, each with what it prints to stdout

Output that ends with `...` is the beginning of what is printed; a command without output must end
well, and one whose output begins with `error:` must end with exit code 2.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from marketeval.apps.cli.main import run
from marketeval.testing.fake_endpoint import Body, FakeEndpoint

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
ENDPOINT = "http://127.0.0.1:8000/v1"  # where documents suppose a model
ELSEWHERE = (  # verbs are found in the package's folder; here in one of the document's own too
    "import sys; from marketeval.apps.cli import verbs; verbs.__path__.append('verbs'); "
    "from marketeval.apps.cli.main import main; main(sys.argv[1:])"
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the name after it, its text and the line of its first row."""

    language: str
    name: str
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """A command of a document, the output shown, and the line on which that begins."""

    text: str
    shown: tuple[str, ...]
    line: int


def blocks(document: Path) -> list[Block]:
    """The fenced blocks of a document."""
    text = document.read_text("utf-8")
    found = re.finditer(r"^```(\w*) ?(\S*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(*one.groups(), text.count("\n", 0, one.start(3))) for one in found]


def commands(block: Block) -> list[Command]:
    """The commands of a console block."""
    lines = block.text.splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith("$ ")]
    return [
        Command(lines[a][2:], tuple(lines[a + 1 : b]), block.line + a + 1)
        for a, b in zip(starts, [*starts[1:], len(lines)], strict=True)
    ]


def adds(body: Body) -> str:
    """A model that adds; asked to be quick, it is wrong beyond ten."""
    told = [str(message["content"]) for message in body["messages"]]
    total = sum(int(number) for number in re.findall(r"\d+", told[-1]))
    return str(min(total, 10) if "quick" in told[0] else total)


def play(document: Path, folder: Path) -> Iterator[tuple[Command, str]]:
    """Play a document in an empty folder; each command with what it printed."""
    if ENDPOINT not in document.read_text("utf-8"):
        yield from _play(document, folder, ENDPOINT)
        return
    with FakeEndpoint(reply=adds) as fake:
        yield from _play(document, folder, fake.url)
        assert fake.requests, f"{document.name}: nothing was asked"


def _play(document: Path, folder: Path, endpoint: str) -> Iterator[tuple[Command, str]]:
    """As `play`; what the document says of its endpoint is said of this one."""
    found = blocks(document)
    for block in found:
        if block.name:
            target = folder / block.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text.replace(ENDPOINT, endpoint), "utf-8")
    is_package = (folder / "pyproject.toml").exists()
    if is_package:
        _install(folder)
    for block in found:
        if block.language == "python" and not block.name:
            _python(["-c", block.text], folder, 0)
        if block.language == "console":
            for command in commands(block):
                yield command, _marketeval(command, folder, apart=is_package)


def _marketeval(command: Command, folder: Path, *, apart: bool) -> str:
    name, *arguments = shlex.split(command.text)
    assert name == "marketeval", command.text
    if arguments[0] == "run":
        arguments += ["--executor", "serial"]  # the same results, and no process to start
    expected = 2 if command.shown and command.shown[0].startswith("error:") else 0
    if apart:
        return _python(["-c", ELSEWHERE, *arguments], folder, expected)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    assert code == expected, f"{command.text}\n{err.getvalue()}"
    return err.getvalue() if expected else out.getvalue()


def _python(arguments: list[str], folder: Path, expected: int) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == expected, done.stderr
    return done.stderr if expected else done.stdout


def _install(folder: Path) -> None:
    """What installing a package leaves behind, as far as entry points are concerned."""
    import tomllib

    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    info = folder / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", "utf-8"
    )
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {place}" for name, place in points.items())])
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n\n".join(groups) + "\n", "utf-8")


def as_shown(command: Command, printed: str) -> tuple[str, ...]:
    """What was printed, cut to as many lines as the document shows."""
    lines = tuple(line.rstrip() for line in printed.rstrip("\n").splitlines())
    if command.shown and command.shown[-1] == "...":
        return (*lines[: len(command.shown) - 1], "...")
    return lines
