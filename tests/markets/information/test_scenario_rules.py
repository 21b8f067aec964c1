"""What a specification may say, and the words when it may not."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from worlds import PAIRS, a_world, interactions

from marketeval.choice.preference import KINDS
from marketeval.choice.rules import BUILT_IN, RULES
from marketeval.core.errors import ScenarioError
from marketeval.core.spec import validated
from marketeval.markets.information.scenario import Choice, Information


@pytest.mark.parametrize("rule", BUILT_IN)
@pytest.mark.parametrize("kind", KINDS)
def test_valid_pairs_of_rule_and_learning_play_and_others_name_the_valid_ones(rule, kind):
    if (rule, kind) in PAIRS:
        world = a_world({"a": 0.3, "b": 0.8}, choice={"rule": rule}, learning={"kind": kind})
        assert interactions(world.play(1)).height == 1000
    else:
        valid = ", ".join(k for r, k in PAIRS if r == rule)
        with pytest.raises(ValidationError, match=f"valid for '{rule}': {valid}"):
            Information.model_validate({"choice": {"rule": rule}, "learning": {"kind": kind}})


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"choice": {"rule": "logit", "epsilon": 0.1}}, "'logit' takes temperature; got epsilon"),
        ({"choice": {"rule": "proportional", "temperature": 1}}, "takes no parameter"),
        ({"choice": {"rule": "logit", "temperature": 1e-12}}, "temperature is from 1e-09 to 1e"),
        ({"users": {"population": 3, "per_step": 4, "replacement": False}}, "without replacement"),
        ({"interventions": [{"step": 200, "agent": "a", "kind": "exit"}]}, "past the horizon"),
        ({"interventions": [{"step": 1, "agent": "a", "kind": "price"}]}, "needs 'factor'"),
        (
            {"interventions": [{"step": 1, "agent": "a", "kind": "exit", "steps": 3}]},
            "does not take 'steps'",
        ),
        ({"stagger": 2}, "needs market.timing: asynchronous"),
        ({"segments": [{"name": "x"}, {"name": "x"}]}, "names of their own"),
        ({"draws": "mersenne", "learning": {"per": "topic"}}, "no learning.per topic"),
        (
            {"draws": "mersenne", "segments": [{"name": "x", "choice": {"epsilon": 0.5}}]},
            "an epsilon of a segment's own",
        ),
        ({"draws": "mersenne", "users": {"arrivals": 1}}, "users.arrivals"),
        ({"horizon": 0}, "greater than or equal to 1"),
        ({"horizont": 3}, "Extra inputs are not permitted"),
        ({"learning": {"rate": float("nan")}}, "finite number"),
    ],
)
def test_what_cannot_be_played_is_refused_in_words(spec, words):
    with pytest.raises(ValidationError, match=words):
        Information.model_validate(spec)


def test_an_unknown_rule_gets_its_near_miss():
    with pytest.raises(ScenarioError, match="unknown choice rule 'ucb'; did you mean 'ucb1'"):
        validated(Choice, {"rule": "ucb"})


def test_a_segment_inherits_what_it_does_not_say():
    spec = Information.model_validate(
        {
            "choice": {"epsilon": 0.3, "inertia": 0.1},
            "segments": [
                {"name": "same"},
                {"name": "own", "choice": {"inertia": 0.5}},
                {"name": "other", "choice": {"rule": "logit"}},
            ],
        }
    )
    same, own, other = (kind.choice for kind in spec.kinds_of_user())
    assert (same.epsilon, same.inertia) == (0.3, 0.1)
    assert (own.epsilon, own.inertia) == (0.3, 0.5)
    assert (other.rule, other.theta, other.inertia) == ("logit", 0.1, 0.1)


def test_a_rule_of_somebody_elses_plays_in_a_market(monkeypatch):
    class Contrarian:
        PARAMETER, DEFAULT, RANGE, LEARNING = "", 0.0, (0.0, 0.0), ("drift",)

        @staticmethod
        def score(worth, count, total, theta, code, step, slot):
            return -worth

    monkeypatch.setitem(RULES._made, "contrarian", Contrarian)
    world = a_world(
        {"good": 1.0, "bad": 0.0}, choice={"rule": "contrarian"}, horizon=50,
        users={"population": 1, "per_step": 1},
    )  # fmt: skip
    assert interactions(world.play(1)).filter(seat="bad").height >= 49
