"""kill -9 at any moment, then resume: the log of an unbroken run, and nothing paid for twice."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from marketeval.testing.fake_endpoint import FakeEndpoint

PROGRAM = Path(__file__).with_name("asked_models.py")


def start(path: Path, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), str(path), url, "5"], stdout=subprocess.PIPE, text=True
    )


def count(path: Path) -> int:
    if not path.exists():
        return 0
    try:
        with sqlite3.connect(path) as file:
            return int(file.execute("SELECT count(*) FROM call").fetchone()[0])
    except sqlite3.Error:
        return 0  # killed before the tables were there


def kills(moments: int, tmp_path: Path) -> None:
    chance = random.Random(7)
    with FakeEndpoint(delay=0.01) as fake:
        unbroken = start(tmp_path / "unbroken.sqlite", fake.url)
        expected = unbroken.communicate()[0]
        whole = fake.requests
        assert expected.strip()
        assert whole == count(tmp_path / "unbroken.sqlite")
        for moment in range(moments):
            path = tmp_path / f"{moment}.sqlite"
            fake.requests = 0
            target = chance.randrange(1, whole)
            broken = start(path, fake.url)
            while fake.requests < target and broken.poll() is None:
                time.sleep(0.002)
            os.kill(broken.pid, signal.SIGKILL)
            broken.communicate()
            time.sleep(0.05)
            durable, sent = count(path), fake.requests
            resumed = start(path, fake.url)
            assert resumed.communicate()[0] == expected
            assert fake.requests - sent == whole - durable


def test_killed_twice_at_random_moments_a_run_ends_as_an_unbroken_one(tmp_path):
    kills(2, tmp_path)
