"""Options of a seat: which there are, and whether their values are in range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marketeval.core.errors import ScenarioError, UnknownNameError


def only_options(seat: str, options: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse an option that a seat does not have (any: as the YAML held them)."""
    for name in options:
        if name not in known:
            raise UnknownNameError(f"option of seat '{seat}'", name, known)


def number(value: object, what: str, low: float, high: float) -> float:
    """A number within bounds, or one line that says what was expected."""
    try:
        found = float(str(value))
    except ValueError:
        found = float("nan")
    if not low <= found <= high:
        raise ScenarioError(f"{what}: expected a number from {low:g} to {high:g}, got {value!r}")
    return found
