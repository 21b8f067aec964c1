"""`marketeval serve`: from settings to a listening server, and to its orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from marketeval.apps.server.app import application
from marketeval.apps.server.connections import protocol
from marketeval.apps.server.host import Host
from marketeval.apps.server.layout import OTHERS, TABLES, Layout
from marketeval.apps.server.service import Service
from marketeval.apps.server.settings import LOOPBACK, Settings
from marketeval.core.errors import DataError, UsageError
from marketeval.markets.two_sided.state import State
from marketeval.stores.base import Journal
from marketeval.stores.memory import MemoryJournal
from marketeval.stores.sqlite import SqliteJournal

log = logging.getLogger("marketeval.server")


@dataclass(slots=True)
class Opened:
    """A market that is ready to be served."""

    service: Service
    where: str
    said: str
    layout: Layout | None = None


def journal(url: str, *, layout: str = "") -> tuple[Journal, str]:
    """The store that an address names, and how to speak of it.

    `memory:`, `sqlite:///FILE` or a plain file name, `postgresql://USER@HOST/NAME?schema=MARKET`.
    """
    if layout and layout != "reference":
        raise UsageError(f"expected --layout reference, got '{layout}'")
    scheme = url.partition(":")[0]
    if scheme in ("postgresql", "postgres") and not layout:
        from marketeval.stores.postgres import PostgresJournal

        store = PostgresJournal(url)
        return store, store.where
    if scheme in ("postgresql", "postgres", "memory") and layout:
        raise UsageError("--layout reference is a form of SQLite: give --database FILE")
    if url in ("memory", "memory:"):
        return MemoryJournal(), "memory"
    if re.match(r"[a-z0-9+]+://", url) and not url.startswith("sqlite://"):
        raise UsageError(
            f"--database {url.partition('//')[0]}//...: expected memory:, a file, sqlite:///FILE "
            "or postgresql://..."
        )
    path = Path(re.sub(r"^sqlite:(//)?(?=/)|^sqlite:(//)?", "", url).replace("//", "/", 1))
    second, others = (TABLES, OTHERS) if layout else ("", frozenset[str]())
    return SqliteJournal(path, second=second, others=others), str(path)


async def open_market(settings: Settings, database: str, *, layout: str = "") -> Opened:
    """Open the store, rebuild the state, and make the service."""
    store, where = journal(database, layout=layout)
    wanted = {
        "rules": json.dumps(settings.rules.model_dump(), sort_keys=True),
        "clock": settings.clock,
        "auth": settings.auth,
        "layout": layout or "none",
    }
    found = await store.open(wanted)
    try:
        check_about(found, wanted, where)
        mirror = Layout(store) if layout and isinstance(store, SqliteJournal) else None
        host = Host(
            State(rules=settings.rules),
            store,
            logical=settings.clock == "logical",
            pending=settings.limits.pending,
            second=mirror.statements if mirror else None,
            second_note=mirror.note if mirror else None,
        )
        said = await host.start()
    except BaseException:
        await store.close()
        raise
    return Opened(Service(host, settings), where, said, mirror)


def check_about(found: Mapping[str, str], wanted: Mapping[str, str], where: str) -> None:
    """Refuse to go on with a market under other rules than it began with."""
    for name, value in wanted.items():
        if found.get(name, value) != value:
            raise DataError(
                f"{where} holds a market with {name} {found[name]}, not {value}: serve it with the "
                "same, or choose another --database"
            )


def check_address(settings: Settings) -> None:
    """Refuse what would be open to strangers."""
    if settings.host in LOOPBACK:
        return
    if settings.auth != "tokens":
        raise UsageError(
            f"--host {settings.host}: only strict rules may be served beyond this machine, since "
            f"under {settings.rules.preset} anybody acts for anybody; use --rules strict"
        )
    if not settings.registration:
        raise UsageError(
            f"--host {settings.host}: beyond this machine registering needs a token; put one into "
            "the environment variable MARKETEVAL_REGISTRATION_TOKEN"
        )


def listening(settings: Settings) -> socket.socket:
    """The socket, bound before anything else is done."""
    kind = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    made = socket.socket(kind, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((settings.host, settings.port))
        made.listen(2048)
    except OSError as error:
        made.close()
        raise UsageError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}; choose "
            "another --port (0 takes a free one)"
        ) from None
    made.setblocking(False)
    return made


def serve(
    settings: Settings, database: str, *, layout: str = "", ready: Callable[[str, Opened], None]
) -> None:
    """Serve one market until a signal says stop; `ready` is told the address."""
    check_address(settings)
    _log_to_stderr()

    async def run() -> None:
        with contextlib.closing(listening(settings)) as place:
            opened = await open_market(settings, database, layout=layout)
            try:
                await _serve(opened, settings, place, ready)
            finally:
                await opened.service.host.stop()

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run())


async def _serve(
    opened: Opened,
    settings: Settings,
    place: socket.socket,
    ready: Callable[[str, Opened], None],
) -> None:
    limits = settings.limits
    config = uvicorn.Config(
        application(opened.service),
        http=protocol(headers_within=limits.headers_within, most=limits.connections),
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_keep_alive=int(limits.idle),
        timeout_graceful_shutdown=5,
    )
    server = _Server(config)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.should_exit = True
        opened.service.host.stopping.set()
        opened.service.host.ring_all()

    for one in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
            loop.add_signal_handler(one, stop)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    watching = loop.create_task(opened.layout.watch(opened.service)) if opened.layout else None
    ready(f"http://{host}:{place.getsockname()[1]}", opened)
    try:
        await server.serve(sockets=[place])
    finally:
        if watching is not None:
            watching.cancel()


class _Server(uvicorn.Server):  # type: ignore[misc]  # uvicorn is opaque here
    """A server that leaves signals to us."""

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]  # as the base class
        yield


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # where there is none, the standard loop does
        return None
    made: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return made


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    log.handlers, log.propagate = [handler], False
    log.setLevel(os.environ.get("MARKETEVAL_LOG", "WARNING"))
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
