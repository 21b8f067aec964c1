"""The page in a real browser: it draws, asks the network for nothing, and reports no error."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from written_run import written

from marketeval.apps.report.page import write_report
from marketeval.experiments.executors import Serial
from marketeval.experiments.runner import run

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
BROWSERS_OWN = "not an origin"  # who asks, where it is the browser and not a page

pytestmark = pytest.mark.skipif(not BROWSER, reason="no chromium or chrome on this machine")


def opened(page: Path, profile: Path) -> tuple[str, str, set[str]]:
    """The document as the browser has it, its console, and the addresses it asked for."""
    record = profile / "network.json"
    done = subprocess.run(
        [
            BROWSER,
            *QUIET,
            f"--user-data-dir={profile}",
            "--enable-logging=stderr",
            f"--log-net-log={record}",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    told = record.read_text("utf-8", "replace")
    events = json.loads(told if told.rstrip().endswith("}") else told.rstrip().rstrip(",") + "]}")
    params = [event["params"] for event in events["events"] if "params" in event]
    asked = {
        str(one["url"])
        for one in params
        if "url" in one and one.get("initiator", BROWSERS_OWN) != BROWSERS_OWN
    }
    return done.stdout, console, asked


def test_a_page_that_asks_the_network_is_found_out(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<img src="http://127.0.0.1:9/seen.png">', "utf-8")
    _, _, asked = opened(page, tmp_path / "profile")
    assert asked == {"http://127.0.0.1:9/seen.png"}


def test_the_page_draws_without_network_or_error(tmp_path: Path) -> None:
    page = write_report([written(tmp_path / "run")])
    document, console, asked = opened(page, tmp_path / "profile")
    assert console == ""
    assert asked == set()
    assert len(re.findall(r'<svg class="picture"', document)) == 5
    # the script ran: marks know their agents, legends became buttons
    assert document.count('data-agent="Alpha"') > 8
    assert document.count('aria-pressed="false"') == 5  # three systems, and the run and its control
    assert "&lt;script&gt;alert" in document


RETAIL = {
    "name": "shops",
    "family": "supply_chain",
    "seats": {
        "a": {"agent": "heuristic:markup", "label": "<script>alert('A')</script>"},
        "b": {"agent": "heuristic:reserve", "options": {"slogan": "</svg><script>alert('B')"}},
        "c": "heuristic:slogan-matcher",
        "d": "heuristic:oracle",
    },
    "market": {"horizon": 3, "demand": {"buyers": 40}},
    "controls": {"blind": {"market.attention.sampler": "uniform"}},
}


def test_the_page_of_a_supply_chain_draws_without_network_or_error(tmp_path: Path) -> None:
    page = write_report([run(RETAIL, tmp_path / "run", executor=Serial(), seeds=[1, 2, 3])])
    document, console, asked = opened(page, tmp_path / "profile")
    assert console == ""
    assert asked == set()
    assert len(re.findall(r'<svg class="picture"', document)) == 5
    for number in range(3, 8):
        assert f"Figure {number}" in document
    for words in ("Leaderboard", "Stockout", "Against the control", "Rho"):
        assert words in document
    assert "&lt;script&gt;alert('A')" in document
    assert "<script>alert" not in document
    assert document.count('data-agent="d †"') > 5  # the script ran: marks know their retailers
