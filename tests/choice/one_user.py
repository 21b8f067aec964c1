"""Ask one user many times from one unchanging state: the set-up of the choice tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from marketeval.choice import character as c
from marketeval.choice.preference import KINDS
from marketeval.choice.rules import BUILT_IN, RULES
from marketeval.choice.select import NOT_FORCED, choose
from marketeval.core.streams import Streams


def ask(
    rule: str,
    first: Sequence[float],
    second: Sequence[float] | None = None,
    *,
    learning: str = "drift",
    theta: float | None = None,
    times: int = 20_000,
    inertia: float = 0.0,
    portfolio: int = 1,
    popularity: float = 0.0,
    shares: Sequence[float] | None = None,
    last: int = -1,
    available: Sequence[bool] | None = None,
    tie_rank: Sequence[int] | None = None,
    keyed_ties: bool = False,
    forced: int = NOT_FORCED,
    seats: Sequence[str] | None = None,
    seed: int = 1,
    step: int = 0,
    kernel: Callable[..., tuple[np.ndarray, np.ndarray]] = choose,
) -> tuple[np.ndarray, np.ndarray]:
    """Whom the user asks in each of `times` slots of one step, and whether it explores."""
    agents = len(first)
    names = list(seats or "abcdefghijklmnop"[:agents])
    character = np.zeros(c.SIZE)
    character[c.RULE] = BUILT_IN.index(rule) if rule in BUILT_IN else 5
    character[c.THETA] = theta if theta is not None else RULES[rule].DEFAULT
    character[c.INERTIA], character[c.PORTFOLIO] = inertia, portfolio
    character[c.POPULARITY] = popularity
    character[c.LEARNING] = KINDS.index(learning)
    streams, zeros = Streams(seed), np.zeros(times, np.int64)
    return kernel(
        character[None, :],
        np.zeros(1, np.int64),
        zeros,
        zeros,
        np.arange(times),
        np.full(times, forced, np.int64),
        np.array([first], float),
        np.array([second if second is not None else np.zeros(agents)], float),
        np.array([last]),
        np.ones(agents, bool) if available is None else np.array(available, bool),
        np.zeros(agents) if shares is None else np.array(shares, float),
        np.arange(agents) if tie_rank is None else np.array(tie_rank, np.int64),
        keyed_ties,
        np.stack([streams.codes("choice", names), streams.codes("tie", names)]),
        np.array([streams[n].code for n in ("inertia", "explore", "portfolio")], np.uint64),
        step,
    )


def frequencies(chosen: np.ndarray, agents: int) -> np.ndarray:
    """The share of each agent among the choices."""
    return np.bincount(chosen, minlength=agents) / chosen.size


def agree(chosen: np.ndarray, expected: Sequence[float]) -> bool:
    """Whether every frequency lies within 4.5 binomial standard errors of its probability."""
    p = np.array(expected, float)
    error = np.sqrt(p * (1 - p) / chosen.size)
    return bool((abs(frequencies(chosen, p.size) - p) <= 4.5 * error + 1e-12).all())
