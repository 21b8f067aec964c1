"""Our market with the reference's stream and equal outcomes, against the published package."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from golden_log import GOLDEN, LATE, golden
from outcome_rule import F1, letter

from marketeval.actions.information import AnswerTable
from marketeval.adapters.marketplace_eval import write_log
from marketeval.agents.recorded import Recorded
from marketeval.core.drive import lockstep
from marketeval.core.log import EventLog
from marketeval.core.streams import Streams
from marketeval.events.information import GRADES, KINDS
from marketeval.markets.information.market import Generator, InformationMarket, Questions
from marketeval.markets.information.population import Population
from marketeval.markets.information.scenario import Information
from marketeval.markets.information.supply import Supply

ITEMS = [str(item + 1) for item in range(500)]
NAMES = {"A": "correct", "B": "incorrect", "C": "not_attempted"}


@dataclass(frozen=True, kw_only=True)
class Watched(InformationMarket):
    """The market, with its users kept for inspection after the episode."""

    seen: list[Population] = field(default_factory=list)

    def open(self, streams: Streams, log: EventLog) -> tuple[Supply, Population]:
        supply, users = super().open(streams, log)
        self.seen.append(users)
        return supply, users


def recorded(seed: int, name: str) -> Recorded:
    letters = [letter(seed, item, name) for item in ITEMS]
    grades = np.array([GRADES.index(NAMES[one]) for one in letters], np.int8)
    score = np.array([float(one == "A") for one in letters])
    return Recorded(AnswerTable(np.arange(501), score, grades))


def play(experiment: str, seed: int) -> tuple[EventLog, Watched]:
    late = LATE[experiment]
    market = Watched(
        spec=Information(horizon=200, draws="mersenne"),
        generators=[Generator(seat=name, label=name, enters=late.get(name, 0)) for name in F1],
        questions=Questions(items=ITEMS, topics=np.zeros(500, np.int64)),
    )
    log = EventLog(KINDS)
    lockstep(market, {name: recorded(seed, name) for name in F1}, seed=seed, log=log)
    return log, market


@pytest.mark.parametrize("experiment", ["qwen3_late", "deepseek_late"])
def test_the_whole_log_is_the_packages_for_21_seeds(experiment: str, tmp_path: Path) -> None:
    digests = pl.read_csv(GOLDEN / "digests.csv").filter(experiment=experiment)
    expected = dict(digests.select("seed", pl.last()).iter_rows())
    for seed, rows in golden(experiment):
        log, market = play(experiment, seed)
        played = (
            log.scan("interaction")
            .join(log.scan("question").select("question", "item"), on="question")
            .join(log.scan("generator").select("agent", "seat"), on="agent")
            .sort("step", "slot")
            .collect()
        )
        for ours, theirs in {
            "step": "t",
            "slot": "tau",
            "item": "qid",
            "seat": "generator_id",
        }.items():
            assert played[ours].to_list() == rows[theirs].to_list(), (seed, theirs)
        assert [f"user_{user + 1}" for user in played["user"]] == rows["user_id"].to_list()
        assert played["signal"].to_list() == rows["score"].to_list()
        assert played["grade"].to_list() == [NAMES[one] for one in rows["judge_grade"]]

        target = tmp_path / f"{seed}.csv"
        write_log(log, target)
        assert hashlib.sha256(target.read_bytes()).hexdigest() == expected[seed], seed

        last = rows.group_by("user_id").last().filter(pl.col("t") >= 100)
        for user, text in last.select("user_id", "preference_distribution").iter_rows():
            held = market.seen[0].first[int(user.removeprefix("user_")) - 1]
            believed = dict(zip([one.seat for one in market.agents], held.tolist(), strict=True))
            assert believed == pytest.approx(json.loads(text), rel=0, abs=1e-12), (seed, user)
