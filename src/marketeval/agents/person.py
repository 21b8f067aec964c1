"""`person`: somebody at the terminal fills the seat, one question at a time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from marketeval.actions.wire import from_json, to_json
from marketeval.core.market import Action, Failure, Request

TRIES = 3
_one_at_a_time: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Shows the request on stderr and reads the action as JSON, or `skip`, from the terminal."""

    read: Callable[[], str] = sys.stdin.readline
    out: TextIO = sys.stderr
    immediate: bool = False
    deterministic: bool = False
    privileged: bool = False
    may_be_left: bool = True  # an interrupt does not wait for an answer

    async def act(self, request: Request) -> Action:
        """The action that was typed; a `Failure` for `skip`, the end of input, or three misses."""
        loop = asyncio.get_running_loop()
        async with _one_at_a_time.setdefault(loop, asyncio.Lock()):
            self._show(request)
            for _ in range(TRIES):
                typed = (await _typed(self.read)).strip()
                if typed in ("", "skip"):
                    return Failure("skipped")
                try:
                    return from_json(request.action, json.loads(typed))
                except ValueError as error:
                    self._say(f"not understood: {error}\n> ")
        return Failure("not understood")

    def _show(self, request: Request) -> None:
        self._say(f"\n{request.seat}, step {request.step}: {request.decision}\n")
        for title, value in (
            ("rules", request.instructions),
            ("you know", request.briefing),
            ("new", None if request.news is request.briefing else request.news),
            ("to decide", dict(request.batch)),
        ):
            if value:
                self._say(f"{title}:\n{_words(value)}\n")
        fields = f"with {', '.join(getattr(request.action, '__annotations__', {}))}"
        form = fields if request.schema is None else "in the form that the rules show"
        self._say(f"answer as JSON {form}, or skip\n> ")

    def _say(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()


async def _typed(read: Callable[[], str]) -> str:
    """A line, read in a thread that nobody waits for when the run is interrupted."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()

    def took(typed: str, error: Exception | None) -> None:
        if line.done():
            return
        if error is None:
            line.set_result(typed)
        else:
            line.set_exception(error)

    def wait() -> None:
        typed, error = "", None
        try:
            typed = read()
        except Exception as caught:  # handed to whoever asked
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop has closed meanwhile
            loop.call_soon_threadsafe(took, typed, error)

    threading.Thread(target=wait, name="person", daemon=True).start()
    return await line


def _words(value: object) -> str:
    """Texts as they are, one per row of a batch; anything else as JSON."""
    if isinstance(value, str) or hasattr(value, "payload"):  # it has words of its own
        return str(value)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "\n\n".join(value)
    return json.dumps(to_json(value), indent=1)
