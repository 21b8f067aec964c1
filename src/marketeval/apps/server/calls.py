"""A request and its answer as the routes see them, and the reading of what strangers send."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from pydantic import ValidationError
from pydantic_core import from_json, to_json

Json = Any  # any: parsed JSON
_ODD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
LARGEST_INT = 2**53
JSON_TYPE = (b"content-type", b"application/json")


class Stop(Exception):
    """A request that is answered at once with an error."""

    def __init__(self, status: int, detail: Json, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(str(detail))
        self.status, self.detail, self.headers = status, detail, dict(headers or {})

    def answer(self) -> Answer:
        """The answer."""
        return Answer(self.status, to_json({"detail": self.detail}), headers=self.headers)


@dataclass(slots=True)
class Answer:
    """Status, body (or a stream of it) and further headers."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None
    kind: str = "application/json"


@dataclass(slots=True)
class Call:
    """One request, its body read and within the limits."""

    method: str
    path: str
    query: bytes
    headers: Mapping[bytes, bytes]
    body: bytes = b""
    values: Mapping[str, str] = field(default_factory=dict)  # what the path holds
    agent: str = ""  # who it turned out to be, for the access log

    def header(self, name: bytes) -> str | None:
        """A header as text."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def json(self, *, plain_text: bool) -> Json:
        """The body. With `plain_text`, texts may not hold control characters.

        Raises Stop (422) for what is not JSON, nested too deeply, not finite, or not text.
        """
        try:
            tree = from_json(self.body, allow_inf_nan=False)
        except ValueError as error:
            raise wrong("json_invalid", ("body",), f"JSON decode error: {error}") from None
        fault = _fault(tree, plain_text)
        if fault:
            raise wrong("value_error", ("body",), fault)
        return tree

    def parameters(self) -> dict[str, str]:
        """The query's parameters; the last of a name counts."""
        try:
            return dict(parse_qsl(self.query.decode("ascii"), keep_blank_values=True))
        except (ValueError, UnicodeError) as error:
            raise wrong("value_error", ("query",), f"not readable: {error}") from None

    def integer(self, name: str, default: int | None, low: int) -> int | None:
        """A whole number from the query."""
        text = self.parameters().get(name)
        if text is None:
            return default
        if not re.fullmatch(r"[+-]?[0-9]{1,15}", text, re.ASCII):
            told = "Input should be a valid integer"
            raise wrong("int_parsing", ("query", name), told, text)
        if int(text) < low:
            told = f"Input should be greater than or equal to {low}"
            raise wrong("greater_than_equal", ("query", name), told, text)
        return int(text)

    def moment(self, name: str) -> datetime | None:
        """A moment with a zone from the query."""
        text = self.parameters().get(name)
        if text is None:
            return None
        try:
            moment = datetime.fromisoformat(text.replace(" ", "+"))  # a plus may come as a space
        except ValueError:
            told = "Input should be a timestamp with a zone"
            raise wrong("datetime_parsing", ("query", name), told, text) from None
        if moment.tzinfo is None:
            told = "Input should have timezone info"
            raise wrong("timezone_aware", ("query", name), told, text)
        return moment


def wrong(kind: str, where: tuple[str, ...], told: str, given: Json = None) -> Stop:
    """422 with the detail that FastAPI's clients know."""
    return Stop(422, [{"type": kind, "loc": list(where), "msg": told, "input": given}])


def not_fitting(error: ValidationError, where: tuple[str, ...]) -> Stop:
    """422 for what pydantic found."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return Stop(422, [{**one, "loc": [*where, *one["loc"]]} for one in found[:20]])


def member(tree: Json, name: str, kind: type, *, optional: bool = False) -> Json:
    """A member of the body's object; 422 if it is not there or of another type."""
    if not isinstance(tree, dict):
        told = "Input should be a valid dictionary or object to extract fields from"
        raise wrong("model_attributes_type", ("body",), told)
    if name not in tree:
        if optional:
            return kind()
        raise wrong("missing", ("body", name), "Field required")
    value = tree[name]
    if value is None and optional:
        return kind()
    if not isinstance(value, kind):
        what = "dict_type" if kind is dict else "string_type"
        told = "a valid dictionary" if kind is dict else "a valid string"
        raise wrong(what, ("body", name), f"Input should be {told}")
    return value


def ok(tree: Json) -> Answer:
    """200 with JSON."""
    return Answer(200, to_json(tree))


def _fault(tree: Json, plain_text: bool) -> str:
    """What cannot be stored or sent on in parsed JSON; empty if nothing."""
    stack = [tree]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            if plain_text and not one.isprintable() and _ODD.search(one):
                return "texts may not hold control characters"
        elif isinstance(one, float):
            if not math.isfinite(one):
                return "numbers must be finite"
        elif isinstance(one, bool) or one is None:
            continue
        elif isinstance(one, int):
            if not -LARGEST_INT <= one <= LARGEST_INT:
                return "whole numbers must be within 2**53"
        elif isinstance(one, list):
            stack.extend(one)
        else:
            stack.extend(one)
            stack.extend(one.values())
    return ""
