"""A user behind a language model: told what it has experienced, it says whom it asks.

A wave's users are asked one by one, so that none sees another's memory, and what they choose does
not hang on how the market groups them. A user plays, so its sample index is SEED/TURN/SLOT.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from marketeval.actions.information import Choice
from marketeval.agents.chat import Chat
from marketeval.agents.llm_seat import structured_row
from marketeval.core.market import Noted, Request
from marketeval.llm.calls import all_of
from marketeval.llm.client import CallError, Message
from marketeval.llm.structured import UnreadableError, ask

Event = tuple[str, dict[str, Any]]  # any: as `EventLog.append` takes


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMUser:
    """Asks a model whom each user of a batch chooses."""

    chat: Chat
    immediate: bool = False
    deterministic: bool = False
    privileged: bool = False
    keeps_its_calls: bool = True

    async def act(self, request: Request) -> Noted:
        """The choices, noted with how they were asked for; -1 and why where none could be had."""
        rows = range(len(request.batch["slot"]))
        done = await all_of(self._choose(request, row) for row in rows)
        return Noted(
            Choice(
                agent=np.array([pick for pick, _, _ in done], np.int64),
                reason=[reason for _, reason, _ in done],
            ),
            [event for _, _, event in done if event is not None],
        )

    async def _choose(self, request: Request, row: int) -> tuple[int, str, Event | None]:
        """One user's choice, or why there is none, and how it was asked for."""
        chat, slot = self.chat, int(request.batch["slot"][row])
        try:
            parsed = await ask(
                chat.calls,
                chat.model,
                messages(request, row),
                schema(request, row),
                _reader(len(request.batch["options"][row])),
                seat=chat.seat,
                sample=f"{request.draws.seed}/{request.turn}/{slot}",
                parameters=chat.parameters,
            )
        except UnreadableError as error:
            return -1, error.reason, structured_row(request, error)
        except CallError as error:
            return -1, error.reason, None
        return parsed.value, "", structured_row(request, parsed)


def messages(request: Request, row: int) -> list[Message]:
    """What the model is sent for one user of a batch."""
    told = f"{request.briefing[row]}\n\nWhom do you ask? Answer with its number, as `agent`."
    return [Message("system", request.instructions), Message("user", told)]


def schema(request: Request, row: int) -> dict[str, Any]:
    """The JSON schema of one user's choice: the number of an option (any: a schema)."""
    numbers = list(range(len(request.batch["options"][row])))
    return {"type": "object", "properties": {"agent": {"type": "integer", "enum": numbers}}}


def _reader(options: int) -> Callable[[Any], int]:  # any: what JSON holds
    """Reads a choice among so many options; what is none is shown to the model."""

    def read(value: Any) -> int:  # any: as above
        pick = value.get("agent") if isinstance(value, dict) else None
        if not isinstance(pick, int) or isinstance(pick, bool) or not 0 <= pick < options:
            raise ValueError(
                f"agent: expected a number from 0 to {options - 1}, got {json.dumps(pick):.40}"
            )
        return pick

    return read
