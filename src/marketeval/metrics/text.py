"""The text form of a metric, `HHI(window=10)`: written from a frozen value, and read back."""

from __future__ import annotations

import json
import re
from dataclasses import Field, fields
from functools import cache
from inspect import get_annotations
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from marketeval.core.errors import UsageError, near_miss

Value = int | float | bool | str
_PLAIN = re.compile(r"[^\s,()=\"'](?:[^,()=\"']*[^\s,()=\"'])?")
_ITEM = re.compile(r'\s*(?:([^\s=,"]+)\s*=\s*)?("(?:[^"\\]|\\.)*"|[^,"]*?)\s*(?:,|$)')


def text_form(value: object) -> str:
    """`Name(parameter=value, ...)`, its own parameters first.

    Parameters at their default are left out, save those that may go without a name: no table
    should hide which m a retention used.
    """
    parts = []
    for one in parameters(type(value)):
        given = getattr(value, one.name)
        if given != one.default or not one.kw_only:
            parts.append(f"{one.name}={_write(given)}")
    name = type(value).__name__
    return f"{name}({', '.join(parts)})" if parts else name


def parameters(cls: type) -> list[Field[Any]]:  # any: a field's type is known to the class alone
    """The parameters of a metric: those that may go without a name, its own, then the common."""
    found = [one for one in fields(cls) if one.init]
    own = get_annotations(cls)
    return sorted(found, key=lambda one: (bool(one.kw_only), one.name not in own))


def read_arguments(cls: type, name: str, text: str) -> dict[str, Value]:
    """The parameters in `window=10, mode=tumbling`, each as its declared type."""
    known = {one.name: one for one in parameters(cls)}
    nameless = [one.name for one in known.values() if not one.kw_only]
    hints = _hints(cls)
    given: dict[str, Value] = {}
    for place, (key, raw) in enumerate(_items(name, text)):
        if not key:
            if place >= len(nameless):
                raise UsageError(f"{name}: expected parameter=value, got '{raw}'; {_listed(known)}")
            key = nameless[place]
        if key not in known:
            near = near_miss(key, known)
            guess = f"; did you mean '{near}'?" if near else ";"
            raise UsageError(f"{name}: unknown parameter '{key}'{guess} {_listed(known)}")
        if key in given:
            raise UsageError(f"{name}: parameter '{key}' is given twice")
        given[key] = _read(f"{name}: {key}", hints[key], raw)
    return given


@cache
def _hints(cls: type) -> dict[str, Any]:  # any: types as values have no common type
    """The declared types of a metric's parameters: looking them up costs more than reading."""
    return get_type_hints(cls)


def _items(name: str, text: str) -> list[tuple[str, str]]:
    items, at = [], 0
    while text[at:].strip():
        found = _ITEM.match(text, at)
        if found is None or not found[2]:
            raise UsageError(f"{name}: expected parameter=value, got '{text[at:].strip()}'")
        items.append((found[1] or "", found[2]))
        at = found.end()
    return items


def _read(what: str, hint: Any, raw: str) -> Value:  # any: types as values have no common type
    if get_origin(hint) in (Union, UnionType):
        hint = next(one for one in get_args(hint) if one is not type(None))
    if get_origin(hint) is Literal:
        choices = [str(one) for one in get_args(hint)]
        if raw in choices:
            return raw
        near = near_miss(raw, choices)
        guess = f"; did you mean '{near}'?" if near else ""
        raise UsageError(f"{what} takes {' or '.join(choices)}, got '{raw}'{guess}")
    if hint is bool:
        if raw in ("true", "false"):
            return raw == "true"
        raise UsageError(f"{what} takes true or false, got '{raw}'")
    if hint is int:
        if re.fullmatch(r"[+-]?\d+", raw):
            return int(raw)
        raise UsageError(f"{what} takes a whole number, got '{raw}'")
    if hint is float:
        if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", raw):
            return float(raw)
        raise UsageError(f"{what} takes a number, got '{raw}'")
    return str(json.loads(raw)) if raw.startswith('"') else raw


def _write(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and not _PLAIN.fullmatch(value):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _listed(known: dict[str, Any]) -> str:  # any: as in `parameters`
    return f"known: {', '.join(known)}"
