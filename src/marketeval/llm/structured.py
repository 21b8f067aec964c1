"""Structured answers as a ladder: strict JSON schema, JSON mode, the schema in the prompt.

An endpoint that refuses a rung is asked on the next one, whatever it says of the reason: endpoints
word it freely. Refusals stand in the cassette, and so does the rung that was taken in the end, so
that nobody asks twice and a replay asks the same. An answer that cannot be read is
shown its error, at most twice. Which rung was used and what could not be read is handed to the
caller: it belongs in the event log.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from marketeval.llm.calls import Calls
from marketeval.llm.client import (
    DEFAULTS,
    JSON_OBJECT,
    CallError,
    Message,
    Model,
    NonsenseError,
    Parameters,
    RefusedFormatError,
    Schema,
)

T = TypeVar("T")
Rung = Literal["schema", "json", "prompt"]
RUNGS: Sequence[Rung] = ("schema", "json", "prompt")
NUDGES = 2
SENT_BACK = 400  # characters of an answer that was cut off: room is what it had too little of


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed(Generic[T]):
    """A value that was read, how it was asked for, and what had to be asked again.

    `cost_usd` sums over all calls that it took, None if any is unpriced; so do `latency_s` and the
    tokens, which are None if the endpoint states none. `name` is that of the first call.
    """

    value: T
    rung: Rung
    failures: tuple[str, ...]
    calls: int
    cost_usd: float | None
    latency_s: float
    name: str
    input_tokens: int | None
    output_tokens: int | None


class UnreadableError(NonsenseError):
    """No answer could be read; `failures` says why, one reason per answer, the rest as `Parsed`.

    `asked` is how many calls it took.
    """

    def __init__(
        self,
        rung: Rung,
        failures: Sequence[str],
        *,
        name: str = "",
        input_tokens: int | None = None,
        output_tokens: int | None = None,
    ) -> None:
        super().__init__(f"unreadable answer: {failures[-1]}")
        self.rung = rung
        self.failures = tuple(failures)
        self.asked = len(self.failures)
        self.name = name
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens


class UnansweredError(UnreadableError):
    """A call failed for good, the first or one that asked again; `reason` is that of the call."""

    def __init__(
        self, rung: Rung, failures: Sequence[str], error: CallError, *, name: str = ""
    ) -> None:
        super().__init__(rung, [*failures, error.reason], name=name)
        self.args = (error.reason,)
        self.failures = tuple(failures)  # `asked` counts the call that failed too
        self.reason, self.detail = error.reason, error.detail


async def ask(
    calls: Calls,
    model: Model,
    messages: Sequence[Message],
    schema: Schema,
    read: Callable[[Any], T],  # any: the JSON value of the answer
    *,
    seat: str,
    sample: str = "0",
    parameters: Parameters = DEFAULTS,
) -> Parsed[T]:
    """Ask for JSON that fits a schema and read it with `read`, which raises ValueError if it
    cannot.

    Raises
    ------
    UnreadableError : no answer could be read, nudged or not
    UnansweredError : a call failed for good
    StopError, ... : as `Calls.complete`
    """
    schema = strict(schema)
    told = json.dumps(schema, sort_keys=True)
    name = hashlib.sha256(told.encode()).hexdigest()[:16]
    known = calls.cassette.rung(model, name)
    start = RUNGS.index(known) if known in RUNGS else 0
    for rung in RUNGS[start:]:
        try:
            parsed: Parsed[T] | UnreadableError = await _on(
                rung, calls, model, messages, schema, told, read, seat, sample, parameters
            )
        except UnansweredError:
            raise
        except UnreadableError as error:
            parsed = error
        except RefusedFormatError:
            continue  # or the request itself: then the last rung fails, and no rung is kept
        if rung != RUNGS[start] and calls.cassette.mode == "record":
            await calls.cassette.keep_rung(model, name, rung)
        if isinstance(parsed, UnreadableError):
            raise parsed
        return parsed
    raise UnreadableError("prompt", ["no rung of structured output is left"])


def call_name(sample: str, messages: Sequence[Message]) -> str:
    """What a call goes by in the event log: a hash of its sample index and its messages.

    Unlike its key in the cassette it is the same whatever the address of the endpoint.
    """
    told = json.dumps([sample, *([one.role, one.text] for one in messages)], ensure_ascii=False)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def strict(schema: Schema) -> dict[str, Any]:
    """A schema as strict endpoints want it: every property required, no others, no defaults."""

    def tidy(node: Any) -> Any:  # any: a JSON schema is a tree of anything
        if isinstance(node, list):
            return [tidy(one) for one in node]
        if not isinstance(node, Mapping):
            return node
        kept = {key: tidy(value) for key, value in node.items() if key not in ("default", "title")}
        if isinstance(node.get("properties"), Mapping):
            named = {key: tidy(value) for key, value in node["properties"].items()}
            kept |= {"properties": named, "required": list(named), "additionalProperties": False}
        return kept

    tidied: dict[str, Any] = tidy(schema)
    return tidied


def bounded(
    schema: Schema, *, max_length: int | None = None, max_items: int | None = None
) -> dict[str, Any]:
    """A schema whose strings have at most so many characters and whose arrays so many items.

    Never fewer items than the schema itself wants. What endpoints do not enforce is a hint: an
    answer is read by its type, which knows no such bounds.
    """
    if max_length is None and max_items is None:
        return dict(schema)

    def tighten(node: Any) -> Any:  # any: a JSON schema is a tree of anything
        if isinstance(node, list):
            return [tighten(one) for one in node]
        if not isinstance(node, Mapping):
            return node
        kept = {key: tighten(value) for key, value in node.items()}
        if (
            max_length is not None
            and node.get("type") == "string"
            and not {"enum", "const"} & {*node}
        ):
            kept["maxLength"] = min(max_length, node.get("maxLength", max_length))
        if max_items is not None and node.get("type") == "array":
            most = min(max_items, node.get("maxItems", max_items))
            kept["maxItems"] = max(most, node.get("minItems", 0))
        return kept

    tightened: dict[str, Any] = tighten(schema)
    return tightened


def shown(messages: Sequence[Message], rung: Rung, schema: str) -> list[Message]:
    """The messages as a rung sends them: below the strict one, the schema stands in the prompt."""
    if rung == "schema" or not messages:
        return list(messages)
    *before, last = messages
    text = (
        f"{last.text}\n\nAnswer with one JSON value that fits this JSON schema, and with nothing "
        f"else:\n{schema}"
    )
    return [*before, Message(last.role, text)]


def read_json(text: str, *, cut_off: bool = False) -> Any:  # any: what JSON holds
    """The JSON value in an answer: the whole, the content of a code fence, or the first object.

    Of an answer that was cut off only what begins first counts: objects inside it are its parts.

    Raises
    ------
    ValueError : there is none; the message is fit to be shown to the model
    """
    fence = re.search(r"```(?:json)?\s*\n?(.*?)```", text, re.DOTALL)
    for candidate in (text, fence.group(1) if fence else ""):
        try:
            return json.loads(candidate)
        except ValueError:
            continue
    decoder = json.JSONDecoder()
    for start in re.finditer(r"[{\[]", text):
        try:
            return decoder.raw_decode(text, start.start())[0]
        except ValueError:
            if cut_off:
                break
    raise ValueError(f"no {'whole ' if cut_off else ''}JSON value in the answer")


async def _on(
    rung: Rung,
    calls: Calls,
    model: Model,
    messages: Sequence[Message],
    schema: Schema,
    told: str,
    read: Callable[[Any], T],
    seat: str,
    sample: str,
    parameters: Parameters,
) -> Parsed[T]:
    """Ask on one rung, nudging where the answer cannot be read."""
    asked = shown(messages, rung, told)
    form = {"schema": schema, "json": JSON_OBJECT, "prompt": None}[rung]
    failures: list[str] = []
    cost: float | None = 0.0
    latency, name = 0.0, call_name(sample, asked)
    inputs: int | None = 0
    outputs: int | None = 0
    while True:
        try:
            call = await calls.complete(
                model, asked, seat=seat, sample=sample, schema=form, parameters=parameters
            )
        except RefusedFormatError:
            raise
        except CallError as error:
            raise UnansweredError(rung, failures, error, name=name) from error
        cost = None if cost is None or call.cost_usd is None else cost + call.cost_usd
        latency += call.latency_s
        inputs = _sum(inputs, call.completion.input_tokens)
        outputs = _sum(outputs, call.completion.output_tokens)
        text = call.completion.text
        cut_off = call.completion.finish == "length"
        try:
            value = read(read_json(text, cut_off=cut_off))
        except ValueError as error:
            reason = one_line(error)
            if cut_off:
                reason = f"cut off at {parameters.max_tokens} tokens; {reason}"
                text = f"{text[:SENT_BACK]} ..."
            failures.append(reason)
            if len(failures) > NUDGES:
                raise UnreadableError(
                    rung, failures, name=name, input_tokens=inputs, output_tokens=outputs
                ) from None
            shorter = ", shorter" if cut_off else ""
            form_again = "the form asked for" if rung == "schema" else f"this JSON schema:\n{told}"
            nudge = (
                f"That could not be read: {reason}. Answer again{shorter}, with nothing but one "
                f"JSON value that fits {form_again}"
            )
            asked = [*asked, Message("assistant", text), Message("user", nudge)]
            continue
        return Parsed(
            value=value,
            rung=rung,
            failures=tuple(failures),
            calls=len(failures) + 1,
            cost_usd=cost,
            latency_s=latency,
            name=name,
            input_tokens=inputs,
            output_tokens=outputs,
        )


def _sum(so_far: int | None, more: int | None) -> int | None:
    return None if so_far is None or more is None else so_far + more


def one_line(error: ValueError) -> str:
    """The error in one line; of a pydantic error, the places and what is wrong with them."""
    listed = getattr(error, "errors", None)
    if callable(listed):
        parts = [
            f"{'.'.join(str(one) for one in item['loc']) or 'value'}: {item['msg']}"
            for item in listed()
        ]
        return "; ".join(parts[:5])
    return " ".join(str(error).split())
