"""Small logs, written by hand: one string per step says who asked whom.

`pencil("a:A b:B", "a:A")` is two steps: users a and b ask agents A and B, then a asks A again.
A `+` or `-` after the agent is a score of 1 or 0 (default 1), `!` an outage, `.5` a score.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from marketeval.core.log import EventLog
from marketeval.events.information import CHANGES, KINDS, OK, OUTAGE, UNGRADED

Episode = Sequence[str]


def pencil(
    *steps: str,
    agents: str = "AB",
    entry: Mapping[str, int] | None = None,
    static: Mapping[str, float] | None = None,
    phases: Mapping[str, tuple[int, int]] | None = None,
    moves: Iterable[tuple[int, str, str]] = (),
    horizon: int | None = None,
    episodes: Mapping[int, Episode] | None = None,
) -> EventLog:
    """A log of one episode (seed 1), or of several given by seed."""
    log = EventLog(KINDS)
    every = episodes or {1: steps}
    for seed, story in every.items():
        log.begin(seed)
        count = len(agents)
        log.shared(
            "generator",
            agent=np.arange(count),
            seat=list(agents),
            label=[f"Agent {one}" for one in agents],
            position=np.arange(count),
            entry_step=np.array([(entry or {}).get(one, 0) for one in agents]),
            privileged=False,
        )
        if horizon is not None:
            log.shared("market", horizon=horizon, users=26, users_per_step=1)
        if static:
            log.shared(
                "static_score",
                agent=[agents.index(one) for one in static],
                items=0,
                correct=np.nan,
                attempted=np.nan,
                accuracy=np.nan,
                f_score=np.array(list(static.values()), np.float64),
            )
        if phases:
            log.shared(
                "phase",
                name=list(phases),
                start=[start for start, _ in phases.values()],
                stop=[stop for _, stop in phases.values()],
            )
        for step, agent, change in moves:
            log.append(
                "intervention",
                step=step,
                agent=agents.index(agent),
                change=CHANGES.index(change),
                value=np.nan,
            )
        for step, text in enumerate(story):
            for slot, word in enumerate(text.split()):
                _interaction(log, step, slot, word, agents)
        log.end()
    return log


def _interaction(log: EventLog, step: int, slot: int, word: str, agents: str) -> None:
    user, agent, mark = re.fullmatch(r"(\w):(\w)(\+|-|!|\.\d+)?", word).groups()
    score = {None: 1.0, "+": 1.0, "-": 0.0, "!": np.nan}.get(mark)
    score = float(mark) if score is None else score
    log.append(
        "interaction",
        step=step,
        slot=slot,
        user=ord(user) - ord("a"),
        question=0,
        topic=0,
        agent=agents.index(agent),
        explored=False,
        score=score,
        grade=UNGRADED,
        cost_usd=np.nan,
        latency_s=np.nan,
        signal=2 * score - 1,
        utility=score - 0.25,
        status=OUTAGE if mark == "!" else OK,
    )


def episodes(agents: str = "ABCD", users: str = "abc", steps: int = 8) -> SearchStrategy[list[str]]:
    """Any short story: up to `steps` steps of up to 4 interactions."""
    word = st.tuples(
        st.sampled_from(users), st.sampled_from(agents), st.sampled_from(["", "-", "!"])
    )
    step = st.lists(word.map(lambda one: f"{one[0]}:{one[1]}{one[2]}"), max_size=4).map(" ".join)
    return st.lists(step, min_size=1, max_size=steps)


def random_log(*, seeds: int, steps: int, agents: str, users: str = "abcdef") -> EventLog:
    """Several seeds of a market in which everybody asks at random, three a step."""
    draw = np.random.default_rng(5)
    return pencil(
        agents=agents,
        static={one: (place + 1) / 10 for place, one in enumerate(agents)},
        episodes={
            seed: [
                " ".join(
                    f"{draw.choice(list(users))}:{draw.choice(list(agents))}" for _ in range(3)
                )
                for _ in range(steps)
            ]
            for seed in range(1, seeds + 1)
        },
    )
