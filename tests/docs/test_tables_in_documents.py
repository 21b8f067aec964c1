"""Tables in the documents are equal to the code they describe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from documents import ROOT
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from marketeval.choice.preference import KINDS
from marketeval.choice.rules import RULES
from marketeval.experiments.outcomes import NEEDED, OPTIONAL
from marketeval.experiments.scenario import Endpoint, Entries, ModelPrice, Phase, Seat, scenario_of
from marketeval.markets.coupled.scenario import Coupled
from marketeval.markets.information import scenario as market
from marketeval.markets.supply_chain import scenario as retail
from marketeval.markets.two_sided.scenario import TwoSided
from marketeval.markets.two_sided.switches import COMPATIBLE, STRICT
from marketeval.mechanisms.search import RULES as SEARCH_RULES
from marketeval.metrics.base import METRICS
from marketeval.metrics.books import Kept
from marketeval.metrics.population import OfEcosystem
from marketeval.metrics.welfare import OfEpisode

MODEL = ROOT / "docs" / "model.md"
SCENARIOS = ROOT / "docs" / "scenarios.md"
RETAIL = ROOT / "docs" / "supply-chain.md"
BAZAAR = ROOT / "docs" / "two-sided.md"
ECOSYSTEM = ROOT / "docs" / "coupled.md"
SPECS = {
    "Scenario": scenario_of({}),
    "Seat": Seat,
    "Endpoint": Endpoint,
    "Price": ModelPrice,
    "Entries": Entries,
    "Phase": Phase,
    "Market": market.Information,
    "Users": market.Users,
    "Choice": market.Choice,
    "Learning": market.Learning,
    "Utility": market.Utility,
    "Outside": market.Outside,
    "Segment": market.Segment,
    "Intervention": market.Intervention,
}
RETAIL_SPECS = {
    "The market": retail.SupplyChain,
    "Auction": retail.Auction,
    "Attention": retail.Attention,
    "Demand": retail.Demand,
    "Holding": retail.Holding,
    "Credit": retail.Credit,
}


def table(document: Path, heading: str, *, number: int = 0) -> list[list[str]]:
    """The rows of a table under a heading, its head left out."""
    text = document.read_text("utf-8")
    part = re.search(rf"^#+ {heading}$(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert part is not None, heading
    found = re.findall(r"(?:^\|.*\n)+", part[1], re.MULTILINE)
    rows = [line.strip("|").split("|") for line in found[number].splitlines()]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def code(cell: str) -> list[str]:
    """What stands in backticks in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def test_the_valid_pairs_are_those_of_the_choice_rules() -> None:
    written = [(code(row[0])[0], code(row[1])[0]) for row in table(MODEL, "Valid pairs")]
    known = {(name, kind) for name in RULES for kind in RULES[name].LEARNING}
    assert sorted(written) == sorted(known)


def test_an_entrant_gets_what_the_table_of_pairs_says() -> None:
    import numpy as np

    from marketeval.choice.preference import enter

    words = {
        "drift": "p = 1/(n+1), the others times n/(n+1)",
        "exponential": "v = prior",
        "mean": "v = prior, n_a = 0",
        "beta": "a = b = 1",
    }
    for _, kind, _, gets in table(MODEL, "Valid pairs"):
        assert gets.startswith(words[code(kind)[0]])
    first = np.array([[0.6, 0.4, np.nan]] * 4)
    second = np.full((4, 3), 9.0)
    enter(np.arange(4), first, second, 2, np.full(4, 0.25))
    got = dict(zip(KINDS, zip(first[:, 2], second[:, 2], strict=True), strict=True))
    assert got["drift"][0] == pytest.approx(1 / 3)
    assert first[0, :2] == pytest.approx([0.4, 0.4 * 2 / 3])
    assert got["exponential"] == got["mean"] == (0.25, 0.0)
    assert got["beta"] == (1.0, 1.0)


def test_the_rules_and_their_defaults_are_those_of_the_code() -> None:
    rows = {code(row[0])[0]: row[2] for row in table(MODEL, "Choice")}
    assert set(rows) == set(RULES)
    for name, parameter in rows.items():
        own = RULES[name].PARAMETER
        assert (code(parameter) == [own]) if own else (parameter == "none")
        if own:
            assert float(re.findall(r"\(([\d.]+)\)", parameter)[0]) == RULES[name].DEFAULT


