"""Whatever a scenario file or a setting holds: it is played, or refused in one line."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from shell import SMALL, call

from marketeval.core.errors import UsageError
from marketeval.experiments.runner import arms_of
from marketeval.experiments.scenario import Tree, override, parse_value, parse_yaml

WORDS = """
    a b name alpha beta gpt-4.1 market users seats horizon choice rule epsilon kind agent step
    segments interventions controls metrics phases bernoulli:0.5 entry exit HHI null .nan 1e9 '
    { [ ] } : - & * ! % @ # , " \\ é \ud7ff 2020-02-30 0x_ 1:2 <<
"""
KEYS = """
    name title seats seats.alpha seats.beta.enters seats.gpt-4.1.options seats.new seats.new.agent
    market market.users market.users.per_step market.segments market.segments.0 horizon
    market.interventions market.interventions.0.step market.outside outside.patience
    market.signals.correct phases phases.after controls controls.no-entry controls.x metrics
    missing outcomes items entries entries.file seeds epsilon rule kind family ties timing
    market.draws draws . market. seats. users.replacement population arrivals questions
"""
words = st.sampled_from([" ", "\n", *WORDS.split()])
reals = st.floats(-3, 40) | st.sampled_from([float("nan"), float("inf"), -1e308, 1e-320])
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 40), reals, words, st.text(max_size=4)
)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(words | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)
paths = st.sampled_from(KEYS.split())


def played_or_refused(tree: Any) -> None:  # any: whatever was drawn
    """Everything that is checked before anything is written."""
    with suppress(UsageError):
        arms_of(tree)


@given(key=paths, value=trees)
@settings(max_examples=300)
def test_any_value_under_any_key_is_taken_or_refused(key: str, value: Any) -> None:
    tree = {"name": "small", **parse_yaml(SMALL, "small")}
    try:
        override(tree, key, value)
    except UsageError:
        return
    played_or_refused(tree)


@given(key=paths, value=trees)
@settings(max_examples=150)
def test_any_value_in_a_control_is_taken_or_refused(key: str, value: Any) -> None:
    played_or_refused(
        {"name": "small", **parse_yaml(SMALL, "small"), "controls": {"x": {key: value}}}
    )


@given(text=st.lists(words | st.text(max_size=3), max_size=6).map("".join))
@settings(max_examples=300)
def test_any_text_is_a_value_or_no_yaml(text: str) -> None:
    parse_value(text)
    try:
        tree: Tree = parse_yaml(text, "text")
    except UsageError:
        return
    played_or_refused(tree)


@given(tree=trees)
@settings(max_examples=150)
def test_any_tree_in_the_place_of_a_market_is_taken_or_refused(tree: Any) -> None:
    seats = {"a": "bernoulli:0.5", "b": "bernoulli:0.4"}
    played_or_refused({"name": "x", "seats": seats, "market": tree})


@given(key=paths, value=trees)
@settings(max_examples=25)
def test_a_command_with_any_setting_ends_with_0_or_with_2_and_one_line(
    key: str, value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    path, out = folder / "small.yaml", folder / "out"
    path.write_text(SMALL)
    text = json.dumps(value)
    answer = call(
        "run", path, "--set", f"{key}={text}", "--out", out, "--seeds", "1",
        "--executor", "serial", "--no-report",
    )  # fmt: skip
    assert answer.code in (0, 2), answer
    assert answer.err.count("\n") == 1
    assert (answer.code == 0) == Path(out).exists(), answer


@given(tree=trees)
@settings(max_examples=60)
def test_any_file_is_a_scenario_or_refused_in_one_line(
    tree: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "any.yaml").write_text(yaml.safe_dump(tree), "utf-8")
    answer = call("run", folder / "any.yaml", "--out", folder / "out", "--no-report")
    assert (answer.code, answer.err.count("\n")) == (2, 1), answer
