"""A seat of a market behind a held-open interaction of verifiers.

The first request opens the conversation: instructions as the system prompt, the briefing as the
first message. From then on the news is the message, so that nothing is said twice. Requests of one
seat wait for each other; seats are served at once, as many as the episode's gate lets through.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import verifiers.v1 as vf

from marketeval.adapters.verifiers.harness import (
    Form,
    SeatHarness,
    SeatHarnessConfig,
    SeatState,
    with_schema,
)
from marketeval.agents.llm_seat import reader, schema
from marketeval.core.errors import RunError
from marketeval.core.market import Action, Failure, Noted, Request
from marketeval.events.common import RUNGS
from marketeval.llm.structured import bounded, one_line, read_json, strict

ATTEMPTS = 3  # readings of one decision: the first reply and two nudges
HEALS = 1  # nudges after an empty reply, per decision


class SeatLostError(RunError):
    """A seat's model answers no more; the episode cannot go on, and says whose fault it was."""


class EmptySeatError(SeatLostError):
    """A seat's model replied with nothing, and with nothing again when it was asked anew."""


@dataclass
class Counters:
    """What a seat needed; `missing` holds the reason of each decision that could not be read."""

    decisions: int = 0
    turns: int = 0
    nudges: int = 0
    empty: int = 0
    healed: int = 0
    retries: int = 0
    missing: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Seat:
    """An agent whose `act` awaits a turn. `episode` tells in errors where it happened; `open`
    gives the interaction for a system prompt, entered by `enter` and left with the episode."""

    name: str
    episode: str
    open: Callable[[str], AbstractAsyncContextManager[vf.Interaction]]
    enter: Callable[[AbstractAsyncContextManager[vf.Interaction]], Awaitable[vf.Interaction]]
    harness: vf.Harness
    counters: Counters = field(default_factory=Counters)
    interaction: vf.Interaction | None = None
    immediate: bool = False
    deterministic: bool = False
    privileged: bool = False
    _rules: str = ""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def sit(self, instructions: str) -> None:
        """Open the interaction."""
        self._rules = instructions
        self.interaction = await self.enter(self.open(instructions))

    async def act(self, request: Request) -> Action:
        """The action in the model's reply; a `Failure` where no reply can be read.

        Raises
        ------
        SeatLostError : the model does not answer any more
        """
        async with self._lock:
            if self.interaction is None:
                await self.sit(request.instructions)
            text = self._message(request)
            return await self._decide(request, text)

    async def _decide(self, request: Request, text: str) -> Action:
        form, read = self._form(request), reader(request)
        self.counters.decisions += 1
        failures: list[str] = []
        made = len(self.calls)
        while True:
            reply = await self.reply(text, form)
            try:
                action = read(read_json(reply))
            except ValueError as error:
                failures.append(one_line(error))
            else:
                return Noted(action, [self._row(request, failures, made)])
            if len(failures) == ATTEMPTS:
                reason = f"missing: unreadable answer: {failures[-1]}"
                self.counters.missing.append(reason)
                return Noted(Failure(reason, len(failures)), [self._row(request, failures, made)])
            self.counters.nudges += 1
            text = (
                f"That could not be read: {failures[-1]}. Answer again, with one JSON value that "
                "fits the schema and nothing else."
            )

    def _form(self, request: Request) -> Form:
        asked = self.harness.config
        if not isinstance(asked, SeatHarnessConfig):
            return form_of(request)
        return bounded(form_of(request), max_length=asked.max_length, max_items=asked.max_items)

    def _message(self, request: Request) -> str:
        """The news, or the briefing where the conversation begins or the request has no news.

        Where the rules are not those of the system prompt, they come before it.
        """
        assert self.interaction is not None  # `act` has opened it
        begins = not self.counters.decisions
        told = request.briefing if begins or request.news is None else request.news
        if request.instructions == self._rules:
            return str(told)
        self._rules = request.instructions
        return f"{request.instructions}\n\n{told}"

    async def reply(self, text: str, form: Form | None = None) -> str:
        """A reply that is not empty; one nudge heals an empty one.

        Raises
        ------
        SeatLostError : the model does not answer any more
        """
        for heal in range(HEALS + 1):
            reply = await self._turn(text, form)
            if reply:
                self.counters.healed += heal
                return reply
            self.counters.empty += 1
            text = "Your reply was empty. " + (
                "Please answer." if form is None else "Answer with one JSON value that fits."
            )
        raise EmptySeatError(
            f"seat '{self.name}' of {self.episode}: the model's reply is empty, also after it was "
            "asked again; look at its token limit, or leave the episode to --resume"
        )

    async def _turn(self, text: str, form: Form | None) -> str:
        interaction = self.interaction
        assert interaction is not None  # as above
        state = interaction.trace.state
        if isinstance(self.harness, SeatHarness) and isinstance(state, SeatState):
            state.form = form
        elif form is not None:  # other harnesses pass no schema on
            text = with_schema(text, form)
        segment = await interaction.turn(text)
        self.counters.turns += 1
        if segment.terminated:
            error = interaction.trace.last_error
            why = error.message if error else f"stopped by {interaction.trace.stop_condition}"
            raise SeatLostError(f"seat '{self.name}' of {self.episode} answers no more: {why}")
        return str(segment.last_reply)

    def _row(
        self, request: Request, failures: Sequence[str], made: int
    ) -> tuple[str, dict[str, Any]]:
        """The event `structured` of a decision, from the calls made since (any: as logs take)."""
        usage = [one.usage for one in self.calls[made:] if one.usage is not None]
        return "structured", {
            "seat": request.seat,
            "decision": request.decision,
            "rung": RUNGS.index(self._rung),
            "unreadable": len(failures),
            "reason": "; ".join(failures),
            "call": "",  # conversations are known by their trace
            "input_tokens": sum(one.input_tokens for one in usage) if usage else -1,
            "output_tokens": sum(one.completion_tokens for one in usage) if usage else -1,
        }

    @property
    def calls(self) -> Sequence[vf.ModelCall]:
        """All model calls of this seat so far."""
        return self.interaction.trace.calls if self.interaction else ()

    @property
    def _rung(self) -> Literal["schema", "prompt"]:
        state = self.interaction.trace.state if self.interaction else None
        return state.rung if isinstance(state, SeatState) else "prompt"

    def told(self) -> dict[str, Any]:  # any: JSON
        """The counters, for the trace."""
        state = self.interaction.trace.state if self.interaction else None
        if isinstance(state, SeatState):
            self.counters.retries = state.retries
        return {"seat": self.name, "structured": self._rung, **asdict(self.counters)}


def form_of(request: Request) -> Form:
    """The JSON schema of the answer, as strict endpoints want it."""
    if request.schema is not None:
        return strict(schema(request))
    kind = request.action
    if kind not in _FORMS:
        _FORMS[kind] = strict(schema(request))
    return _FORMS[kind]


_FORMS: dict[type[Any], Form] = {}  # any: a type; each schema takes milliseconds to make
