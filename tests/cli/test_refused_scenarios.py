"""Scenarios that cannot be played: one line that helps, exit code 2, nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Refused = Callable[..., str]


def test_an_unknown_scenario_is_refused_with_the_near_miss(refused: Refused) -> None:
    assert "did you mean 'late-entry-qwen3'?" in refused("run", "late-entry-qwen")


def test_a_scenario_file_that_is_not_there_is_refused(refused: Refused) -> None:
    assert "no scenario file at nothing.yaml" in refused("run", "nothing.yaml")


def test_a_folder_is_no_scenario(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.yaml").mkdir()
    assert "no scenario file at folder" in refused("run", "folder")
    assert "no scenario file at folder.yaml" in refused("run", "folder.yaml")


def test_a_shipped_name_wins_over_a_folder_of_that_name(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "late-entry-qwen3").mkdir()
    assert "unknown executor" in refused("run", "late-entry-qwen3", "--executor", "proceses")
    assert "'horzion'" in refused("run", "late-entry-qwen3", "--set", "market.horzion=3")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "an empty file"),
        (b"- a\n- b\n", "expected a mapping of keys, got list"),
        (b"just words", "got str"),
        (b"\x00\x01\xff\xfe\x93PNG", "not readable YAML"),
        (b"seats: {a: bernoulli:0.5", "not readable YAML"),
        (b"seeds: 1\nmarket: {}\nseeds: 2\n", "the key 'seeds' stands twice"),
        (b"market: {horizon: 3, horizon: 4}", "the key 'horizon' stands twice"),
        (b"seats: {a: bernoulli:0.5, a: bernoulli:0.6}", "the key 'a' stands twice"),
        (b"controls: {a: &loop {market: *loop}}", "recursive"),
        (b"title: " + b"[" * 3000, "nested too deeply"),
        (b"title: 2020-13-45", "not readable YAML"),
        (b"? [a, b]\n: 1\n", "not readable YAML"),
        (b"1: 2", "1"),
        (b"seats: [a, b]", "seats"),
        (b"seats: {a: 5}", "seats.a"),
        (b"seats: {a: {agnet: x}}", "did you mean 'agent'?"),
        (b"market: 5", "market"),
        (b"market: {users: {per_stp: 5}}", "did you mean 'per_step'?"),
        (b"horizon: 5", "unknown key 'horizon'"),
        (b"notes: 5", "unknown key 'notes'"),
        (b"name: a/b", "can name a folder"),
        (b"name: ''", "can name a folder"),
        (b"name: ..", "can name a folder"),
        (b"name:", "name"),
        (b"controls: {a/b: {}}", "can name a folder"),
        (b"controls: {.a: {}}", "can name a folder"),
        (b"controls: {a: 5}", "controls.a"),
        (b"metrics: [HIH]", "did you mean 'HHI'?"),
        (b"metrics: [HHI(windw=5)]", "did you mean 'window'?"),
        (b"metrics: HHI", "metrics"),
        (b"seats: {a: bernoulli:0.5}\nmetrics: [Regret]", "Regret needs the event 'potential'"),
        (b"family: two_sided\nmetrics: [HHI]", "HHI needs the event 'market'"),
        (b"family: supply_chain\nmetrics: [HHI]", "a market of the family 'supply_chain'"),
        (b"family: coupled\nmetrics: [ActiveRatio]", "ActiveRatio needs the event 'economy'"),
        (b"seeds: 5-1", "from low to high"),
        (b"outcomes: 5", "outcomes"),
        (b"family: retail", "family"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused(
    refused: Refused, tmp_path: Path, content: bytes, says: str
) -> None:
    (tmp_path / "bad.yaml").write_bytes(content)
    assert says in refused("run", "bad.yaml")


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("market.horzion=5", "did you mean 'horizon'?"),
        ("horzion=5", "did you mean 'horizon'?"),
        ("market.horzion=null", "did you mean 'market.horizon'?"),
        ("cost.weight=1", "unknown key 'cost.weight'"),
        ("horizon=0", "market.horizon"),
        ("horizon=many", "market.horizon"),
        ("horizon=[1", "market.horizon"),
        ("horizon=99999999999999999999", "market.horizon: expected at most"),
        ("population=99999999999", "market.users.population: expected at most 1,000,000,000"),
        ("questions=1.0e+9", "market.questions: expected at most 10,000,000"),
        ("horizon.x=1", "unknown key"),
        ("horizon", "expected --set KEY=VALUE"),
        ("=5", "expected --set KEY=VALUE"),
        (".=5", "unknown key"),
        ("market..=5", "unknown key"),
        ("name=null", "name"),
        ("title=[1]", "title"),
        ("seats=null", "has no seats"),
        ("seats.alhpa=null", "did you mean 'alpha'?"),
        ("seats.alhpa.enters=3", "did you mean 'alpha'?"),
        ("seats.alpha.enter=3", "did you mean 'enters'?"),
        ("seats.alpha.enters=-3", "greater than or equal to 0"),
        ("seats.alpha.enters=8", "past the horizon"),
        ("seats.gpt-4.1.enters=80", "'gpt-4.1' enters at step 80, past the horizon"),
        ("seats.alpha.options.fixd=true", "did you mean 'fixed'?"),
        ("seats.alpha.options.fixed=3", "expected true or false"),
        ("seats.alpha.options.cost_usd=-3", "expected a number from 0"),
        ("seats.alpha.options=3", "seats.alpha.options"),
        ("users.per_step=7", ""),
        ("choice.rule=epsilon", "did you mean 'epsilon_greedy'?"),
        ("learning.kind=drfit", "did you mean 'drift'?"),
        ("choice.rule=thompson", "valid for 'thompson': beta"),
        ("temperature=0.5", "takes epsilon"),
        ("epsilon=1.5", "market.choice.epsilon"),
        ("epsilon=.nan", "market.choice.epsilon"),
        ("utility.cost=1", "weighs cost_usd, which 2 of 3 seats lack (first 'alpha')"),
        ("utility.latency=1", "weighs latency_s, which 2 of 3 seats lack"),
        ("market.stagger=2", "needs market.timing: asynchronous"),
        ("market.segments.experts.weight=2", "market.segments"),
        ("phases=[{name: a, start: 0, stop: 9}]", "past the horizon of 8"),
        ("phases=[{name: a, start: 5, stop: 5}]", "is not below stop"),
        ("phases=[{name: a, start: -1, stop: 5}]", "phases.0.start"),
        ("phases=[{name: a, start: 0, stop: 2}, {name: a, start: 2, stop: 5}]", "of their own"),
        ("metrics=[MarketShare(phase=befor)]", "did you mean 'before'?"),
        ("metrics=['MarketShare(start=0, stop=9)']", "past the horizon"),
        ("metrics=[MarketShare(start=0, stop=9)]", "needs quotes"),
        ("items=here.csv", "here.csv is not a readable CSV"),
        ("outcomes=[gone.csv]", "no outcome table at"),
        ("entries.file=gone.csv", "gone.csv is not a readable CSV"),
        ("entries.every=3", "entries.file"),
        ("seeds=all", "expected seeds like"),
        ("controls.other={seats.gama: null}", "control 'other': unknown seat 'gama'"),
        ("controls.other={market.horzion: 3}", "control 'other': unknown key 'horzion'"),
        ("controls.other={market.horzion: null}", "control 'other': unknown key"),
        ("controls.other={horizon: 6}", "control 'other': phase 'after' ends at step 8"),
        ("controls.a/b={}", "can name a folder"),
        ("controls.no-entry=5", "controls.no-entry"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(
    refused: Refused, small: Path, setting: str, says: str
) -> None:
    words = ["run", small.name, "--set", setting]
    if setting == "users.per_step=7":
        words += ["--set", "users.replacement=false"]
        says = "users.per_step is 7 and users are drawn without replacement, but there are 6"
    assert says in refused(*words)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ("{step: 2, kind: exit, agent: alhpa}", "did you mean 'alpha'?"),
        ("{step: 8, kind: exit, agent: alpha}", "past the horizon: expected a step from 0 to 7"),
        ("{step: -1, kind: exit, agent: alpha}", "step"),
        ("{step: 2, kind: entry, agent: alpha}, {step: 4, kind: entry, agent: alpha}", "already"),
        ("{step: 2, kind: exit, agent: alpha}, {step: 4, kind: exit, agent: alpha}", "not in the"),
        ("{step: 2, kind: exit, agent: beta}", "the exit of seat 'beta' at step 2 cannot be"),
        ("{step: 5, kind: entry, agent: beta}", "the entry of seat 'beta' at step 5 cannot be"),
        ("{step: 4, kind: entry, agent: beta}", "twice at step 4"),
        ("{step: 4, kind: exit, agent: alpha}, {step: 4, kind: entry, agent: alpha}", "twice at"),
        ("{step: 2, kind: exti, agent: alpha}", "kind"),
        ("{step: 2, kind: price, agent: alpha}", "needs 'factor'"),
        ("{step: 2, kind: price, agent: alpha, factor: -1}", "factor"),
        ("{step: 2, kind: exit, agent: alpha, factor: 1}", "does not take 'factor'"),
        ("{step: 2, kind: quality, agent: alpha, change: 2}", "change"),
        ("{step: 2, kind: outage, agent: alpha, steps: 0}", "steps"),
    ],
)
def test_an_intervention_that_cannot_be_is_refused(
    refused: Refused, small: Path, changes: str, says: str
) -> None:
    assert says in refused("run", small.name, "--set", f"market.interventions=[{changes}]")


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        ("bernouli:0.5", "unknown agent of seat 'alpha' 'bernouli'; did you mean 'bernoulli'?"),
        ("", "unknown agent of seat 'alpha' ''"),
        ("bernoulli", "expected bernoulli:RATE"),
        ("bernoulli:", "expected bernoulli:RATE"),
        ("bernoulli:1.5", "expected a number from 0 to 1, got '1.5'"),
        ("bernoulli:-0.1", "expected a number from 0 to 1"),
        ("bernoulli:nan", "expected a number from 0 to 1"),
        ("recorded", "needs recorded answers"),
        ("recorded:gone.csv#ada", "no outcome table at"),
        ("python:Class", "expected python:package.module:Class"),
        ("python:no_such_module:Class", "No module named 'no_such_module'"),
        ("python:math:Agent", "no attribute 'Agent'"),
        ("python:math:pi", "not callable"),
        ("python:collections:Counter", "is no agent"),
        ("python:..:x", "seat 'alpha'"),
        ("python:breaks:Agent", "ZeroDivisionError"),
        ("python:refuses:Agent", "ValueError: not today"),
    ],
)
def test_an_agent_that_cannot_be_is_refused(
    refused: Refused, small: Path, tmp_path: Path, agent: str, says: str
) -> None:
    (tmp_path / "breaks.py").write_text("1 / 0\n")
    (tmp_path / "refuses.py").write_text("def Agent():\n    raise ValueError('not today')\n")
    (tmp_path / "__pycache__").mkdir()
    for name in ("breaks", "refuses"):
        compile((tmp_path / f"{name}.py").read_text(), name, "exec")
    assert says in refused("run", small.name, "--seat", f"alpha={agent}")


def test_a_seat_without_an_agent_is_refused(refused: Refused, small: Path) -> None:
    assert "expected --seat NAME=AGENT" in refused("run", small.name, "--seat", "alpha")


@pytest.mark.parametrize(
    "seeds", ["", "0-", "-3", "a", "1..4", "5-2", "1,,2", "²", "9" * 30, "1-9" + "0" * 9, "1;2"]
)
def test_seeds_that_are_none_are_refused(refused: Refused, small: Path, seeds: str) -> None:
    assert "seeds" in refused("run", small.name, f"--seeds={seeds}")


def test_a_segment_that_is_not_there_is_refused_with_the_near_miss(refused: Refused) -> None:
    line = refused("run", "segments-small", "--set", "market.segments.expert.weight=2")
    assert "did you mean 'experts'?" in line


def test_preferences_for_a_seat_that_is_not_there_are_refused(
    refused: Refused, small: Path
) -> None:
    segments = "market.segments=[{name: fans, preferences: {alhpa: 1}}]"
    assert "did you mean 'alpha'?" in refused("run", small.name, "--set", segments)


@pytest.mark.parametrize(
    "words",
    [
        ("--executor", "thread"),
        ("--force", "--resume"),
        ("--sed", "1"),
        ("--missing", "ignore"),
    ],
)
def test_an_option_that_cannot_be_is_refused(
    refused: Refused, small: Path, words: tuple[str, ...]
) -> None:
    refused("run", small.name, *words)
