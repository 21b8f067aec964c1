"""`remote:http://HOST`: a seat behind a decision endpoint, in any language.

`POST /decide` takes a request as JSON (`actions.wire.request_json`) and returns
`{"action": {...}}`, or `{"failure": "reason"}`; `GET /health` answers 200 when it is ready. An
attempt that brings no answer is made again within the seat's limits.
"""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from marketeval.actions.wire import from_json, request_json
from marketeval.core.errors import ScenarioError, UsageError
from marketeval.core.market import Action, Failure, Request
from marketeval.llm.client import FinalError, TransientError

ATTEMPTS = 4
BACKOFF_S = 0.25
THREADS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """Sends each request to an endpoint and takes the action that it returns."""

    url: str
    timeout_s: float = 60.0
    backoff_s: float = BACKOFF_S
    immediate: bool = False
    deterministic: bool = False
    privileged: bool = False
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(THREADS, "remote"), repr=False, compare=False
    )

    async def act(self, request: Request) -> Action:
        """The endpoint's action, or a `Failure` with the reason."""
        body = json.dumps(request_json(request)).encode()
        loop = asyncio.get_running_loop()
        for attempt in range(ATTEMPTS):
            try:
                reply = await loop.run_in_executor(self._threads, self._post, body)
                return _action(request, reply)
            except FinalError as error:
                return Failure(error.reason)
            except TransientError as error:
                reason = error.reason
            await asyncio.sleep(self.backoff_s * 2**attempt if attempt + 1 < ATTEMPTS else 0.0)
        return Failure(reason)

    def check(self) -> None:
        """Whether the endpoint is there.

        Raises
        ------
        UsageError : it is not
        """
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=10.0):
                return
        except (OSError, ValueError) as error:
            said = getattr(error, "reason", error)
            raise UsageError(f"no decision endpoint at {self.url}/health: {said}") from None

    def _post(self, body: bytes) -> Any:  # any: what JSON holds
        asked = urllib.request.Request(
            f"{self.url}/decide", body, {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(asked, timeout=self.timeout_s) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError as error:
            if error.code in (408, 409, 425, 429) or error.code >= 500:
                raise TransientError(f"HTTP {error.code}") from None
            raise FinalError(f"HTTP {error.code}") from None
        except TimeoutError:
            raise TransientError(f"no answer within {self.timeout_s:g} s") from None
        except OSError:
            raise TransientError("connection failed") from None
        except ValueError:
            raise FinalError("unreadable response") from None


def remote_agent(url: str, *, timeout_s: float = 60.0, privileged: bool = False) -> Remote:
    """The seat of an endpoint's address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ScenarioError(f"expected remote:http://HOST, got 'remote:{url}'")
    return Remote(url=url.rstrip("/"), timeout_s=timeout_s, privileged=privileged)


def _action(request: Request, reply: Any) -> Action:  # any: what JSON holds
    if not isinstance(reply, dict) or not ({"action", "failure"} & set(reply)):
        return Failure("expected {'action': ...} or {'failure': ...}")
    if "failure" in reply:
        return Failure(str(reply["failure"]))
    try:
        return from_json(request.action, reply["action"])
    except ValueError as error:
        return Failure(f"unreadable action: {' '.join(str(error).split())}")
