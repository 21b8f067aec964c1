"""What is wrong with a specification is said where the caller wrote it, in one line."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field

from marketeval.core.errors import ScenarioError
from marketeval.core.spec import Spec, fields_at, validated

Share = Annotated[float, Field(ge=0, le=1)]


class Cat(Spec):
    kind: Literal["cat"]
    lives: int = 9


class Dog(Spec):
    kind: Literal["dog"]
    tricks: dict[str, int] = {}


class House(Spec):
    name: str
    warmth: Share | dict[str, Share] = 0.5
    rooms: tuple[int, ...] = ()
    heated: bool = False
    live: bool | int = False
    pets: dict[str, Annotated[Cat | Dog, Field(discriminator="kind")]] = {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"pets": {"tom": {"kind": "cat", "lives": "x"}}}, "pets.tom.lives: "),
        ({"pets": {"tom": {"kind": "cow"}}}, "pets.tom.kind: expected 'cat', 'dog', got 'cow'"),
        (
            {"pets": {"rex": {"kind": "dog", "trick": {}}}},
            "unknown key 'trick' in pets.rex; did you mean 'tricks'? known: kind, tricks",
        ),
        ({"pets": {"rex": {"kind": "dog", "tricks": {"sit": "x"}}}}, "pets.rex.tricks.sit: "),
        ({"warmth": {"hall": 2}}, "warmth.hall: input should be less than or equal to 1, got 2"),
        ({"warmth": 2}, "warmth: input should be less than or equal to 1, got 2"),
        ({"warmth": float("nan")}, "warmth: "),
        ({"rooms": [1, "x"]}, "rooms.1: "),
        ({"rooms": [1, True]}, "expected a number as 'rooms', got True"),
        ({"warmth": {"hall": False}}, "expected a number as 'warmth', got False"),
        (
            {"pets": {"tom": {"kind": "cat", "lives": True}}},
            "pets.tom: expected a number as 'lives', got True",
        ),
        ({"name": None}, "name: "),
    ],
)
def test_a_fault_is_found_where_it_was_written(given, said):
    with pytest.raises(ScenarioError) as caught:
        validated(House, {"name": "home", **given})
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_what_is_missing_is_named():
    with pytest.raises(ScenarioError, match=r"^name: field required"):
        validated(House, {})


def test_truth_values_stand_where_they_are_meant():
    house = validated(House, {"name": "home", "heated": True, "live": True})
    assert (house.heated, house.live) == (True, True)


def test_the_keys_of_a_place_are_those_of_what_stands_there():
    assert fields_at(House, ["pets", "tom", "cat"]) == ["kind", "lives"]
    assert fields_at(House, ["pets", "tom"]) == ["kind", "lives", "tricks"]
    assert fields_at(House, ["rooms"]) == []
