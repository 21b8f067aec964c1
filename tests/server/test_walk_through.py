"""The document of the server does what it shows: curl, the client, and the web hook."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from real_servers import Served, as_agent, send, text, until

TEXT = (Path(__file__).parents[2] / "docs" / "server.md").read_text("utf-8")
ADDRESS = "http://127.0.0.1:8080"


def block(name: str) -> str:
    """The text of the fenced block with this name."""
    found = re.search(rf"^```\w+ {re.escape(name)}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert found, name
    return found.group(1)


def as_pattern(shown: str) -> str:
    return ".*".join(re.escape(part) for part in shown.split("..."))


def test_the_document_as_a_whole(tmp_path):
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    with Served("memory:") as server:
        lines = block("walk-through").splitlines()
        assert len(lines) == 18
        for command, shown in zip(lines[::2], lines[1::2], strict=True):
            assert command.startswith("$ curl ")
            words = command[2:].replace(ADDRESS, server.url)
            done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True)
            assert re.fullmatch(as_pattern(shown), done.stdout), done.stdout

        client = tmp_path / "client.py"
        client.write_text(block("client").replace(ADDRESS, server.url))
        done = subprocess.run(
            [sys.executable, client], capture_output=True, text=True, check=True, env=os.environ
        )
        assert done.stdout == "0 new messages\n"

        heard = []

        class Hook(BaseHTTPRequestHandler):
            def do_POST(self):
                heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        hook = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
        threading.Thread(target=hook.serve_forever, daemon=True).start()
        program = tmp_path / "hook.py"
        program.write_text(block("hook.py"))
        where = f"http://127.0.0.1:{hook.server_port}/mail"
        running = subprocess.Popen(
            [sys.executable, program, server.url, "business_1", "the-shops-own-token", where]
        )
        try:
            until(lambda: len(heard) == 3)  # Ann's question and payment, Bob's question
            message = send("customer_1", "business_1", text("and now?"))
            server.ask("POST", "/v1/actions", message, **as_agent("anns-very-own-token"))
            until(lambda: len(heard) == 4)
        finally:
            running.terminate()
            running.wait()
            hook.shutdown()
        assert heard[-1]["message"]["content"] == "and now?"
