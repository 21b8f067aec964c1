"""Retention in its three readings, and churn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pencil_logs import episodes, pencil, random_log
from slow import churn, retention, retention_steps, retention_windowed, rows_of

from marketeval.core.log import EventLog
from marketeval.metrics.base import evaluate, parse_metric
from marketeval.metrics.retention import Churn, Retention, RetentionSteps, RetentionWindowed


def by_agent(text: str, log: EventLog, seed: int = 1) -> dict[str, tuple[float | None, str | None]]:
    table = parse_metric(text).compute(log).filter(seed=seed)
    return {name: (value, note) for name, value, note in table["subject", "value", "note"].rows()}


NOBODY = "no first interaction with it in the range"

# a: A B A A, b: B B A, one interaction per step and user
STORY = ("a:A b:B", "a:B b:B", "a:A b:A", "a:A")


def test_retention_follows_the_next_m_interactions_after_the_first() -> None:
    log = pencil(*STORY)
    assert by_agent("Retention(2)", log) == {
        "A": (1 / 2, "1 of 2 adopters had fewer than 2 later interactions"),
        "B": ((0 + 1 / 2) / 2, None),
    }
    assert by_agent("Retention(3)", log) == {
        "A": (2 / 3, "1 of 2 adopters had fewer than 3 later interactions"),
        "B": (None, "2 of 2 adopters had fewer than 3 later interactions"),
    }


def test_retention_counts_interactions_and_not_steps_in_which_a_user_stays_away() -> None:
    log = pencil("a:A", "", "", "a:A", "a:B")
    assert by_agent("Retention(2)", log)["A"] == (0.5, None)
    assert by_agent("RetentionSteps(2)", log)["A"] == (0.0, None)
    assert by_agent("RetentionSteps(4)", log)["A"] == (0.25, None)


def test_several_interactions_of_a_step_follow_each_other_by_slot() -> None:
    log = pencil("a:A a:B a:A", "a:A")
    assert by_agent("Retention(3)", log)["A"] == (2 / 3, None)


def test_in_time_steps_the_last_interaction_of_a_step_is_the_choice() -> None:
    log = pencil("a:A a:B", "a:B a:A", "a:A")
    found = by_agent("RetentionSteps(1)", log)
    assert found == {"A": (1.0, None), "B": (0.0, None)}
    assert by_agent("RetentionSteps(2)", log)["A"] == (
        None,
        "1 of 1 adopters came fewer than 2 steps before the end",
    )


def test_the_windowed_reading_takes_all_later_interactions_of_each_user() -> None:
    assert by_agent("RetentionWindowed", pencil(*STORY)) == {
        "A": (2 / 3, "1 of 2 adopters had no later interaction"),
        "B": ((0 + 1 / 2) / 2, None),
    }


def test_only_the_windowed_reading_counts_old_customers_as_new_in_a_later_range() -> None:
    log = pencil("a:A", "a:A", "b:A", "a:A b:B", phases={"late": (1, 4)})
    assert by_agent("Retention(1, phase=late)", log)["A"] == (0.0, None)  # b alone is new
    assert by_agent("RetentionWindowed(phase=late)", log)["A"] == (0.5, None)


def test_later_interactions_end_with_the_range() -> None:
    log = pencil("a:A", "a:A", "a:B")
    assert by_agent("Retention(2, stop=2)", log)["A"][0] is None
    assert by_agent("Retention(2)", log)["A"] == (0.5, None)


def test_an_agent_that_nobody_tried_is_null_and_one_that_is_not_there_has_no_row() -> None:
    log = pencil("a:A", "a:A", agents="ABC", entry={"C": 5})
    assert by_agent("Retention(1)", log) == {"A": (1.0, None), "B": (None, NOBODY)}


def test_churn_is_about_the_last_m_interactions_of_those_who_had_time_to_leave() -> None:
    log = pencil("a:A b:A c:A", "a:B b:A", "a:B b:B", "a:B b:A")
    found = by_agent("Churn(2)", log)
    assert found["A"] == (1 / 2, "1 of 3 adopters had fewer than 2 later interactions")
    assert found["B"] == (0.0, "1 of 2 adopters had fewer than 2 later interactions")


def test_the_same_user_number_in_two_seeds_is_two_users() -> None:
    log = pencil(episodes={1: ["a:A", "a:B"], 2: ["a:B", "a:B"]})
    assert by_agent("Retention(1)", log, 1)["A"] == (0.0, None)
    assert by_agent("Retention(1)", log, 2)["B"] == (1.0, None)


@given(episodes(), st.integers(1, 4), st.integers(0, 3))
def test_every_reading_equals_a_count_user_by_user(story: list[str], m: int, start: int) -> None:
    log = pencil(*story, agents="ABCD", horizon=8)
    rows, part = rows_of(log, 1), rows_of(log, 1, start, 8)
    texts = (f"Retention({m}, start={start})", f"RetentionSteps({m})")
    texts += (f"RetentionWindowed(start={start})", f"Churn({m}, start={start})")
    literal, steps, windowed, churned = (by_agent(text, log) for text in texts)
    for agent in "ABCD":
        value, short, tried = retention(rows, agent, m, start)
        note = f"{short} of {tried} adopters had fewer than {m} later interactions"
        assert literal[agent][0] == pytest.approx(value)
        assert literal[agent][1] == (note if short else None if tried else NOBODY)
        assert steps[agent][0] == pytest.approx(retention_steps(rows, agent, m, 8))
        assert windowed[agent][0] == pytest.approx(retention_windowed(part, agent))
        assert churned[agent][0] == pytest.approx(churn(part, agent, m))


@given(episodes())
def test_retention_is_a_share_or_null(story: list[str]) -> None:
    log = pencil(*story, agents="ABCD")
    found = evaluate(log, [Retention(2), RetentionSteps(2), RetentionWindowed(), Churn(2)])
    assert all(value is None or 0 <= value <= 1 for value in found["value"])


def test_many_seeds_at_once_are_each_seed_alone() -> None:
    log = random_log(seeds=5, steps=20, agents="ABC")
    for seed in range(1, 6):
        found = by_agent("Retention(3)", log, seed)
        for agent in "ABC":
            assert found[agent][0] == pytest.approx(retention(rows_of(log, seed), agent, 3)[0])
