"""What a server is told when it starts, and how long it waits for whom."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from marketeval.markets.two_sided.switches import STRICT, Rules

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one server takes. Sizes in bytes, times in seconds, rates per second.

    `largest_note` bounds a document of `POST /logs/create`, which holds whole prompts. A rate of
    None is no limit; a client over its rate is answered 429.
    """

    largest_body: int = 256 * 1024
    largest_note: int = 4 * 1024 * 1024
    connections: int = 1024
    headers_within: float = 10.0
    body_within: float = 20.0
    idle: float = 75.0
    agent_rate: float | None = None
    rate: float | None = None
    longest_wait: float = 30.0
    pending: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One market and how it is served.

    `auth` is who may act: whoever names a registered agent (`header`, as the reference), or who
    holds its token (`tokens`); `suffixed` is the reference's older form, tokens and ids with a
    number. `clock` is `wall`, or `logical`: moved by the operator alone.
    """

    rules: Rules = STRICT
    auth: Literal["header", "tokens", "suffixed"] = "tokens"
    clock: Literal["wall", "logical"] = "wall"
    host: str = "127.0.0.1"
    port: int = 8080
    operator: str = ""
    registration: str = ""
    access_log: Path | Literal["-"] | None = None
    limits: Limits = Limits()