def test_the_kinds_of_learning_are_those_of_the_code() -> None:
    assert [code(row[0])[0] for row in table(MODEL, "Learning")] == list(KINDS)


def test_every_metric_is_in_the_table_of_metrics_of_its_family() -> None:
    for document, base in (
        (RETAIL, Kept),
        (BAZAAR, OfEpisode),
        (ECOSYSTEM, OfEcosystem),
        (MODEL, None),
    ):
        written = [name for row in table(document, "Metrics") for name in code(row[0])]
        known = [
            name
            for name in METRICS
            if (issubclass(METRICS[name], base) if base else _of_neither(METRICS[name]))
        ]
        assert sorted({name.partition("(")[0] for name in written}) == sorted(known)


def _of_neither(metric: type) -> bool:
    return not issubclass(metric, (Kept, OfEpisode, OfEcosystem))


def test_the_keys_of_a_two_sided_market_and_their_defaults_are_those_of_the_code() -> None:
    written = {code(row[0])[0]: row[1] for row in table(BAZAAR, "The market")}
    fields = TwoSided.model_fields
    assert list(written) == list(fields)
    for key, shown in written.items():
        default = fields[key].default
        if default is None or isinstance(default, (str, int, float)):
            assert yaml.safe_load(code(shown)[0]) == default, key


def test_the_keys_of_coupled_markets_and_their_defaults_are_those_of_the_code() -> None:
    written = {code(row[0])[0]: row[1] for row in table(ECOSYSTEM, "The market")}
    fields = Coupled.model_fields
    assert list(written) == list(fields)
    for key, shown in written.items():
        default = fields[key].default
        if default and isinstance(default, (str, int, float)):
            assert yaml.safe_load(code(shown)[0]) == default, key


def test_the_switches_of_both_presets_are_those_of_the_code() -> None:
    words = {"yes": True, "no": False, "null": None}
    written = {
        name: [words.get(cell) if cell in words else int(cell) for cell in row[1:3]]
        for row in table(BAZAAR, "Rules")
        for name in code(row[0])
    }
    strict, compatible = dict(STRICT), dict(COMPATIBLE)
    assert set(written) == set(strict) - {"preset"}
    for name, values in written.items():
        assert values == [strict[name], compatible[name]], name


def test_every_search_rule_is_in_the_table_of_rules() -> None:
    written = [name for row in table(BAZAAR, "Search") for name in code(row[0])]
    assert sorted(written) == sorted(SEARCH_RULES)


def test_every_column_of_a_table_of_answers_is_described() -> None:
    rows = table(SCENARIOS, "Tables of recorded answers")
    assert [code(row[0])[0] for row in rows if row[1] == "yes"] == list(NEEDED)
    assert [code(row[0])[0] for row in rows if row[1] == "no"] == list(OPTIONAL)


@pytest.mark.parametrize("heading", RETAIL_SPECS)
def test_the_keys_of_a_supply_chain_and_their_defaults_are_those_of_the_code(heading: str) -> None:
    written = {code(row[0])[0]: row[1] for row in table(RETAIL, heading)}
    fields = RETAIL_SPECS[heading].model_fields
    assert list(written) == list(fields)
    for key, shown in written.items():
        default = fields[key].default
        if isinstance(default, (str, int, float, bool)):
            assert yaml.safe_load(code(shown)[0]) == default, key


@pytest.mark.parametrize("heading", SPECS)
def test_the_keys_of_a_scenario_and_their_defaults_are_those_of_the_code(heading: str) -> None:
    written = {code(row[0])[0]: code(row[2])[0] for row in table(SCENARIOS, heading)}
    fields = SPECS[heading].model_fields
    assert list(written) == list(fields)
    for key, shown in written.items():
        default = fields[key].default
        if default is PydanticUndefined:
            assert shown == "required", key
        elif isinstance(default, BaseModel):
            assert (shown, default) == ("{}", type(default)()), key
        else:
            plain = list(default) if isinstance(default, tuple) else default
            assert yaml.safe_load(shown) == plain, key
