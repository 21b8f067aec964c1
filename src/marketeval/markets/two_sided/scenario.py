"""The two-sided market as a frozen specification: what a scenario file may say."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from marketeval.core.errors import UnknownNameError
from marketeval.core.spec import Spec
from marketeval.markets.two_sided.generator import Generated
from marketeval.markets.two_sided.manipulation import Manipulation
from marketeval.markets.two_sided.switches import STRICT, Count, Rules, rules_from
from marketeval.mechanisms.search import RULES, Order


class TwoSided(Spec):
    """One two-sided market: customers meet businesses through search, talk, proposals, payments.

    `population` is a shipped name, a folder of the reference's form, or a JSON file; `generate`
    makes one instead. `customers` and `businesses` keep the first so many. `limit` is the number of
    results per page, 0 for all; `order` changes the order of a page on purpose. `steps` are the
    decisions a customer may take, `rounds` the end of the episode, `attempts` how often a business
    is asked for one answer, what could not be read included, `memory` the events and proposals a
    briefing holds, `briefing` about how many characters it may have (models with a small context
    need fewer). `forms: known` has the JSON schemas of answers name only the items, businesses and
    proposals that the seat knows. `days` above 1 repeats the market, with ratings moved by
    `learning` toward the share of the day's buyers whose needs were met.
    """

    population: str = "restaurants-10x30"
    generate: Generated | None = None
    customers: Count | None = None
    businesses: Count | None = None
    rules: Rules = STRICT
    search: str = "lexical"
    limit: int = 10
    order: Order = "as_ranked"
    steps: Count = 100
    rounds: Count = 1000
    attempts: Count = 3
    memory: Count = 50
    briefing: Annotated[int, Field(ge=1000)] = 16_000
    prompts: Literal["v1"] = "v1"
    forms: Literal["open", "known"] = "open"
    manipulation: tuple[Manipulation, ...] = ()
    days: Count = 1
    learning: Annotated[float, Field(ge=0, le=1)] = 0.2

    @field_validator("rules", mode="before")
    @classmethod
    def _preset(cls, given: Any) -> Any:  # any: whatever the YAML held
        return rules_from(given)

    @field_validator("search")
    @classmethod
    def _known_rule(cls, name: str) -> str:
        if name not in RULES:
            raise UnknownNameError("search rule", name, RULES)
        return name
