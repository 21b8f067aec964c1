"""The calls that a cassette holds, read for those who want to see what was said."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marketeval.core.errors import DataError
from marketeval.llm.client import Message
from marketeval.llm.structured import call_name

COLUMNS = (
    "seat", "sample", "endpoint", "model", "request", "response", "reason", "input_tokens",
    "output_tokens", "latency_s", "attempts",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One call: what was sent, and what came back or why nothing did.

    `messages` are those of the conversation, without the `system` message of the seat's own;
    `parameters` and `schema` are the rest of the request as JSON (any: JSON).
    """

    seat: str
    sample: str
    endpoint: str
    model: str
    messages: Sequence[Message]
    system: str
    schema: Mapping[str, Any] | None
    parameters: Mapping[str, Any]
    response: str | None
    reason: str
    input_tokens: int | None
    output_tokens: int | None
    latency_s: float
    attempts: int

    @property
    def names(self) -> set[str]:
        """What it may go by in an event log: of a call that asks again, the name of the first."""
        ends = [place for place, one in enumerate(self.messages, 1) if one.role == "user"]
        return {call_name(self.sample, self.messages[:end]) for end in ends}


def read_calls(path: Path) -> Sequence[RecordedCall]:
    """All calls of a cassette, in the order in which they ended; none if there is no file.

    Raises
    ------
    DataError : the file is no cassette
    """
    if not path.is_file():
        return []
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
            rows = file.execute(f"SELECT {', '.join(COLUMNS)} FROM call ORDER BY ended").fetchall()
        return [_call(dict(zip(COLUMNS, row, strict=True))) for row in rows]
    except (sqlite3.Error, ValueError, KeyError) as error:
        raise DataError(f"{path} is no cassette: {error}") from None


def _call(row: dict[str, Any]) -> RecordedCall:  # any: column values
    request = json.loads(row.pop("request"))
    return RecordedCall(
        messages=[Message(role, text) for role, text in request["messages"]],
        system=request["system"],
        schema=request["schema"],
        parameters={
            name: request[name]
            for name in ("temperature", "max_tokens", "reasoning_effort")
            if request[name] is not None
        },
        **{**row, "reason": row["reason"] or ""},
    )
