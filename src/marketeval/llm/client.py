"""Messages in, a completion out: the one port between an agent and any language model.

    CallError             a call without an answer (what an agent turns into a `Failure`)
    ├── TransientError        worth another try: 408, 409, 425, 429, 5xx, connection, silence
    └── FinalError            the same request would fail again
        ├── RefusedFormatError    a request for structured output was refused
        ├── OverlongError         prompt and answer do not fit into the model's context
        └── NonsenseError         answered, but never in the form asked for (`llm.structured`)
    StopError             the run has to stop here, resumably (a `core.errors.RunError`)

The text of a `CallError` is a `reason` fit for the event log: the same fault gives the same words,
so it holds no time, no id and no count of tries. What else is known stands in `detail`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from marketeval.core.errors import MarketevalError, RunError

Role = Literal["system", "user", "assistant"]
Schema = Mapping[str, Any]  # any: a JSON schema is a tree of anything
JSON_OBJECT: Schema = {}  # the schema that every object fits: "JSON mode"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How a model is asked; None leaves the endpoint's own default.

    Parameters
    ----------
    max_tokens : most tokens of the answer; what a call can cost at most follows from it
    reasoning_effort : low, medium, high, for models that take it
    system : a system message put before every conversation
    headers : further HTTP headers; a value `$NAME` is read from the environment when sent
    timeout_s : seconds after which one attempt counts as unanswered
    """

    temperature: float | None = None
    max_tokens: int = 512
    reasoning_effort: str | None = None
    system: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 120.0


DEFAULTS = Parameters()


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What a model answered; token counts are None where the endpoint reports none.

    `cached_tokens` are those of the input that the endpoint had read before.
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    finish: str = "stop"


class Model(Protocol):
    """One model behind one endpoint.

    `name` is how the endpoint calls the model; `endpoint` tells endpoints apart, in the cassette
    and in the limits, and holds no secret. `complete` makes one attempt and raises a `CallError`
    if it fails; a `schema` asks for JSON that fits it (`JSON_OBJECT`: any object).
    """

    @property
    def name(self) -> str: ...

    @property
    def endpoint(self) -> str: ...

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Schema | None = None,
        parameters: Parameters = DEFAULTS,
    ) -> Completion: ...

    async def close(self) -> None: ...


class CallError(MarketevalError):
    """A call that brought no answer; see the tree above."""

    def __init__(self, reason: str, *, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


class TransientError(CallError):
    """Another try may succeed.

    `retry_after_s` is what the endpoint asked for; `billed` says that the attempt may have been
    paid for although it brought nothing.
    """

    def __init__(
        self,
        reason: str,
        *,
        detail: str = "",
        retry_after_s: float | None = None,
        billed: bool = False,
    ) -> None:
        super().__init__(reason, detail=detail)
        self.retry_after_s = retry_after_s
        self.billed = billed


class FinalError(CallError):
    """The same request would fail again."""


class RefusedFormatError(FinalError):
    """The endpoint refused a request for structured output: that, or the request itself."""


class OverlongError(FinalError):
    """The request does not fit into the model's context; says nothing of the endpoint's health."""


class NonsenseError(FinalError):
    """An answer that could not be read, whatever was tried."""


class StopError(RunError):
    """The run stops here: a limit, too many failures in a row, or an interrupt. Resumable."""
