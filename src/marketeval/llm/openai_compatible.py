"""Models behind OpenAI-compatible chat endpoints, on the official SDK (the extra `llm`).

Names: `openai:MODEL`, `openrouter:MODEL`, `http://HOST/v1#MODEL`. Keys come from environment
variables alone and are read when a call is sent. The SDK's own retries are off (`llm.limits`
retries, visibly).
"""

from __future__ import annotations

import asyncio
import json
import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from marketeval.core.errors import ScenarioError, UsageError
from marketeval.llm.client import (
    DEFAULTS,
    Completion,
    FinalError,
    Message,
    OverlongError,
    Parameters,
    RefusedFormatError,
    Schema,
    TransientError,
)
from marketeval.llm.connection import Connection, ConnectionFailedError, Reply

TRANSIENT = frozenset({408, 409, 425, 429})  # and every 5xx
REFUSALS = frozenset({400, 404, 415, 422})  # may mean the form asked for: endpoints word it freely
OVERLONG = (b"context_length_exceeded", b"exceed_context_size", b"maximum context length")
_SECRET_HEADERS = ("authorization", "api-key", "apikey", "token", "cookie", "secret")


@dataclass(frozen=True, slots=True)
class Provider:
    """A known endpoint; `limit` is how it calls the most tokens of an answer."""

    base_url: str
    variable: str
    limit: str = "max_tokens"


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", "max_completion_tokens"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
}
OWN_ENDPOINT_VARIABLE = "MARKETEVAL_API_KEY"  # optional, for http:// and https:// names


def provider_model(provider: str, name: str, *, key_variable: str = "") -> OpenAICompatible:
    """The model `name` at a known provider."""
    if not name:
        raise ScenarioError(f"expected {provider}:MODEL, got '{provider}:'")
    known = PROVIDERS[provider]
    return OpenAICompatible(
        name=name,
        endpoint=provider,
        base_url=known.base_url,
        variable=key_variable or known.variable,
        needs_key=True,
        limit=known.limit,
    )


def endpoint_model(url: str, *, key_variable: str = "") -> OpenAICompatible:
    """The model of `http://HOST/v1#MODEL`; a key is sent if the variable holds one."""
    base_url, _, name = url.partition("#")
    parts = urlsplit(base_url)
    if not name or not parts.hostname or parts.scheme not in ("http", "https"):
        raise ScenarioError(f"expected http://HOST/v1#MODEL, got '{_without_user(url)}'")
    if "@" in parts.netloc or parts.query:
        raise ScenarioError(
            f"the endpoint {_without_user(base_url)} holds a user or a query, which may be secret; "
            f"put a key into an environment variable ({OWN_ENDPOINT_VARIABLE}, or the option "
            "key_variable)"
        )
    return OpenAICompatible(
        name=name,
        endpoint=base_url.rstrip("/"),
        base_url=base_url.rstrip("/"),
        variable=key_variable or OWN_ENDPOINT_VARIABLE,
        needs_key=bool(key_variable),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAICompatible:
    """One model at one chat endpoint, with clients of its own per event loop."""

    name: str
    endpoint: str
    base_url: str
    variable: str
    needs_key: bool
    limit: str = "max_tokens"
    _connections: weakref.WeakKeyDictionary[
        asyncio.AbstractEventLoop, dict[tuple[tuple[str, str], ...], Connection]
    ] = field(default_factory=weakref.WeakKeyDictionary, repr=False, compare=False)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Schema | None = None,
        parameters: Parameters = DEFAULTS,
    ) -> Completion:
        """One attempt at one chat completion."""
        headers = {name: _header(name, value) for name, value in parameters.headers.items()}
        connection = self._connection(headers)
        hidden = [self._key(), *(headers[name] for name in headers if _is_secret(parameters, name))]
        try:
            async with asyncio.timeout(parameters.timeout_s):
                reply = await connection.post(
                    {
                        "model": self.name,
                        "messages": chat(messages, parameters),
                        **self._settings(schema, parameters),
                    }
                )
        except TimeoutError:
            reason = f"no answer within {parameters.timeout_s:g} s"
            raise TransientError(reason, billed=True) from None
        except ConnectionFailedError as error:
            raise TransientError("connection failed", detail=str(error), billed=True) from None
        if not 200 <= reply.status < 300:
            raise _of_status(reply, schema, hidden)
        try:
            answer = json.loads(reply.body)
        except ValueError as error:
            raise TransientError(
                "unreadable response", detail=type(error).__name__, billed=True
            ) from None
        return _completion(answer, hidden)

    async def close(self) -> None:
        """Close the connections of the running loop."""
        for connection in self._connections.pop(asyncio.get_running_loop(), {}).values():
            await connection.close()

    def _connection(self, headers: Mapping[str, str]) -> Connection:
        """The connections with some headers."""
        connections = self._connections.setdefault(asyncio.get_running_loop(), {})
        given = tuple(headers.items())
        if given not in connections:
            key = self._key()
            if self.needs_key and not key:
                raise UsageError(
                    f"{self.endpoint} needs a key: set the environment variable {self.variable}"
                )
            if not _fit(key):
                raise UsageError(
                    f"the environment variable {self.variable} holds no key: no header can carry "
                    "its characters; copy the key anew"
                )
            connections[given] = Connection(self.base_url, key=key, headers=headers)
        return connections[given]

    def _key(self) -> str:
        return os.environ.get(self.variable, "").strip()

    def _settings(self, schema: Schema | None, parameters: Parameters) -> dict[str, Any]:
        """The optional fields of the request (any: what JSON holds)."""
        settings: dict[str, Any] = {self.limit: parameters.max_tokens}
        if parameters.temperature is not None:
            settings["temperature"] = parameters.temperature
        if parameters.reasoning_effort is not None:
            settings["reasoning_effort"] = parameters.reasoning_effort
        if schema is not None and not schema:
            settings["response_format"] = {"type": "json_object"}
        elif schema is not None:
            settings["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "action", "strict": True, "schema": schema},
            }
        return settings


