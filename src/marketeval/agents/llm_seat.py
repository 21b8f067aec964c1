"""A seat behind a language model, whatever the market: the request as messages, the action as JSON.

The rules travel in the request, the schema comes from the type of the action, so this file knows no
market. A seat that plays is asked anew in each seed and turn: its sample index is SEED/TURN.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError

from marketeval.actions.wire import to_json
from marketeval.agents.chat import Chat
from marketeval.core.errors import ScenarioError
from marketeval.core.market import Action, Failure, Noted, Request
from marketeval.events.common import RUNGS
from marketeval.llm.client import CallError, Message
from marketeval.llm.structured import Parsed, UnreadableError, ask, bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMSeat:
    """Asks a model for an action that fits the request's schema.

    `max_length` and `max_items` bound the strings and arrays of the schema that the endpoint gets:
    small models fill whatever room they have.
    """

    chat: Chat
    max_length: int | None = None
    max_items: int | None = None
    immediate: bool = False
    deterministic: bool = False
    privileged: bool = False
    keeps_its_calls: bool = True

    async def act(self, request: Request) -> Action:
        """The model's action, noted with how it was asked; a `Failure` if none could be had."""
        chat = self.chat
        try:
            parsed = await ask(
                chat.calls,
                chat.model,
                messages(request),
                bounded(schema(request), max_length=self.max_length, max_items=self.max_items),
                reader(request),
                seat=chat.seat,
                sample=f"{request.draws.seed}/{request.turn}",
                parameters=chat.parameters,
            )
        except UnreadableError as error:
            return Noted(Failure(error.reason, error.asked), [structured_row(request, error)])
        except CallError as error:  # no form of the answer is taken
            return Failure(error.reason)
        return Noted(parsed.value, [structured_row(request, parsed)])


def messages(request: Request) -> list[Message]:
    """The request in words: the rules, then what the seat knows and what it has to decide.

    Where the rules say in which form to answer (they come with a schema), the briefing is the
    whole prompt, as its family wrote it. The briefing is all that a seat without memory needs, so
    beside it the news would say some things twice.
    """
    rules = [Message("system", request.instructions)] if request.instructions else []
    only = _words("What only you know", request.privileged)
    if request.schema is not None and _written(request.briefing):
        told = "\n\n".join(part for part in (str(request.briefing), only) if part)
        return [*rules, Message("user", told)]
    parts = [
        _words("What you know", request.briefing),
        _words("What is new", request.news if request.briefing is None else None),
        only,
        _words("What there is to decide, one row per decision", dict(request.batch)),
    ]
    told = "\n\n".join(part for part in parts if part) or "Decide."
    return [*rules, Message("user", f"{told}\n\nYour decision: {request.decision}.")]


def reader(request: Request) -> Callable[[Any], Action]:
    """What makes an action of the JSON value of an answer, or raises ValueError (any: JSON)."""
    read: Callable[[Any], Action] | None = getattr(request.action, "read", None)
    if request.schema is not None and read is not None:
        return read
    return _adapter(request.action).validate_python


def schema(request: Request) -> dict[str, Any]:
    """The JSON schema of the action that is asked for (any: a schema).

    Raises
    ------
    ScenarioError : the action has none
    """
    if request.schema is not None:
        return dict(request.schema)
    try:
        return _adapter(request.action).json_schema()
    except (PydanticSchemaGenerationError, TypeError):
        raise ScenarioError(
            f"a model cannot fill the seat '{request.seat}': its action "
            f"{request.action.__name__} has no JSON schema"
        ) from None


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:  # any: the type that a request names
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}  # any: as above; each takes milliseconds to make


def _words(title: str, value: object) -> str:
    if value is None or value == {}:
        return ""
    text = str(value) if _written(value) else json.dumps(to_json(value), ensure_ascii=False)
    return f"{title}:\n{text}"


def _written(value: object) -> bool:
    """Whether it has words of its own."""
    return isinstance(value, str) or hasattr(value, "payload")


def structured_row(
    request: Request, asked: Parsed[Any] | UnreadableError
) -> tuple[str, dict[str, Any]]:
    """The event `structured` of a request (any: as `EventLog.append` takes)."""
    return "structured", {
        "seat": request.seat,
        "decision": request.decision,
        "rung": RUNGS.index(asked.rung),
        "unreadable": len(asked.failures),
        "reason": "; ".join(asked.failures),
        "call": asked.name,
        "input_tokens": -1 if asked.input_tokens is None else asked.input_tokens,
        "output_tokens": -1 if asked.output_tokens is None else asked.output_tokens,
    }
