"""The connections to one endpoint: the official SDK's client and its aiohttp transport.

The SDK settles where and as whom a request goes: address, authorisation, its standing headers,
TLS and the pool of connections. The request itself goes straight over the transport's session,
since the SDK's way there (models of what we send, two more layers of request and response objects,
models of what comes back) takes six times as much processor time as the request: at 256 open calls
that alone is more than one core. Its own retries and logging stay out of the way, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marketeval.core.errors import UsageError

INSTALL = "pip install 'marketeval[llm]'"
PATH = "/chat/completions"


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionFailedError(Exception):
    """No HTTP response came; the text is the kind of failure, without address or secret."""


class Connection:
    """Open connections to one endpoint, in one event loop.

    Parameters
    ----------
    base_url : of the endpoint, such as `https://api.openai.com/v1`
    key : sent as the bearer; "" sends the word `none`, which endpoints without keys ignore
    headers : sent with every request, beside the SDK's own
    """

    def __init__(self, base_url: str, *, key: str, headers: Mapping[str, str]) -> None:
        try:
            from openai import AsyncOpenAI, DefaultAioHttpClient

            http: Any = DefaultAioHttpClient()  # any: the SDK is imported when it is needed
        except (ImportError, RuntimeError):
            raise UsageError(f"a model behind an endpoint needs the extra llm: {INSTALL}") from None
        from aiohttp import ClientError, ClientTimeout
        from multidict import CIMultiDict
        from yarl import URL

        self._sdk = AsyncOpenAI(
            base_url=base_url,
            api_key=key or "none",
            max_retries=0,
            http_client=http,
            default_headers=dict(headers) or None,
        )
        transport = http._transport
        self._session = transport.client = transport.get_client()  # closed with the SDK's client
        given = {**self._sdk.auth_headers, **self._sdk.default_headers}
        self._headers = CIMultiDict(
            (name, value) for name, value in given.items() if isinstance(value, str)
        )
        self._url = URL(str(self._sdk.base_url).rstrip("/") + PATH)
        self._forever = ClientTimeout()  # the caller bounds the whole attempt
        self._errors = ClientError

    async def post(self, body: Mapping[str, Any]) -> Reply:
        """One request (any: what JSON holds), and whatever the endpoint answers.

        Raises
        ------
        ConnectionFailedError : it answered nothing, or broke off
        """
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            async with self._session.post(
                self._url,
                data=data,
                headers=self._headers,
                allow_redirects=False,  # a redirected POST may lose its body, or its key a host
                timeout=self._forever,
            ) as response:
                return Reply(response.status, response.headers, await response.read())
        except (self._errors, OSError) as error:
            raise ConnectionFailedError(type(error).__name__) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()
