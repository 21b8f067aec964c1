"""A chat endpoint that answers as told: OpenAI-compatible, on the loopback, for tests.

    with FakeEndpoint(faults=every(3, status(500))) as fake:
        run("--seat", f"mine={fake.agent}")
    assert fake.requests == 30

A reply depends on the request alone, by its hash, unless a `reply` function is given; so a run
against it can be killed and resumed. Nothing is imported beyond the standard library.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

Body = Mapping[str, Any]  # any: a JSON request


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """How one request goes wrong.

    Parameters
    ----------
    status : an HTTP status instead of an answer, with `retry_after_s` and `message` if given
    text : another text than the reply; "" is an empty answer
    broken : a body that is no JSON
    hang : no answer at all until the endpoint closes
    drop : the connection closes without an answer
    """

    status: int = 0
    retry_after_s: float | None = None
    message: str = "told to fail"
    text: str | None = None
    broken: bool = False
    hang: bool = False
    drop: bool = False


Faults = Callable[[int, Body], Fault | None]  # number of the request (from 1) and its body


def status(
    code: int, *, retry_after_s: float | None = None, message: str = "told to fail"
) -> Fault:
    """A fault that answers with an HTTP status."""
    return Fault(status=code, retry_after_s=retry_after_s, message=message)


def every(count: int, fault: Fault) -> Faults:
    """One request in `count` goes wrong."""
    return lambda number, body: fault if number % count == 0 else None


def always(fault: Fault) -> Faults:
    """Every request goes wrong."""
    return lambda number, body: fault


def first(count: int, fault: Fault) -> Faults:
    """The first `count` requests go wrong."""
    return lambda number, body: fault if number <= count else None


def refusing(*forms: str) -> Faults:
    """An endpoint that does not know these types of response_format."""
    refusal = status(400, message="response_format is not supported by this model")
    return lambda number, body: (
        refusal if body.get("response_format", {}).get("type") in forms else None
    )


def hashed(body: Body) -> str:
    """The default reply: eight hexadecimal digits of the hash of the request."""
    canonical = json.dumps(body, sort_keys=True).encode()
    return hashlib.sha256(canonical).hexdigest()[:8]


@dataclass
class FakeEndpoint:
    """A server in a thread of its own; `with` starts and stops it.

    `delay` is seconds before each answer, or a function of the request. `seen` keeps the bodies
    that came, `headers` the headers of the last one.
    """

    reply: Callable[[Body], str] = hashed
    delay: float | Callable[[Body], float] = 0.0
    faults: Faults | None = None
    port: int = 0
    keep: bool = True
    requests: int = 0
    most_at_once: int = 0
    seen: list[Body] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def agent(self) -> str:
        """The name of an agent that calls this endpoint."""
        return f"{self.url}#fake"

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self.serve(ready.set))
        finally:
            self._loop.close()

    async def serve(self, ready: Callable[[], object] = lambda: None) -> None:
        """Serve until told to close; for a process of its own."""
        self._closing = asyncio.Event()
        self._at_once = 0
        self._connections: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=2048)
        self.port = server.sockets[0].getsockname()[1]
        ready()
        await self._closing.wait()
        server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._connection(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                lines = head.split("\r\n")
                headers = {
                    name.strip().lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in lines[1:] if line)
                }
                raw = await reader.readexactly(int(headers.get("content-length", 0)))
                self.headers = headers
                if lines[0].startswith("GET"):
                    _send(writer, 200, {"status": "ok", "data": [{"id": "fake"}]})
                elif not await self._answer(writer, json.loads(raw)):
                    return
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, body: Body) -> bool:
        """Answer one request; False if the connection is to close."""
        self.requests += 1
        if self.keep:
            self.seen.append(body)
        fault = self.faults(self.requests, body) if self.faults else None
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            delay = self.delay(body) if callable(self.delay) else self.delay
            if delay:
                await asyncio.sleep(delay)
            if fault is not None and fault.hang:
                await self._closing.wait()
                return False
        finally:
            self._at_once -= 1
        if fault is None:
            fault = Fault()
        if fault.drop:
            return False
        if fault.status:
            wait = {} if fault.retry_after_s is None else {"retry-after": f"{fault.retry_after_s}"}
            _send(writer, fault.status, {"error": {"message": fault.message}}, wait)
        elif fault.broken:
            _send(writer, 200, '{"id": "x", "choices": [{"message": {"content": ')
        else:
            text = self.reply(body) if fault.text is None else fault.text
            whole = completion(body, text)
            _send(writer, 200, streamed(whole) if body.get("stream") else whole)
        return True


def completion(body: Body, text: str) -> dict[str, Any]:
    """A chat completion as JSON; one token per word, and no id or time that could differ.

    More words than the request allows are cut off.
    """
    most = body.get("max_tokens") or body.get("max_completion_tokens")
    cut = most is not None and len(text.split()) > most
    text = " ".join(text.split(" ")[:most]) if cut else text
    prompt = sum(len(str(one["content"]).split()) for one in body.get("messages", ()))
    return {
        "id": "fake",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", "fake"),
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "length" if cut else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": len(text.split()),
            "total_tokens": prompt + len(text.split()),
        },
    }


def streamed(whole: Mapping[str, Any]) -> str:  # any: JSON
    """A chat completion as the events of a stream: all its text at once, its end, its usage."""
    common = {**whole, "object": "chat.completion.chunk", "usage": None}
    (choice,) = whole["choices"]
    parts = [
        {**common, "choices": [{"index": 0, "delta": choice["message"], "finish_reason": None}]},
        {
            **common,
            "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}],
        },
        {**common, "choices": [], "usage": whole["usage"]},
    ]
    return "".join(f"data: {one}\n\n" for one in (*map(json.dumps, parts), "[DONE]"))


def _send(
    writer: asyncio.StreamWriter,
    code: int,
    body: Mapping[str, Any] | str,
    headers: Mapping[str, str] | None = None,
) -> None:
    raw = (body if isinstance(body, str) else json.dumps(body)).encode()
    kind = "text/event-stream" if raw.startswith(b"data: ") else "application/json"
    lines = [
        f"HTTP/1.1 {code} Told",
        f"Content-Type: {kind}",
        f"Content-Length: {len(raw)}",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + raw)
