"""Switching, survival, and what users get over time."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from pencil_logs import episodes, pencil
from slow import rows_of, switch_rate

from marketeval.core.log import EventLog
from marketeval.events.information import KINDS
from marketeval.metrics.base import parse_metric
from marketeval.metrics.dynamics import (
    FailureRate,
    LongitudinalUtility,
    MeanScore,
    Survival,
    SwitchRate,
    UserSurvival,
)


def by_subject(table: pl.DataFrame) -> dict[str | None, float | None]:
    return dict(table["subject", "value"].rows())


def test_switching_is_counted_over_pairs_of_one_users_interactions() -> None:
    log = pencil("a:A b:B", "a:A b:A", "a:B")  # a: A A B, b: B A
    assert by_subject(SwitchRate().compute(log)) == {None: 2 / 3, "A": 1 / 2, "B": 1.0}


def test_a_pair_belongs_to_the_step_of_its_second_interaction() -> None:
    log = pencil("a:A", "", "a:B", "a:B")
    table = SwitchRate(window=1).compute(log).filter(pl.col("subject").is_null())
    assert table["value"].to_list() == [None, None, 1.0, 0.0]
    assert table["note"][0] == "no user came a second time in the window"


@given(episodes())
def test_the_switch_rate_equals_a_count_user_by_user(story: list[str]) -> None:
    log = pencil(*story, agents="ABCD")
    found = by_subject(SwitchRate().compute(log))
    rows = rows_of(log, 1)
    for subject in (None, *"ABCD"):
        if rows:
            assert found[subject] == pytest.approx(switch_rate(rows, subject))


def test_means_are_over_interactions_that_have_a_value() -> None:
    log = pencil("a:A+ a:A! a:A- b:B.5", "b:B!")
    table = MeanScore().compute(log)
    assert by_subject(table) == {None: 0.5, "A": 0.5, "B": 0.5}
    late = MeanScore(start=1).compute(log)
    assert late.select("subject", "value", "note").rows() == [
        (None, None, "no score in the window"),
        ("A", None, "nobody asked it in the window"),
        ("B", None, "no score in the window"),
    ]
    assert by_subject(LongitudinalUtility().compute(log)) == {None: 0.25, "A": 0.25, "B": 0.25}
    assert by_subject(FailureRate().compute(log)) == {None: 2 / 5, "A": 1 / 3, "B": 1 / 2}


def test_utility_over_time_is_a_series_of_the_market_and_its_agents() -> None:
    table = LongitudinalUtility(window=1).compute(pencil("a:A+", "a:A-"))
    assert table.filter(pl.col("subject").is_null())["value"].to_list() == [0.75, -0.25]
    assert table["subject"].to_list() == [None, "A", "B", None, "A", "B"]


def test_an_agent_survives_until_its_share_is_below_the_threshold_for_good() -> None:
    log = pencil("a:A a:B", "a:A", "", "a:B", "a:A")
    found = by_subject(Survival(window=1, threshold=0.5).compute(log))
    assert found == {"A": 1.0, "B": 4 / 5}
    never = by_subject(Survival(window=1, threshold=0.5, start=1, stop=3).compute(log))
    assert never == {"A": 1.0, "B": 0.0}


def test_survival_counts_from_the_first_window_that_begins_after_the_entry() -> None:
    log = pencil("a:A", "a:A", "a:B", "a:B", "a:A", "a:A", entry={"B": 1})
    assert by_subject(Survival(window=2).compute(log)) == {"A": 1.0, "B": 1 / 2}
    late = pencil("a:A", "a:A", entry={"B": 1})
    table = Survival(window=2).compute(late).filter(subject="B")
    assert table.select("value", "note").row(0) == (None, "entered after the last window began")


def test_users_survive_who_have_not_left_for_good() -> None:
    log = pencil(episodes={1: [""] * 4, 2: [""] * 4}, horizon=4)
    log.begin(3)
    log.append("user", user=[0, 1, 2, 3], segment=0, arrived=[0, 0, 0, 3])
    log.append("user_left", step=[0, 2], user=[0, 1], utility=-1.0)
    log.end()
    for how, expected in (("", 2 / 4), ("stop=3", 1 / 3), ("start=1, stop=3", 1 / 2)):
        table = parse_metric(f"UserSurvival({how})").compute(log)
        assert table.filter(seed=3)["value"].item() == pytest.approx(expected)
    table = UserSurvival().compute(log).filter(seed=1)
    assert table.select("value", "note").row(0) == (None, "the log names no user for these steps")


def test_initial_users_are_shared_by_all_seeds() -> None:
    log = EventLog(KINDS)
    for seed in (1, 2):
        log.begin(seed)
        log.shared("market", horizon=2, users=4, users_per_step=1)
        log.shared("user", user=np.arange(4), segment=0, arrived=0)
        if seed == 2:
            log.append("user_left", step=0, user=3, utility=-1.0)
        log.end()
    assert UserSurvival().compute(log)["value"].to_list() == [1.0, 0.75]