def chat(messages: Sequence[Message], parameters: Parameters) -> list[dict[str, str]]:
    """The messages as the endpoint is sent them, the seat's own system message first."""
    own = [Message("system", parameters.system)] if parameters.system else []
    return [{"role": one.role, "content": one.text} for one in (*own, *messages)]


def scrubbed(text: str, secrets: Sequence[str]) -> str:
    """A text without any of the secrets, should an endpoint have echoed one."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "***")
    return text


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse a secret written into a scenario."""
    for name, value in headers.items():
        if _secret_name(name) and not value.startswith("$"):
            raise ScenarioError(
                f"the header {name} may be a secret: expected $VARIABLE, the name of an "
                "environment variable that holds it"
            )


def _header(name: str, value: str) -> str:
    if not value.startswith("$"):
        return value
    found = os.environ.get(value[1:])
    if found is None:
        raise UsageError(f"the header {name} needs the environment variable {value[1:]}")
    if not _fit(found):
        raise UsageError(
            f"the environment variable {value[1:]} holds characters that the header {name} cannot "
            "carry"
        )
    return found


def _fit(value: str) -> bool:
    """Whether a header can carry it."""
    return value.isascii() and (value.isprintable() or not value)


def _is_secret(parameters: Parameters, name: str) -> bool:
    return parameters.headers[name].startswith("$") or _secret_name(name)


def _secret_name(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET_HEADERS)


def _completion(reply: Any, hidden: Sequence[str]) -> Completion:
    """What the endpoint's JSON says (any: endpoints leave out what they like)."""
    try:
        choice = reply["choices"][0]
        text = choice["message"].get("content") or ""
        finish = choice.get("finish_reason") or "stop"
    except (TypeError, LookupError, AttributeError):
        raise TransientError("unreadable response", detail="no choices", billed=True) from None
    if not isinstance(text, str) or not text.strip():
        if finish == "content_filter":
            raise FinalError("withheld by the endpoint's content filter")
        raise TransientError("empty answer", detail=f"finish reason {finish}", billed=True)
    usage = reply.get("usage") or {}
    return Completion(
        text=scrubbed(text, hidden),
        input_tokens=usage.get("prompt_tokens"),
        output_tokens=usage.get("completion_tokens"),
        cached_tokens=(usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
        finish=finish,
    )


def _of_status(
    reply: Reply, schema: Schema | None, hidden: Sequence[str]
) -> TransientError | FinalError:
    """An HTTP status as one of our errors."""
    reason = f"HTTP {reply.status}"
    detail = scrubbed(_said(reply), hidden)[:500]
    if reply.status in TRANSIENT or reply.status >= 500:
        return TransientError(reason, detail=detail, retry_after_s=_retry_after(reply.headers))
    if reply.status in REFUSALS and any(name in reply.body[:5000] for name in OVERLONG):
        return OverlongError(f"{reason}: longer than the model's context", detail=detail)
    if schema is not None and reply.status in REFUSALS:
        return RefusedFormatError(reason, detail=detail)
    return FinalError(reason, detail=detail)


def _said(reply: Reply) -> str:
    """What an endpoint says of a failure: its error's message, else the beginning of the body."""
    text = reply.body[:5000].decode(errors="replace")
    try:
        found = json.loads(reply.body)
        found = found.get("error", found) if isinstance(found, dict) else found
        found = found.get("message", found) if isinstance(found, dict) else found
        text = found if isinstance(found, str) else json.dumps(found)
    except ValueError:
        pass
    if 300 <= reply.status < 400:
        text = f"redirects to {_without_user(reply.headers.get('location', 'nowhere'))}; {text}"
    return " ".join(text.split())


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (seconds, or a date)."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) / unit)
        except ValueError:
            from email.utils import parsedate_to_datetime

            try:
                when = parsedate_to_datetime(value)
            except ValueError:
                continue
            from datetime import UTC, datetime

            return max(0.0, (when - datetime.now(UTC)).total_seconds())
    return None


def _without_user(url: str) -> str:
    head, at, tail = url.rpartition("@")
    return f"{head.partition('//')[0]}//***@{tail}" if at else url.partition("?")[0]
