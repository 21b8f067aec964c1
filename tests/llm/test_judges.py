"""How answers are graded, by rule and by model."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from marketeval.actions.information import Grades
from marketeval.agents.grading import (
    exact_match,
    match,
    number_match,
    read_grade,
    read_rating,
    token_f1,
)
from marketeval.agents.registry import make_agent
from marketeval.core.errors import ScenarioError, UnknownNameError
from marketeval.core.market import Request
from marketeval.core.streams import Streams
from marketeval.events.information import CORRECT, INCORRECT, NOT_ATTEMPTED, UNGRADED
from marketeval.llm.calls import Calls
from marketeval.metrics.agreement import cohen_kappa, fleiss_kappa
from marketeval.testing.fake_endpoint import FakeEndpoint

A, B, C = CORRECT, INCORRECT, NOT_ATTEMPTED


@pytest.mark.parametrize(
    ("reply", "grade"),
    [
        # what a parser that takes the first of the letters A, B, C gets wrong
        ("CORRECT", A), ("INCORRECT", B), ("NOT_ATTEMPTED", C), ("NOT ATTEMPTED", C),
        ("The answer is B", B), ("Grade: B", B),
        ("Sorry, I could not reach the service. Please try again.", None),
        # letters and words as they come
        ("A", A), ("B", B), ("C", C), ("b", B), (" C.\n", C), ("(B)", B), ("**A**", A),
        ("A: CORRECT", A), ("B: INCORRECT", B), ("C - NOT_ATTEMPTED", C), ("Grade: **C**", C),
        ("The answer is correct.", A), ("It is incorrect, since ...", B), ("not correct", B),
        ("Final grade: A", A),
        # never guessed
        ("", None), ("A or B", None), ("A good answer", None), ("correct, or incorrect?", None),
        ("B: CORRECT", None), ("I cannot grade this.", None), ("D", None),
    ],
)  # fmt: skip
def test_a_reply_is_read_as_what_it_says_or_not_at_all(reply, grade):
    assert read_grade(reply) == grade


@pytest.mark.parametrize(
    ("reply", "rating"),
    [("7", 7), ("7/10", 7), ("Rating: 10", 10), ("0", 0), ("8 out of 10", 8), ("11", None),
     ("-1", None), ("7 or 8", None), ("good", None), ("Score: 6.5 because 2 of 3 ...", 6.5)],
)  # fmt: skip
def test_a_rating_is_one_number_within_its_range(reply, rating):
    assert read_rating(reply) == rating


@pytest.mark.parametrize(
    ("rule", "answer", "golds", "score"),
    [
        (exact_match, "The Beatles!", ["beatles"], 1.0),
        (exact_match, "It is Tokyo", ["Tokyo"], 0.0),
        (match, "The capital of Japan is Tokyo.", ["Kyoto", "tokyo"], 1.0),
        (match, "Tokyoites", ["Tokyo"], 0.0),
        (match, "anything", [""], 0.0),
        (token_f1, "Barack Obama", ["President Barack Obama"], 0.8),  # P 1, R 2/3
        (token_f1, "nobody", ["Barack Obama"], 0.0),
        (number_match, "about 1,234.50 in all", ["1234.5"], 1.0),
        (number_match, "3 and 4", ["3"], 0.0),
        (number_match, "none", ["3"], 0.0),
    ],
)
def test_rules_against_a_pencil(rule, answer, golds, score):
    assert rule(answer, golds) == pytest.approx(score, abs=1e-15)


def graded(judge, options, fake=None, texts=("Paris", "Rome"), golds=(("Paris",), ("Paris",))):
    async def one():
        async with Calls() as calls:
            seat = make_agent(judge, seat="judge", options=options, calls=calls)
            return await seat.act(
                Request(
                    seat="judge", decision="grade", action=Grades, step=2, draws=Streams(1),
                    batch={"question": np.arange(2), "slot": np.arange(2), "text": texts,
                           "asked": ["Capital of France?"] * 2, "gold": golds},
                )
            )  # fmt: skip

    return asyncio.run(one())


def test_a_judge_by_rule_gives_scores_grades_and_no_grade_without_a_reference():
    grades = graded("judge:match", {}, golds=(("Paris",), ()))
    assert grades.score[0] == 1.0
    assert grades.grade[0] == CORRECT
    assert np.isnan(grades.score[1])
    assert grades.reason == ["", "no reference answer"]


def test_a_three_way_judge_is_nudged_and_its_nonsense_is_shown_and_never_guessed():
    def reply(body):
        return "A" if "grade: Paris" in body["messages"][0]["content"] else "who knows {gold}"

    with FakeEndpoint(reply=reply) as fake:
        grades = graded("judge:three-way", {"model": fake.agent})
    assert grades.score[0] == 1.0
    assert np.isnan(grades.score[1])
    assert grades.reason[1] == "unreadable grade: 'who knows {gold}'"
    assert fake.requests == 1 + 3
    assert fake.seen[0]["temperature"] == 0.0


def test_ratings_are_scores_over_ten_with_or_without_a_reference():
    with FakeEndpoint(reply=lambda body: "7/10") as fake:
        for kind in ("ten", "reference-free"):
            grades = graded(f"judge:{kind}", {"model": fake.agent})
            assert grades.score.tolist() == [0.7, 0.7]
            assert grades.grade.tolist() == [UNGRADED, UNGRADED]
    said = [body["messages"][0]["content"] for body in fake.seen]
    assert ["Reference: Paris" in one for one in said] == [True, True, False, False]


def test_a_panel_averages_and_keeps_what_each_judge_said():
    with FakeEndpoint(reply=lambda body: "C") as fake:
        options = {
            "judges": {
                "rule": "judge:match",
                "model": {"agent": "judge:three-way", "options": {"model": fake.agent}},
            }
        }
        grades = graded("judge:panel", options)
    assert grades.score.tolist() == [0.5, 0.0]
    assert grades.grade.tolist() == [UNGRADED, UNGRADED]  # no majority of two
    assert grades.judges == ("rule", "model")
    assert grades.grades.tolist() == [[A, B], [C, C]]


def test_judges_that_cannot_be_are_named():
    with pytest.raises(
        UnknownNameError, match="unknown judge 'thre-way'; did you mean 'three-way'"
    ):
        make_agent("judge:thre-way", seat="judge")
    with pytest.raises(ScenarioError, match="needs the option model"):
        make_agent("judge:three-way", seat="judge")


def test_cohens_kappa_of_a_textbook_table():
    # 20 both yes, 5 and 10 apart, 15 both no: p_o 0.7, p_e 0.5
    one = np.repeat([1, 1, 0, 0], [20, 5, 10, 15])
    other = np.repeat([1, 0, 1, 0], [20, 5, 10, 15])
    assert cohen_kappa(one, other) == pytest.approx(0.4, abs=1e-12)
    assert np.isnan(cohen_kappa(np.ones(3, int), np.ones(3, int)))


def test_fleiss_kappa_by_pencil():
    # three judges, two items: (1,1,1) and (1,1,0): P = (1 + 1/3) / 2, P_e = (5/6)^2 + (1/6)^2
    grades = np.array([[1, 1], [1, 1], [1, 0]])
    assert fleiss_kappa(grades) == pytest.approx((2 / 3 - 26 / 36) / (1 - 26 / 36), abs=1e-12)
