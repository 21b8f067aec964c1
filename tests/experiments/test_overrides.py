"""Keys of --set and of controls: in full, by a unique end, into lists, and null to remove."""

from __future__ import annotations

from typing import Any

import pytest

from marketeval.core.errors import UnknownNameError, UsageError
from marketeval.experiments.scenario import (
    Scenario,
    Tree,
    check,
    fill_seat,
    parse_seeds,
    read_tree,
    shipped,
    with_overrides,
)


def changed(name: str, key: str, value: Any) -> Scenario:  # any: what YAML can hold
    return check(with_overrides(read_tree(name), {key: value}))


@pytest.mark.parametrize("key", ["epsilon", "choice.epsilon", "market.choice.epsilon"])
def test_a_value_may_be_named_by_any_unique_end_of_its_path(key: str) -> None:
    assert changed("late-entry-qwen3", key, 0.25).market.choice.epsilon == 0.25


@pytest.mark.parametrize("key", ["per_step", "users.per_step", "market.users.per_step"])
def test_an_end_of_several_names_is_looked_up_too(key: str) -> None:
    assert changed("late-entry-qwen3", key, 3).market.users.per_step == 3


def test_what_may_be_left_out_is_reached_by_its_path() -> None:
    tree = with_overrides(read_tree("late-entry-qwen3"), {"outside.utility": 0.2})
    outside = check(tree).market.outside
    assert outside is not None
    assert (outside.utility, outside.patience) == (0.2, 5)
    assert check(with_overrides(tree, {"outside": None})).market.outside is None


def test_a_short_name_never_means_what_may_be_left_out() -> None:
    assert changed("late-entry-qwen3", "rate", 0.2).market.learning.rate == 0.2


def test_a_segment_is_meant_by_its_name_or_by_its_place() -> None:
    for key in ("market.segments.experts.weight", "market.segments.0.weight"):
        if key.endswith("0.weight"):
            with pytest.raises(UnknownNameError, match="experts"):
                changed("segments-small", key, 2)
            continue
        segments = changed("segments-small", key, 2).market.segments
        assert [(one.name, one.weight) for one in segments] == [("experts", 2), ("casual", 3)]


def test_an_entry_without_a_name_is_meant_by_its_place() -> None:
    changes = changed("segments-large", "market.interventions.0.factor", 0.5).market.interventions
    assert changes[0].factor == 0.5
    assert len(changes) == 5


def test_null_removes_a_seat_a_segment_and_a_value() -> None:
    assert "qwen3" not in changed("late-entry-qwen3", "seats.qwen3", None).seats
    assert [
        one.name
        for one in changed("segments-small", "market.segments.casual", None).market.segments
    ] == ["experts"]
    assert changed("late-entry-qwen3", "horizon", None).market.horizon == 200


def test_null_for_what_is_not_there_is_refused() -> None:
    for key in ("seats.qwen", "market.horzion", "market.users.per_stp", "controls.x.y.z"):
        if key.startswith("controls"):
            continue
        with pytest.raises(UnknownNameError):
            changed("late-entry-qwen3", key, None)
    with pytest.raises(UnknownNameError, match="did you mean 'experts'"):
        changed("segments-small", "market.segments.expert", None)


def test_seats_may_have_dots_in_their_names() -> None:
    tree: Tree = {"name": "x", "seats": {"gpt-4.1": "bernoulli:0.5", "gpt-4": "bernoulli:0.4"}}
    seats = check(with_overrides(tree, {"seats.gpt-4.1.enters": 7})).seats
    assert (seats["gpt-4.1"].enters, seats["gpt-4"].enters) == (7, 0)
    assert seats["gpt-4.1"].agent == "bernoulli:0.5"
    seats = check(with_overrides(tree, {"seats.o3.5.agent": "bernoulli:0.1"})).seats
    assert seats["o3.5"].agent == "bernoulli:0.1"
    fill_seat(tree, "qwen-2.5", "bernoulli:0.2")
    fill_seat(tree, "gpt-4.1", "bernoulli:0.9")
    seats = check(tree).seats
    assert seats["qwen-2.5"].agent == "bernoulli:0.2"
    assert seats["gpt-4.1"].agent == "bernoulli:0.9"
    assert tree["seats"]["gpt-4"] == "bernoulli:0.4"


def test_changes_leave_the_tree_they_start_from_alone() -> None:
    tree = read_tree("segments-large")
    before = repr(tree)
    with_overrides(tree, {"market.segments.loyal.weight": 9, "seats.atlas.label": "A"})
    assert repr(tree) == before


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_scenario_is_checked_as_it_stands(name: str) -> None:
    assert check(read_tree(name)).title


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("3", [3]),
        ("1-4", [1, 2, 3, 4]),
        ("7-8, 1,4", [1, 4, 7, 8]),
        ("2,2,1-2", [1, 2]),
        ("0", [0]),
    ],
)
def test_seeds_are_read_ascending_and_each_once(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


def test_the_largest_seed_is_below_two_to_the_63() -> None:
    assert parse_seeds(str(2**63 - 1)) == [2**63 - 1]
    with pytest.raises(UsageError, match="below"):
        parse_seeds(str(2**63))
