"""Prompts as data: files with a version in their name, known by their hash, filled in one pass."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from marketeval.core.errors import DataError, UnknownNameError


@dataclass(frozen=True)
class Prompt:
    """A template with places such as {question}; `name` carries the version."""

    name: str
    text: str

    @cached_property
    def hash(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of the text."""
        return hash_of(self.text)

    def fill(self, **values: str) -> str:
        """The text with every place filled; braces in the values stay as they are."""
        return re.sub(
            r"\{(\w+)\}", lambda found: values.get(found.group(1), found.group(0)), self.text
        )


def hash_of(text: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a prompt's text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def shipped() -> Sequence[str]:
    """The names of the prompts that come with the package."""
    folder = files("marketeval.agents") / "prompts"
    return sorted(one.name.removesuffix(".txt") for one in folder.iterdir())


def prompt(name: str, *, places: Sequence[str]) -> Prompt:
    """A shipped prompt by name, or one's own by the path of a .txt file.

    Raises
    ------
    UnknownNameError, DataError : there is none, or it lacks one of the places
    """
    if name.endswith(".txt"):
        path = Path(name)
        if not path.is_file():
            raise DataError(f"no prompt at {path}")
        found = Prompt(path.stem, path.read_text("utf-8"))
    else:
        if name not in shipped():
            raise UnknownNameError("prompt", name, shipped())
        source = files("marketeval.agents") / "prompts" / f"{name}.txt"
        found = Prompt(name, source.read_text("utf-8"))
    for place in places:
        if f"{{{place}}}" not in found.text:
            raise DataError(f"the prompt {name} lacks the place {{{place}}}")
    return found
