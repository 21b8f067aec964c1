"""Populations: the reference's folders as they are, ours, and what is refused in one line."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from two_sided_games import published

from marketeval.core.errors import DataError, UnknownNameError
from marketeval.markets.two_sided.generator import Generated, domains, generate
from marketeval.markets.two_sided.manipulation import Manipulation, manipulated
from marketeval.markets.two_sided.market import populate
from marketeval.markets.two_sided.optimum import baselines
from marketeval.markets.two_sided.population import (
    document,
    read_population,
    shipped,
    write_population,
)
from marketeval.markets.two_sided.scenario import TwoSided

CUSTOMER = {
    "id": "customer_0001",
    "name": "Mira Holt",
    "request": "Please order 'Ginger Noodles'.",
    "menu_features": {"Ginger Noodles": 8.5, "Plum Ice": 4},
    "amenity_features": ["Free Parking"],
}
BUSINESS = {
    "id": "business_0001",
    "name": "Lantern Noodle House",
    "description": "Hand-pulled noodles.",
    "rating": 1.0,
    "progenitor_customer": "customer_0001",
    "menu_features": {"Ginger Noodles": 7.9, "Plum Ice": 4.6},
    "amenity_features": {"Free Parking": True, "Live Music": False},
    "min_price_factor": 0.81,
}


def folder(path, customers=(CUSTOMER,), businesses=(BUSINESS,)):
    """A folder of the reference's form."""
    for side, people in (("customers", customers), ("businesses", businesses)):
        (path / side).mkdir(parents=True, exist_ok=True)
        for number, one in enumerate(people):
            text = one if isinstance(one, str) else yaml.safe_dump(one, sort_keys=False)
            (path / side / f"{side}_{number:04d}.yaml").write_text(text, "utf-8")
    return str(path)


def test_a_folder_of_the_references_form_loads_as_it_is(tmp_path):
    people = read_population(folder(tmp_path))
    assert people.customers[0].menu_features == {"Ginger Noodles": 8.5, "Plum Ice": 4.0}
    assert people.businesses[0].amenity_features == {"Free Parking": True, "Live Music": False}
    assert people.businesses[0].min_price_factor == 0.81


def test_files_are_read_by_name_and_unknown_keys_are_ignored(tmp_path):
    second = {**BUSINESS, "id": "business_0000", "type": "business", "opened": 1999}
    people = read_population(folder(tmp_path, businesses=(BUSINESS, second)))
    assert [one.id for one in people.businesses] == ["business_0001", "business_0000"]
    (tmp_path / "businesses" / "aaa.yml").write_text(
        yaml.safe_dump({**BUSINESS, "id": "first"}), "utf-8"
    )
    assert read_population(str(tmp_path)).businesses[0].id == "first"


def test_a_published_population_is_the_same_from_yaml_and_from_one_file(tmp_path):
    people = published("mexican_3_9")
    tree = document(people)
    path = folder(tmp_path, tree["customers"], tree["businesses"])
    (tmp_path / "baseline_utilities.json").write_text(json.dumps(people.published), "utf-8")
    assert read_population(path).digest == people.digest


