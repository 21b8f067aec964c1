"""A harness that asks the model inside this process: one HTTP call per turn, and no program.

The stock chat harness starts a Python process per turn. This one sends the conversation to the
rollout's interception server itself, with the secret it was given, so that the trace records the
same. A JSON schema (`SeatState.form`) goes to the endpoint where it takes one, and into the prompt
where it does not; failures that may pass are tried again here, since nothing below retries.
"""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from typing import Any, Literal

import aiohttp
import verifiers.v1 as vf
from pydantic import Field

TRANSIENT = (408, 409, 425, 429)  # and all from 500 on
REFUSALS = (400, 404, 415, 422)  # may be of the JSON schema
Form = dict[str, Any]  # any: a JSON schema


class SeatState(vf.State):
    """What the bridge and the harness tell each other during a rollout; no trace keeps it.

    `form` is the JSON schema of the turn to come, as strict endpoints want it; `rung` how the last
    turn was asked for it; `retries` the calls that had to be made again.
    """

    form: Form | None = None
    rung: Literal["schema", "prompt"] = "prompt"
    retries: int = 0


class SeatHarnessConfig(vf.HarnessConfig):
    """How the seats' model is asked.

    `structured`: `schema` sends JSON schemas to the endpoint, `prompt` writes them into the
    prompt, `auto` does the first until the endpoint refuses. `attempts` are those of one turn;
    waits double from `backoff_s` (seconds) up to `longest_wait_s`, with full jitter. `max_length`
    and `max_items` bound the strings and arrays of the schemas: small models fill whatever room
    they have.
    """

    structured: Literal["auto", "schema", "prompt"] = "auto"
    attempts: int = Field(8, ge=1)
    backoff_s: float = Field(0.5, ge=0)
    longest_wait_s: float = Field(30.0, ge=0)
    timeout_s: float = Field(900.0, gt=0)
    max_length: int | None = Field(None, ge=1)
    max_items: int | None = Field(None, ge=1)


class SeatHarness(vf.Harness[SeatHarnessConfig]):
    """Plain chat without tools, held open from turn to turn."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    def __init__(self, config: SeatHarnessConfig) -> None:
        super().__init__(config)
        self.takes_schemas = config.structured != "prompt"  # until an endpoint refuses one
        self._http: aiohttp.ClientSession | None = None
        self._users = 0

    async def session(self, *given: Any, **named: Any) -> SeatSession:  # any: as the base hands on
        """A conversation of its own for each rollout."""
        return SeatSession(self, *given, **named)

    def connect(self) -> aiohttp.ClientSession:
        """The connections that all sessions share; each user has to `disconnect`."""
        self._users += 1
        if self._http is None:
            self._http = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self.config.timeout_s),
                connector=aiohttp.TCPConnector(limit=0),  # the episode's gate is the limit
            )
        return self._http

    async def disconnect(self) -> None:
        """Close the connections once nobody uses them."""
        self._users -= 1
        if self._users == 0 and self._http is not None:
            http, self._http = self._http, None
            await http.close()

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """One turn on a prompt or a whole conversation, as if it were a program's run."""
        session = SeatSession(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data)
        try:
            return await session._run(None)
        finally:
            await session.close()


class SeatSession(vf.HarnessSession):
    """One rollout's conversation."""

    def __init__(self, harness: SeatHarness, *given: Any, **named: Any) -> None:  # any: as above
        super().__init__(harness, *given, **named)
        self._seats = harness
        self._talk: list[dict[str, Any]] = []  # any: messages as the wire has them
        self._http: aiohttp.ClientSession | None = None
        system, self._prompt = harness.resolve_prompt(self.data)
        if system:
            self._talk.append({"role": "system", "content": system})

    async def close(self) -> None:
        """Let go of the connections. Idempotent."""
        await super().close()
        if self._http is not None:
            self._http = None
            await self._seats.disconnect()

    async def _run(self, messages: vf.Messages | None) -> vf.ProgramResult:
        """Send what is new, keep the answer; raises what the rollout records as its failure."""
        new = self._prompt if messages is None else messages
        said = [vf.UserMessage(content=new)] if isinstance(new, str) else list(new or ())
        self._talk += [one.model_dump(exclude_none=True) for one in said]
        state = self.trace.state
        form = state.form if isinstance(state, SeatState) else None
        answer = await self._ask(form)
        self._talk.append(answer)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    async def _ask(self, form: Form | None) -> dict[str, Any]:  # any: a message
        """The model's message, in the endpoint's own structured form if it takes one."""
        if form is None:
            return await self._post({"messages": self._talk})
        refused = ""
        if self._seats.takes_schemas:
            try:
                self._note("schema")
                return await self._post({"messages": self._talk, "response_format": _format(form)})
            except _RefusedError as error:
                refused = str(error)
                if self._seats.config.structured == "schema":
                    raise RuntimeError(f"the endpoint refuses the JSON schema: {refused}") from None
        self._note("prompt")
        last = self._talk[-1]
        self._talk[-1] = {**last, "content": with_schema(last["content"], form)}
        answer = await self._post({"messages": self._talk})
        if refused:  # the schema it was, then, and not the messages
            self._seats.takes_schemas = False
        return answer

    def _note(self, rung: Literal["schema", "prompt"]) -> None:
        if isinstance(self.trace.state, SeatState):
            self.trace.state.rung = rung

    async def _post(self, body: dict[str, Any]) -> dict[str, Any]:  # any: JSON
        """One model call with its bounded retries.

        Under one idempotency key an attempt that had reached the model after all is not paid twice.
        """
        config = self._seats.config
        body["model"] = self.ctx.model
        payload = json.dumps(body).encode()
        key = uuid.uuid4().hex
        wait = config.backoff_s
        for attempt in range(1, config.attempts + 1):
            status, text = await self._once(payload, key)
            if status == 200:
                message: dict[str, Any] = json.loads(text)["choices"][0]["message"]  # any: JSON
                kept = {name: message.get(name) for name in ("role", "content")}
                return {**kept, "content": kept["content"] or ""}
            if not (status == 0 or status in TRANSIENT or status >= 500):
                break
            if attempt < config.attempts:
                if isinstance(self.trace.state, SeatState):
                    self.trace.state.retries += 1
                await asyncio.sleep(random.uniform(0.0, wait))
                wait = min(2 * wait, config.longest_wait_s)
        said = f"HTTP {status}: {' '.join(text.split())[:300]}" if status else text
        if "response_format" in body and status in REFUSALS:  # endpoints word the reason freely
            raise _RefusedError(said)
        raise RuntimeError(f"no answer after {attempt} attempts: {said}")

    async def _once(self, payload: bytes, key: str) -> tuple[int, str]:
        """The status and body of one attempt; status 0 where there was no answer at all."""
        if self._http is None:
            self._http = self._seats.connect()
        headers = {
            "Authorization": f"Bearer {self.secret}",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
        }
        url = f"{self.endpoint.rstrip('/')}/chat/completions"
        try:
            async with self._http.post(url, data=payload, headers=headers) as reply:
                return reply.status, await reply.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            return 0, f"{type(error).__name__}: {error}"


class _RefusedError(Exception):
    """The endpoint does not take a JSON schema."""


def with_schema(text: str, form: Form) -> str:
    """A message that states the form of its answer, for endpoints that take no schema."""
    return (
        f"{text}\n\nAnswer with one JSON value that fits this JSON schema, and with nothing "
        f"else:\n{json.dumps(form, sort_keys=True)}"
    )


def _format(form: Form) -> Form:
    return {
        "type": "json_schema",
        "json_schema": {"name": "action", "strict": True, "schema": form},
    }
