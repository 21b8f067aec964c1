"""Schemathesis plays every documented route with all kinds of requests: no answer is a 500."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from real_servers import ANN, BY_OPERATOR, OPERATOR, TACO, Served, as_agent


@pytest.mark.parametrize("rules", ["strict", pytest.param("compatible", marks=pytest.mark.slow)])
def test_no_documented_route_ever_fails(rules, tmp_path):
    with Served(
        str(tmp_path / "m.sqlite"), "--rules", rules, "--longest-wait", "0.01", "--agent-rate",
        "1e9", "--clock", "logical", **OPERATOR,
    ) as server:  # fmt: skip
        token = "token-of-the-fuzzer-1234"
        server.register(TACO)
        server.register(ANN, **as_agent(token))
        for who in (as_agent(token), BY_OPERATOR):
            done = subprocess.run(
                [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json",
                 "--checks", "not_a_server_error", "--max-examples", "15", "--seed", "7",
                 "--exclude-path", "/v1/events", "--phases", "examples,coverage,fuzzing",
                 "--generation-database", "none", "--no-color",
                 "-H", f"Authorization: {who['Authorization']}"],
                capture_output=True, text=True, timeout=500, check=False, cwd=tmp_path,
                env={**os.environ, "PYTHONUTF8": "1"},
            )  # fmt: skip
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
            assert "passed" in done.stdout
        assert server.ask("GET", "/health").status == 200
        assert not [line for line in server.errors if "Traceback" in line]
