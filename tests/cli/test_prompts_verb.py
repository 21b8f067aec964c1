"""`marketeval prompts`: what a seat would be asked, with nobody called."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from shell import Shell


def test_of_a_seat_that_is_no_model_the_request_is_shown(shell: Shell, small: Path) -> None:
    answer = shell("prompts", small, "--seat", "beta", "--step", 5)
    request = json.loads(answer.out)
    assert (request["seat"], request["decision"], request["action"]) == (
        "beta",
        "answer",
        "Answers",
    )
    assert request["step"] >= 5
    assert "it asks no model" in answer.err
    assert f"seat beta, step {request['step']}, decision 'answer', calls: 0" in answer.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--seat", "gamma"), "unknown seat 'gamma'"),
        (("--seat", "alpha", "--step", 8), "seat 'alpha' is not asked at step 8 or later (seed 1)"),
        (("--seat", "alpha", "--seed", -1), "expected a seed from 0"),
        (
            ("--seat", "alpha", "--agent", "alpha=http://127.0.0.1:9/v1#m"),
            "seat 'alpha' answers in words, so it needs the questions in words",
        ),
        (("--seat", "alpha", "--agent", "foo"), "expected --agent NAME=AGENT, got 'foo'"),
        (("--seat", "alpha", "--set", "horizn=3"), "did you mean 'horizon'?"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    refused: Callable[..., str], small: Path, words: tuple[object, ...], message: str
) -> None:
    assert message in refused("prompts", small, *words)
