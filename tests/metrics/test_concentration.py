"""HHI and its relatives, dominance and exposure against targets, inequality."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from paper import POOLED_HHI
from pencil_logs import episodes, pencil
from slow import gini as slow_gini
from slow import rows_of, shares

from marketeval.metrics.base import evaluate, parse_metric
from marketeval.metrics.concentration import HHI, Dominance, Entropy, ExpectedExposure, hhi
from marketeval.metrics.inequality import gini

LOG = ("a:A a:A a:A a:B", "a:A a:A a:C- a:B-")  # shares 5/8, 2/8, 1/8
STATIC = {"A": 0.2, "B": 0.2, "C": 0.6}


def value(text: str, *steps: str, **options: object) -> float | None:
    log = pencil(*(steps or LOG), agents="ABC", **{"static": STATIC, **options})
    return parse_metric(text).compute(log)["value"].item()


@pytest.mark.parametrize(("table", "printed"), POOLED_HHI)
def test_the_pooled_hhi_of_tables_2_and_3_comes_out_of_the_printed_shares(
    table: dict[str, tuple[float, float]], printed: float
) -> None:
    percent = [share for share, _ in table.values()]
    assert float(hhi(percent)) == pytest.approx(printed)
    assert 10_000 * float(hhi([one / 100 for one in percent])) == pytest.approx(printed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HHI", (25 + 4 + 1) / 64),
        ("HHI(points=true)", 10_000 * 30 / 64),
        ("EED", 30 / 64),
        ("CR(1)", 5 / 8),
        ("CR(2)", 7 / 8),
        ("CR(4)", 1.0),
        ("Entropy", -(5 / 8 * math.log(5 / 8) + 2 / 8 * math.log(2 / 8) + math.log(1 / 8) / 8)),
        ("Gini", (2 * (3 + 4 + 1) / 8) / (2 * 3)),
        ("Dominance", 5 / 8 - 1 / 3),
        ("Dominance(target=static)", 5 / 8 - 1 / 5),
        ("Dominance(target=earned)", 5 / 8 - 5 / 6 + 0 + (1 / 8 - 0 - (5 / 8 - 5 / 6))),
        ("Dominance(target=earned, own=true)", 5 / 8 - 5 / 6),
        ("ExpectedExposure", (5 / 8 - 1 / 3) ** 2 + (2 / 8 - 1 / 3) ** 2 + (1 / 8 - 1 / 3) ** 2),
        ("ExpectedExposure(target=static)", 0.425**2 + 0.05**2 + 0.475**2),
        ("ExpectedExposure(target=earned)", (5 / 8 - 5 / 6) ** 2 + (1 / 4 - 1 / 6) ** 2 + 1 / 64),
    ],
)
def test_the_index_is_what_a_pencil_gives(text: str, expected: float) -> None:
    assert value(text) == pytest.approx(expected)


def test_the_note_of_hhi_says_its_base() -> None:
    log = pencil(*LOG, agents="ABC")
    assert HHI().compute(log)["note"].item() == "from 0 to 1, 1 = monopoly"
    assert HHI(points=True).compute(log)["note"].item() == "points, 10,000 = monopoly"


def test_windowed_and_pooled_hhi_differ_when_agents_take_turns() -> None:
    log = pencil("a:A", "a:B")
    assert HHI().compute(log)["value"].item() == 0.5
    windowed = HHI(window=1).compute(log)
    assert windowed.select("window", "step", "value").rows() == [
        ("sliding 1", 0, 1.0),
        ("sliding 1", 1, 1.0),
    ]


def test_an_earned_target_is_null_when_nothing_was_earned() -> None:
    log = pencil("a:A.5 a:B.25", "a:A- a:B!", "a:A")
    table = ExpectedExposure(target="earned", window=1).compute(log)
    assert table["value"].to_list() == [pytest.approx(2 / 36), None, 0.0]
    assert table["note"].to_list() == [None, "nothing was earned in the window", None]


def test_the_two_readings_of_dominance_differ_for_an_agent_with_a_high_target() -> None:
    options = {"static": {"A": 0.8, "B": 0.1, "C": 0.1}}
    steps = ["a:A a:A a:B a:C"]
    assert value("Dominance(target=static)", *steps, **options) == pytest.approx(0.15)
    assert value("Dominance(target=static, own=true)", *steps, **options) == pytest.approx(-0.3)


def test_a_static_target_names_the_agent_without_a_score() -> None:
    log = pencil("a:A a:B", static={"A": 1.0})
    row = Dominance(target="static").compute(log)
    assert row.select("value", "note").row(0) == (None, "no static score for B")


def test_an_agent_that_has_not_entered_is_not_in_the_equal_target() -> None:
    log = pencil("a:A", "a:A", entry={"B": 1})
    assert Dominance(window=1).compute(log)["value"].to_list() == [0.0, 0.5]


def test_normalised_entropy_is_undefined_for_a_single_agent() -> None:
    alone = pencil("a:A", agents="A")
    assert Entropy().compute(alone)["value"].item() == 0
    row = Entropy(normalised=True).compute(alone)
    assert row.select("value", "note").row(0) == (None, "only one agent in the market")
    assert Entropy(normalised=True).compute(pencil("a:A a:B"))["value"].item() == 1


def test_the_index_is_null_without_interactions() -> None:
    table = HHI(window=1).compute(pencil("a:A", "", horizon=2))
    assert table["note"].to_list()[1] == "no interaction in the window"
    assert table["value"].to_list() == [1.0, None]


@given(episodes())
def test_concentration_keeps_its_bounds(story: list[str]) -> None:
    log = pencil(*story, agents="ABCD")
    rows = rows_of(log, 1)
    texts = ("HHI", "Gini", "CR(2)", "Entropy", "Dominance", "ExpectedExposure", "EED")
    values = evaluate(log, [parse_metric(text) for text in texts])["value"]
    found = dict(zip(texts, values, strict=True))
    if not rows:
        assert set(found.values()) == {None}
        return
    held = shares(rows, "ABCD")
    assert 1 / 4 - 1e-12 <= found["HHI"] <= 1
    assert found["EED"] == found["HHI"] == pytest.approx(sum(one**2 for one in held.values()))
    assert 0 <= found["Gini"] <= 3 / 4 + 1e-12
    assert found["Gini"] == pytest.approx(slow_gini(list(held.values())))
    assert 1 / 2 - 1e-12 <= found["CR(2)"] <= 1 + 1e-12
    assert 0 <= found["Entropy"] <= math.log(4) + 1e-12
    assert found["Dominance"] == pytest.approx(max(held.values()) - 1 / 4)
    assert found["ExpectedExposure"] == pytest.approx(found["HHI"] - 1 / 4)


@given(episodes())
def test_equal_shares_have_no_inequality(story: list[str]) -> None:
    assert float(gini([len(story)] * 5)) == 0
