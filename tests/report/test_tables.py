"""The tables of a report, against the run counted by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from written_run import HOSTILE, written

from marketeval.apps.report.facts import gather
from marketeval.apps.report.tables import (
    Table,
    effect_table,
    failure_table,
    phase_table,
    rank_table,
    summary_table,
    undefined_table,
)
from marketeval.apps.report.terminal import terminal_tables
from marketeval.apps.report.words import PERCENT, POINTS, hhi_story, number, phase_warning


def rows(table: Table) -> list[list[str]]:
    return [[f"{cell.text} {cell.tag}".strip() for cell in row] for row in table.rows]


def test_the_phase_table_ranks_by_mean_share_and_marks_the_entrant(tmp_path: Path) -> None:
    table = phase_table(gather(written(tmp_path / "run")))
    assert [title for title, _ in table.groups] == [
        "",
        "before (steps 1-2): HHI 5,625 [5,000, 6,250]",
        "after (steps 3-4): HHI 5,000 [3,750, 6,250]",
    ]
    assert [[row[i] for i in (0, 1, 2, 4, 5, 6, 8)] for row in rows(table)] == [
        ["1", "Alpha", "62.5", "(+2.5)", f"{HOSTILE} new", "62.5", "(+42.5)"],
        ["2", "Beta", "37.5", "(-2.5)", "Beta", "25.0", "(-7.0)"],
        ["3", "", "", "", "Alpha", "12.5", "(-35.5)"],
    ]


def test_the_effect_is_the_paired_difference_to_the_control(tmp_path: Path) -> None:
    facts = gather(written(tmp_path / "run"))
    found = rows(effect_table(facts, facts.controls[0]))
    assert found[0] == ["before", "all of these", "same", "same", "0", "equal in every seed"]
    after = {row[1]: row[2:] for row in found if row[0] == "after"}
    assert after["HHI, points"] == ["5,000", "7,500", "-2,500", "[-3,750, -1,250]"]
    assert after["Share of Alpha, %"] == ["12.5", "75.0", "-62.5", "[-100.0, -25.0]"]
    assert after["Share of Beta, %"] == ["25.0", "25.0", "0.0", "[-25.0, +25.0]"]
    assert after[f"Share of {HOSTILE}, %"] == ["62.5", "not there", "", ""]


def test_a_rise_is_told_beside_that_of_the_control(tmp_path: Path) -> None:
    facts = gather(written(tmp_path / "run"))
    assert hhi_story(facts, facts.controls[0]) == [
        "From before to after, HHI went from 5,625 to 5,000 (-625) in the run and from 5,625 to "
        "7,500 (+1,875) in the control 'no-entry', over the same steps. The effect of what "
        "differs between the two is the paired difference in after: -2,500 [-3,750, -1,250] "
        "points."
    ]


def test_without_a_control_no_difference_is_called_an_effect(tmp_path: Path) -> None:
    run = written(tmp_path / "run", control=False)
    assert "No control was played" in phase_warning(gather(run))
    text = " ".join(terminal_tables(run).split())
    assert "differences between phases are not effects" in text
    assert "Effect against" not in text


def test_with_one_seed_there_are_no_intervals_and_the_text_says_so(tmp_path: Path) -> None:
    text = terminal_tables(written(tmp_path / "run", seeds=(1,)))
    assert "One seed was played, so there are no intervals" in text
    assert "95%" not in text
    assert "HHI 6,250" in text


def test_ranks_are_set_beside_static_ranks(tmp_path: Path) -> None:
    table = rank_table(gather(written(tmp_path / "run")))
    after = {row[0]: [row[6], row[7], row[9]] for row in rows(table)}
    assert after == {
        "Alpha": ["1", "3", "48.0"],
        "Beta": ["2", "2", "32.0"],
        HOSTILE: ["3", "1", "20.0"],
    }


def test_undefined_values_are_listed_with_reason_and_number(tmp_path: Path) -> None:
    facts = gather(written(tmp_path / "run"))
    found = {(metric, reason): many for metric, reason, many in facts.undefined()}
    # in seed 2, Alpha and Beta have equal shares before: no order, so no correlation
    assert found["KendallTau(phase=before)", "all tied on one side"] == 1
    assert len(rows(undefined_table(facts))) == len(found)


def test_failures_are_counted_by_system(tmp_path: Path) -> None:
    facts = gather(written(tmp_path / "run", failing=True))
    # Alpha was asked 8 times in seed 1, 4 in seed 2, and failed once in each
    assert rows(failure_table(facts)) == [["Alpha", "outage", "2", "12", "16.7"]]
    assert gather(written(tmp_path / "fine")).failures == []


def test_a_privileged_system_is_marked(tmp_path: Path) -> None:
    text = terminal_tables(written(tmp_path / "run", privileged="b"))
    assert "Beta †" in text
    assert "† is told what its seat should not know" in text


def test_runs_stand_side_by_side(tmp_path: Path) -> None:
    two = [gather(written(tmp_path / "x")), gather(written(tmp_path / "y", control=False))]
    found = {row[0]: row[1:] for row in rows(summary_table([("x", two[0]), ("y", two[1])]))}
    assert found["HHI, after"] == ["5,000 [3,750, 6,250]"] * 2
    assert found["Effect on HHI against no-entry, after"] == ["-2,500 [-3,750, -1,250]", ""]


def test_a_run_without_static_scores_is_reported_all_the_same(tmp_path: Path) -> None:
    table = phase_table(gather(written(tmp_path / "run", static=False)))
    assert rows(table)[0][4] == "n/a"


def test_the_terminal_needs_no_altair_and_prints_no_control_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    text = terminal_tables(written(tmp_path / "run"))
    assert "\x1b" not in text
    assert all(one.isprintable() or one == "\n" for one in text)


@pytest.mark.parametrize(
    ("value", "unit", "signed", "text"),
    [
        (0.2944, PERCENT, False, "29.4"),
        (0.0074, PERCENT, True, "+0.7"),
        (-0.0001, PERCENT, True, "0.0"),
        (2027.4, POINTS, False, "2,027"),
        (None, POINTS, True, "n/a"),
    ],
)
def test_numbers_are_written_in_their_unit(
    value: float | None, unit: tuple[int, float], signed: bool, text: str
) -> None:
    assert number(value, unit, signed=signed) == text
