"""The golden interactions, as the published package logged them and as an event log of ours."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl
from outcome_rule import F1

from marketeval.adapters.marketplace_eval import ReferenceProfile
from marketeval.core.log import EventLog
from marketeval.events.information import CHANGES, GRADES, KINDS, OK

GOLDEN = Path(__file__).parent / "golden"
GEMINI, QWEN, KIMI, OSS, DEEPSEEK, LLAMA, GROK = F1  # in the shipped order
LATE = {
    "qwen3_late": {QWEN: 100},
    "deepseek_late": {DEEPSEEK: 100},
    "small_pool": {QWEN: 20, DEEPSEEK: 20, GROK: 40},
}
PROFILES = (
    ReferenceProfile("ada", ((KIMI, 3.0), (GEMINI, 1.0), (QWEN, 5.0))),
    ReferenceProfile("ben", ((GEMINI, 1.0),)),
    ReferenceProfile("cy", ((OSS, 0.2), (KIMI, 0.2))),
)
NAMES = {"A": "correct", "B": "incorrect", "C": "not_attempted"}


def golden(experiment: str) -> list[tuple[int, pl.DataFrame]]:
    frame = pl.read_parquet(GOLDEN / "interactions.parquet").filter(experiment=experiment)
    return [(int(seed), rows) for (seed,), rows in frame.group_by("seed", maintain_order=True)]


def as_log(experiment: str, episodes: Iterable[tuple[int, pl.DataFrame]]) -> EventLog:
    """The same episodes as our market would have logged them; preferences are not part of it."""
    agents = sorted(F1)
    late = LATE[experiment]
    log = EventLog(KINDS)
    horizon, users = (60, 3) if experiment == "small_pool" else (200, 10)
    log.shared("market", horizon=horizon, users=users, users_per_step=5)
    log.shared(
        "generator",
        agent=list(range(7)),
        seat=agents,
        label=agents,
        position=[list(F1).index(name) for name in agents],
        entry_step=[late.get(name, 0) for name in agents],
        privileged=False,
    )
    log.shared(
        "question", question=list(range(500)), item=[str(i + 1) for i in range(500)], topic=0
    )
    for seed, rows in episodes:
        _episode(log, rows, late, seed)
    return log


def _episode(log: EventLog, rows: pl.DataFrame, late: dict[str, int], seed: int) -> None:
    agents = sorted(F1)
    log.begin(seed)
    for name, step in late.items():
        entry = {"change": CHANGES.index("entry"), "value": float("nan")}
        log.append("intervention", step=step, agent=agents.index(name), **entry)
    users = {"ada": 0, "ben": 1, "cy": 2} | {f"user_{i + 1}": i for i in range(10)}
    quality = (rows["score"] + 1) / 2
    log.append(
        "interaction",
        step=rows["t"].to_numpy(),
        slot=rows["tau"].to_numpy(),
        user=[users[name] for name in rows["user_id"]],
        question=[int(qid) - 1 for qid in rows["qid"]],
        topic=0,
        agent=[agents.index(name) for name in rows["generator_id"]],
        explored=False,
        score=quality.to_numpy(),
        grade=[GRADES.index(NAMES[grade]) for grade in rows["judge_grade"]],
        cost_usd=float("nan"),
        latency_s=float("nan"),
        signal=rows["score"].to_numpy(),
        utility=quality.to_numpy(),
        status=OK,
    )
    log.end()
