"""Where a command may write: said in one line before anything is done."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from marketeval.core.errors import UsageError


def check_target(path: Path, option: str, *, inputs: Iterable[Path] = ()) -> None:
    """Hold that a file can be made at `path`, which `option` named, and is none of the inputs.

    Raises
    ------
    UsageError : its folder is not there, it is a folder itself, or it is what is read
    """
    if not path.parent.is_dir():
        raise UsageError(f"expected {option} in a folder that is there; {path.parent} is not")
    if path.is_dir():
        raise UsageError(f"expected a file for {option}; {path} is a folder")
    for one in inputs:
        if _same(path, one):
            raise UsageError(f"{option} would overwrite {one}, which is read; choose another")


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are one file, by whatever names."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()
