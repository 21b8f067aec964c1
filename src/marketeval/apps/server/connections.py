"""Connections that may not be held open by sending slowly, and not without number."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_WORDS = b'{"detail":"too many connections"}'
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(_WORDS), _WORDS)
)
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"
    b"content-length: 0\r\n\r\n"
)
LARGEST_HEAD = 64 * 1024


def protocol(*, headers_within: float, most: int) -> type[asyncio.Protocol]:
    """The class of a connection whose request heads must be complete in time."""

    class Guarded(HttpToolsProtocol):  # type: ignore[misc]  # uvicorn is opaque here
        _deadline: asyncio.TimerHandle | None = None
        _head = 0  # bytes of a head that is not complete

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            if len(self.connections) > most:
                transport.write(_FULL)
                transport.close()
                return
            self._arm()

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            # The next request of a connection that was kept open begins.
            if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
                self._arm()
            super().data_received(data)
            if self._deadline is not None:
                self._head += len(data)
                if self._head > LARGEST_HEAD and not self.transport.is_closing():
                    self.transport.write(_TOO_LARGE)
                    self.transport.close()

        def on_headers_complete(self) -> None:
            self._disarm()
            super().on_headers_complete()

        def _arm(self) -> None:
            self._head = 0
            self._deadline = self.loop.call_later(headers_within, self._too_slow)

        def _disarm(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _too_slow(self) -> None:
            self._deadline = None
            if not self.transport.is_closing():
                self.transport.close()

    made: Any = Guarded  # any: uvicorn's own class is untyped here
    return made  # type: ignore[no-any-return]