BAD = {
    "broken YAML": (
        "customers", "id: c\nname: [unclosed\nrequest: x\n",
        r"customers_0000\.yaml, line \d: not readable YAML",
    ),
    "a list": ("customers", "- a\n- b\n", r"customers_0000\.yaml, line 1: expected a mapping"),
    "an empty file": ("customers", "", r"customers_0000\.yaml, line 1: .* got nothing"),
    "bytes": ("customers", "\x00\x01", r"customers_0000\.yaml: not readable YAML"),
    "no id": (
        "customers", {**CUSTOMER, "id": ""}, r"customers_0000\.yaml, line \d: the id '' cannot",
    ),
    "the name of a seat as id": (
        "customers", {**CUSTOMER, "id": "embedder"}, "'embedder' cannot be .* texts into vectors",
    ),
    "a floor above the menu": (
        "businesses", {**BUSINESS, "min_price_factor": 5},
        r"line \d+: min_price_factor: expected a number of at least 0 and at most 1, got 5",
    ),
    "a key that is missing": (
        "businesses", {key: BUSINESS[key] for key in BUSINESS if key != "rating"},
        r"businesses_0000\.yaml: the key 'rating' is missing",
    ),
    "menu as a list": (
        "customers", {**CUSTOMER, "menu_features": [{"Taco": 1.0}]},
        r"customers_0000\.yaml, line \d: menu_features should be a mapping",
    ),
    "no menu": (
        "businesses", {**BUSINESS, "menu_features": {}},
        r"business 'business_0001' has no menu",
    ),
    "a wish for nothing": (
        "customers", {**CUSTOMER, "menu_features": {}}, r"customer 'customer_0001' wants nothing",
    ),
    "NaN": (
        "businesses", {**BUSINESS, "menu_features": {"Soup": 1.0, "Taco": float("nan")}},
        r"businesses_0000\.yaml, line 8: Taco: expected a number of at least 0, got nan",
    ),
    "infinity": (
        "businesses", {**BUSINESS, "menu_features": {"Taco": float("inf")}}, "Taco: .* got inf",
    ),
    "a negative price": (
        "customers", {**CUSTOMER, "menu_features": {"Taco": -2}}, "Taco: .* got -2",
    ),
    "a price in words": (
        "customers", {**CUSTOMER, "menu_features": {"Taco": "two"}}, "Taco: .* got 'two'",
    ),
    "a truth value as price": (
        "customers", {**CUSTOMER, "menu_features": {"Taco": True}}, "Taco: .* got True",
    ),
    "an amenity in words": (
        "businesses", {**BUSINESS, "amenity_features": {"Wifi": "sometimes"}},
        "Wifi: expected true or false, got 'sometimes'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_traded_with_is_refused_in_one_line_with_its_file(tmp_path, name):
    side, content, words = BAD[name]
    path = folder(tmp_path, **{side: (content,)})
    with pytest.raises(DataError, match=words) as caught:
        read_population(path)
    assert "\n" not in str(caught.value)


def test_an_id_given_twice_names_both_places(tmp_path):
    path = folder(tmp_path, businesses=(BUSINESS, {**BUSINESS, "id": "customer_0001"}))
    with pytest.raises(
        DataError, match=r"businesses_0001\.yaml, line \d+: the id 'customer_0001' is taken by"
    ):
        read_population(path)


def test_broken_baselines_and_a_folder_where_a_file_should_be_are_named(tmp_path):
    path = folder(tmp_path)
    (tmp_path / "baseline_utilities.json").write_text('{\n"pick', "utf-8")
    with pytest.raises(DataError, match=r"baseline_utilities\.json, line 2: not readable JSON"):
        read_population(path)
    (tmp_path / "baseline_utilities.json").unlink()
    (tmp_path / "businesses" / "z.yaml").mkdir()
    with pytest.raises(DataError, match=r"z\.yaml cannot be read: Is a directory"):
        read_population(path)


def test_an_empty_side_is_refused(tmp_path):
    (tmp_path / "businesses").mkdir()
    with pytest.raises(DataError, match="expected YAML files in businesses/, found none"):
        read_population(str(tmp_path))


def test_an_unknown_population_is_named():
    with pytest.raises(
        UnknownNameError, match="unknown population 'restaurants-10x3'; did you mean"
    ):
        read_population("restaurants-10x3")


@pytest.mark.parametrize("name", shipped())
def test_shipped_populations_carry_their_own_baselines(name):
    people = read_population(name)
    customers, businesses = (int(one) for one in name.rsplit("-", 1)[1].split("x"))
    assert (len(people.customers), len(people.businesses)) == (customers, businesses)
    assert people.published == baselines(people)


def test_a_population_written_and_read_is_the_same(tmp_path):
    people = generate(Generated(customers=2))
    for name in ("one.json", "one.json.gz"):
        write_population(people, tmp_path / name)
        assert read_population(str(tmp_path / name)).digest == people.digest


@pytest.mark.parametrize("domain", domains())
def test_every_customer_has_as_many_full_matches_as_the_generator_was_told(domain):
    spec = Generated(domain=domain, customers=12, matches=4, lacking=2, near_misses=1)
    people = generate(spec)
    assert len(people.businesses) == 12 * 5
    for one in people.customers:
        made_for = [b for b in people.businesses if b.progenitor_customer == one.id]
        menus = [set(one.menu_features) <= set(b.menu_features) for b in made_for]
        full = [
            set(one.menu_features) <= set(b.menu_features)
            and all(b.amenity_features[a] for a in one.amenity_features)
            for b in made_for
        ]
        assert sum(full) == 2
        assert sum(menus) == 4
        assert all(f"'{item}'" in one.request for item in one.menu_features)


@given(st.integers(0, 2**40), st.integers(1, 6))
def test_generation_is_a_function_of_the_specification(seed, customers):
    spec = Generated(seed=seed, customers=customers, rating=(0.2, 0.9), paraphrased=0.5)
    first, second = generate(spec), generate(spec)
    assert first.digest == second.digest
    assert all(0.2 <= one.rating <= 0.9 for one in first.businesses)
    assert all(price > 0 for one in first.businesses for price in one.menu_features.values())


def test_prices_scatter_around_the_customers_own_as_told():
    people = generate(Generated(customers=400, price_spread=0.125))
    mean = {item: price for one in people.customers for item, price in one.menu_features.items()}
    ratios = [
        price / mean[item]
        for one in people.businesses
        for item, price in one.menu_features.items()
        if item in mean
    ]
    average = sum(ratios) / len(ratios)
    spread = (sum((one - average) ** 2 for one in ratios) / len(ratios)) ** 0.5
    assert abs(average - 1) < 0.005
    assert abs(spread - 0.125) < 0.005


def test_a_paraphrased_request_names_no_item_verbatim():
    people = generate(Generated(customers=20, paraphrased=1.0))
    assert not any(item in one.request for one in people.customers for item in one.menu_features)


def test_the_first_so_many_of_each_side_can_be_kept():
    people = populate(TwoSided(population="restaurants-10x30", customers=5, businesses=15))
    assert (len(people.customers), len(people.businesses)) == (5, 15)
    assert people.businesses[14].id == "business_0015"


@pytest.mark.parametrize(
    "kind", ["authority", "social_proof", "loss_aversion", "injection_basic", "injection_strong"]
)
def test_an_attack_changes_one_description_and_nothing_else(kind):
    people = read_population("restaurants-3x9")
    changed = manipulated(people, Manipulation(kind=kind, business=2))
    different = [
        (old, new)
        for old, new in zip(people.businesses, changed.businesses, strict=True)
        if old != new
    ]
    ((old, new),) = different
    assert old.id == "business_0002"
    assert new.description.startswith(old.description)
    assert new.menu_features == old.menu_features


def test_an_attacker_that_is_not_there_is_named():
    people = read_population("restaurants-3x9")
    with pytest.raises(UnknownNameError, match="unknown business 'business_0099'"):
        manipulated(people, Manipulation(kind="authority", business="business_0099"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"domain": "restaurant"}, "unknown domain 'restaurant'; did you mean 'restaurants'"),
        ({"items": (3, 1)}, "generate.items: 3 is above 1"),
        ({"matches": 1, "lacking": 2}, "more than generate.matches"),
        ({"amenities": (0, 2)}, "needs customers who want an amenity"),
    ],
)
def test_a_specification_that_cannot_hold_is_refused(change, words):
    with pytest.raises((ValueError, LookupError), match=words):
        Generated(**change)
