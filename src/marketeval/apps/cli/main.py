"""The command line. Each verb is one file in `verbs/`; its `command` is the verb.

Data goes to stdout, progress and prose to stderr. Exit 0: done. Exit 2: the caller's mistake, told
in one line, nothing written. Exit 1: it failed on its way; what was finished stays readable.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import sys
from typing import Annotated

import typer

from marketeval.apps.cli import verbs
from marketeval.core.errors import MarketevalError, UsageError

Mistake: type[Exception] = typer.BadParameter.__mro__[
    1
]  # the usage error of the command-line parser
GOES_ON = {  # how a verb that was interrupted is continued
    "run": "; what was finished stays readable; a run goes on with --resume",
    "sweep": "; the cells that were finished stay; the same command goes on with the others",
}
ENOUGH = 400_000  # new objects before garbage is looked for: more than imports leave, which stay
BY_INTERRUPT = 130  # what the parser's library makes of an interrupt
ParserError: type[Exception] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="marketeval",
    help="Evaluate AI agents as participants in competitive markets.",
    epilog="First steps: marketeval run late-entry-qwen3, then open the report it names.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from marketeval import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


for _module in pkgutil.iter_modules(verbs.__path__):
    _verb = importlib.import_module(f"{verbs.__name__}.{_module.name}")
    app.command(_module.name.rstrip("_"))(_verb.command)


def main(arguments: list[str] | None = None) -> None:
    """Run one verb and leave with its exit code."""
    gc.set_threshold(ENOUGH)
    code = run(arguments)
    gc.freeze()  # nothing is gained by looking through all of it at the end
    sys.exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run one verb; the exit code. Without a word, the help."""
    try:
        arguments = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
        result = app(args=arguments, standalone_mode=False)
        sys.stdout.flush()
        if result == BY_INTERRUPT:
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except UsageError as error:
        return _fail(2, str(error))
    except MarketevalError as error:
        return _fail(1, str(error))
    except Mistake as error:
        return _fail(2, error.format_message())  # type: ignore[attr-defined]  # the parser's own
    except ParserError as error:
        return _fail(2, error.format_message())  # type: ignore[attr-defined]  # the parser's own
    except (KeyboardInterrupt, typer.Abort):
        return _fail(1, f"interrupted{GOES_ON.get(arguments[0] if arguments else '', '')}")
    except BrokenPipeError:  # the reader of stdout has gone, which is its right
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(1, f"{error.strerror or error}: {error.filename or ''}".rstrip(": "))
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        return _fail(
            1,
            f"{type(error).__name__}: {error} (not foreseen, so a fault of marketeval or a broken "
            "file; python -X dev -m marketeval shows where)",
        )


def _fail(code: int, message: str) -> int:
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    return code
