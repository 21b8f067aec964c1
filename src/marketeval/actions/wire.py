"""Requests and actions as JSON, for seats behind HTTP and for the cassette.

Numbers survive exactly; NaN and missing values are null; arrays are lists and become arrays of
their declared type again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel, TypeAdapter

from marketeval.core.market import Request

Json = Any  # any: what JSON holds


def to_json(value: object) -> Json:
    """A value as what `json.dumps` takes: dataclasses and models as objects, arrays as lists."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, np.ndarray):
        return to_json(value.tolist())
    if isinstance(value, np.generic):
        return to_json(value.item())
    if hasattr(value, "payload"):  # a briefing that says itself what of it is data
        return to_json(value.payload())
    if isinstance(value, BaseModel):
        return to_json(value.model_dump())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: to_json(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(one) for key, one in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((to_json(one) for one in value), key=str)
    if isinstance(value, Sequence):
        return [to_json(one) for one in value]
    raise TypeError(f"expected a value that JSON can hold, got {type(value).__name__}")


def from_json(kind: type[Any], data: Json) -> Any:
    """An action of a declared type from JSON (any: the type that was asked for).

    Its fields by name; or, where the type has a form of its own for answers (`read`), that form.

    Raises
    ------
    ValueError : it does not fit; the message says where
    """
    if not dataclasses.is_dataclass(kind):
        return TypeAdapter(kind).validate_python(data)
    if not isinstance(data, Mapping):
        raise ValueError(f"expected an object with the fields of {kind.__name__}, got {data!r:.60}")
    hints = typing.get_type_hints(kind)
    known = {one.name: one for one in dataclasses.fields(kind)}
    strange = sorted(set(data) - set(known))
    if strange and hasattr(kind, "read"):
        return kind.read(data)
    if strange:
        raise ValueError(f"unknown field '{strange[0]}'; known: {', '.join(known)}")
    values = {name: _typed(name, hints[name], value) for name, value in data.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{kind.__name__}: {error}") from None


def request_json(request: Request) -> dict[str, Json]:
    """A request as a decision endpoint is sent it (`agents.remote`).

    The schema is there only where the type of the action does not say it by itself.
    """
    return {
        "seat": request.seat,
        "decision": request.decision,
        "action": request.action.__name__,
        "seed": request.draws.seed,
        "step": request.step,
        "turn": request.turn,
        "instructions": request.instructions,
        "briefing": to_json(request.briefing),
        "news": to_json(request.news),
        "batch": to_json(request.batch),
        "privileged": to_json(request.privileged),
        **({} if request.schema is None else {"schema": to_json(request.schema)}),
    }


def request_hash(request: Request) -> str:
    """SHA-256 of the canonical JSON of a request: what was asked, to hold a recording against."""
    text = json.dumps(request_json(request), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _typed(name: str, hint: Any, value: Json) -> Any:  # any: a type annotation
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        options = [one for one in typing.get_args(hint) if one is not type(None)]
        if value is None:
            return None
        fitting = [one for one in options if not (one is str and not isinstance(value, str))]
        if isinstance(value, list):  # where a list will do, it stays as it was written
            lists = [one for one in fitting if typing.get_origin(one) is Sequence]
            fitting = lists or fitting
        return _typed(name, (fitting or options)[0], value)
    if typing.get_origin(hint) is np.ndarray:
        kind = np.dtype(typing.get_args(typing.get_args(hint)[1])[0])
        if kind.kind == "f":
            value = _nan_for_null(value)
        elif kind.kind == "i" and not _whole(value):
            raise ValueError(f"expected whole numbers in '{name}', got {value!r:.60}")
        try:
            return np.array(value, kind)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"expected numbers in '{name}', got {value!r:.60}") from None
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValueError as error:
        raise ValueError(f"{name}: {str(error).splitlines()[-1].strip()}") from None


def _whole(value: Json) -> bool:
    """Whether there are only whole numbers in lists of lists; numpy would cut off fractions."""
    if isinstance(value, list):
        return all(_whole(one) for one in value)
    return isinstance(value, (int, float)) and float(value).is_integer()


def _nan_for_null(value: Json) -> Json:
    if isinstance(value, list):
        return [_nan_for_null(one) for one in value]
    return float("nan") if value is None else value
