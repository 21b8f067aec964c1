"""The rules of the two-sided market as switches, and the two presets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_serializer

from marketeval.core.errors import UnknownNameError
from marketeval.core.spec import Spec

Count = Annotated[int, Field(ge=1)]


class Rules(Spec):
    """Each switch is one rule; the defaults are those of `strict`.

    `offers_last`: ticks of the clock after which a proposal lapses, unless it states an earlier
    end. `opening_balance`: cents each customer starts with, None for credit without limit. `stock`:
    units of each item at each business, None for no limit. `actions_per_tick`: how much one agent
    may do per tick of the clock, and twice more for each message it receives in it.
    """

    preset: Literal["strict", "compatible"] = "strict"
    sender_is_caller: bool = True
    sides_are_kept: bool = True
    one_addressee: bool = True
    ids_are_unique: bool = True
    whole_cents: bool = True
    totals_add_up: bool = True
    items_on_menu: bool = True
    no_surcharge: bool = True
    floors_hold: bool = True
    paid_once: bool = True
    offers_last: Count | None = 20
    books: bool = True
    opening_balance: Annotated[int, Field(ge=0)] | None = None
    stock: Annotated[int, Field(ge=0)] | None = None
    refused_are_delivered: bool = False
    floor_is_private: bool = True
    actions_per_tick: Count | None = 200
    longest_text: Count | None = 20_000

    @model_serializer
    def _differences(self) -> dict[str, object]:
        """The preset, and the switches that differ from it."""
        usual = dict(PRESETS[self.preset])
        return {
            name: value
            for name, value in dict(self).items()
            if name == "preset" or value != usual[name]
        }


STRICT = Rules()
COMPATIBLE = Rules(
    preset="compatible",
    sender_is_caller=False,
    sides_are_kept=False,
    one_addressee=False,
    ids_are_unique=False,
    whole_cents=False,
    totals_add_up=False,
    items_on_menu=False,
    no_surcharge=False,
    floors_hold=False,
    paid_once=False,
    offers_last=None,
    books=False,
    refused_are_delivered=True,
    floor_is_private=False,
    actions_per_tick=None,
    longest_text=None,
)
PRESETS = {"strict": STRICT, "compatible": COMPATIBLE}


def rules_from(given: object) -> object:
    """Rules from a preset's name, or from a mapping of a preset and the switches that differ."""
    if isinstance(given, str):
        if given not in PRESETS:
            raise UnknownNameError("preset of rules", given, PRESETS)
        return PRESETS[given]
    if isinstance(given, dict):
        preset = rules_from(str(given.get("preset", "strict")))
        assert isinstance(preset, Rules)  # a text gives rules or raises
        return {**dict(preset), **given}
    return given
