"""What every seat behind a chat model shares: its model, how it is asked, and its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marketeval.core.errors import ScenarioError
from marketeval.core.market import Request
from marketeval.llm.calls import Call, Calls
from marketeval.llm.client import Message, Model, Parameters, Schema
from marketeval.llm.openai_compatible import check_headers
from marketeval.llm.registry import make_model

OPTIONS = (
    "temperature", "max_tokens", "reasoning_effort", "system", "headers", "timeout_s",
    "key_variable",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """One seat's line to its model; every call goes through the calls of the run."""

    seat: str
    model: Model
    calls: Calls
    parameters: Parameters

    async def ask(
        self, messages: Sequence[Message], *, sample: str, schema: Schema | None = None
    ) -> Call:
        """One call in this seat's name."""
        return await self.calls.complete(
            self.model,
            messages,
            seat=self.seat,
            sample=sample,
            schema=schema,
            parameters=self.parameters,
        )


def chat(
    text: str, *, seat: str, options: Mapping[str, Any], calls: Calls, max_tokens: int = 512
) -> Chat:
    """A seat's chat from the name of its model and its options (any: as the YAML held them)."""
    where = f"seat '{seat}', option"
    headers = options.get("headers") or {}
    if not isinstance(headers, Mapping):
        raise ScenarioError(f"{where} headers: expected names and values, got {headers!r}")
    headers = {str(name): str(value) for name, value in headers.items()}
    check_headers(headers)
    effort, system = options.get("reasoning_effort"), options.get("system") or ""
    parameters = Parameters(
        temperature=_number(options, "temperature", where, 0.0, 2.0),
        max_tokens=int(_number(options, "max_tokens", where, 1.0, 1e6) or max_tokens),
        reasoning_effort=None if effort is None else str(effort),
        system=str(system),
        headers=headers,
        timeout_s=_number(options, "timeout_s", where, 0.001, 1e5) or 120.0,
    )
    model = make_model(text, key_variable=str(options.get("key_variable") or ""))
    return Chat(seat=seat, model=model, calls=calls, parameters=parameters)


def pool_size(seat: str, options: Mapping[str, Any]) -> int:
    """The option `samples`: how many answers there are to a question (any: as above)."""
    samples = options.get("samples", 1)
    if not isinstance(samples, int) or isinstance(samples, bool) or samples < 1:
        raise ScenarioError(f"seat '{seat}', option samples: expected 1 or more, got {samples!r}")
    return samples


def members(request: Request, samples: int) -> list[str]:
    """The sample index of each row of a batch: a member of the pool of `samples` answers, drawn by
    the seat's own stream for (seed, step, slot); so all seeds share one pool."""
    slots = request.batch["slot"]
    if samples == 1:
        return ["0"] * len(slots)
    u = request.draws["sample"].uniform_at(request.step, slots)
    return [str(member) for member in (u * samples).astype(np.int64).tolist()]


def _number(
    options: Mapping[str, Any], name: str, where: str, low: float, high: float
) -> float | None:
    value = options.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ScenarioError(
            f"{where} {name}: expected a number from {low:g} to {high:g}, got {value!r}"
        )
    return float(value)
