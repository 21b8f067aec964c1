"""Search against a plain reading of the specification, section 5."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from two_sided_games import published

from marketeval.core.errors import UnknownNameError
from marketeval.core.streams import Stream
from marketeval.mechanisms.search import RULES, Catalogue, Listing, Wanted, reorder
from marketeval.mechanisms.search_index import Bm25, GramVectors, normalised


def listing(name, *items, rating=1.0, text="", amenities=()):
    return Listing(name, text, rating, items, frozenset(amenities))


def shingles(text):
    """The set of character 4-grams of a normalised text, one by one."""
    text = " " + re.sub(r"\s+", " ", re.sub(r"[^\w\s]", "", text.lower())).strip() + " "
    text = text.ljust(4)
    return {text[place : place + 4] for place in range(len(text) - 3)}


def plain_lexical(listings, query):
    """Places by score, then rating, then the order of the data."""
    asked = shingles(query)
    texts = [
        one.name.strip() + ", " + one.description.strip() + ", "
        + "".join(item.strip() + ", " for item in one.items)
        for one in listings
    ]  # fmt: skip
    scores = [len(asked & shingles(text)) / len(asked) for text in texts]
    by_rating = sorted(range(len(listings)), key=lambda place: -listings[place].rating)
    return sorted(by_rating, key=lambda place: -scores[place])


words = st.text(alphabet="abcdeé ,.'-_ß1", max_size=14)
listings = st.lists(
    st.builds(
        Listing,
        words,
        words,
        st.sampled_from([0.5, 0.9, 1.0]),
        st.lists(words, max_size=4).map(tuple),
        st.just(frozenset()),
    ),
    min_size=1,
    max_size=12,
)


@given(listings, words)
def test_lexical_is_the_share_of_the_querys_4_grams_by_brute_force(found, query):
    page = Catalogue(found).search("lexical", Wanted(query=query), limit=0, page=1)
    if query.strip(" ,.'-"):
        assert page.places.tolist() == plain_lexical(found, query)


def test_lexical_by_brute_force_over_a_whole_published_population():
    people = published("mexican_100_300")
    found = [
        Listing(one.name, one.description, one.rating, tuple(one.menu_features), frozenset())
        for one in people.businesses
    ]
    catalogue = Catalogue(found)
    for one in people.customers[:20]:
        page = catalogue.search("lexical", Wanted(query=one.request), limit=10, page=2)
        assert page.places.tolist() == plain_lexical(found, one.request)[10:20]
        assert (page.found, page.pages) == (300, 30)


def test_how_good_lexical_is_equals_the_share_stated_for_mexican_100_300():
    """Customers with a fully fitting business in the first k: 50, 81, 86, 87, 93, 95 of 100."""
    people = published("mexican_100_300")
    catalogue = Catalogue(
        [
            Listing(one.name, one.description, one.rating, tuple(one.menu_features), frozenset())
            for one in people.businesses
        ]
    )
    shares = dict.fromkeys((1, 3, 5, 10, 20, 30), 0)
    for one in people.customers:
        places = catalogue.search("lexical", Wanted(query=one.request), limit=0, page=1).places
        first = next(
            rank
            for rank, place in enumerate(places.tolist(), 1)
            if set(one.menu_features) <= set(people.businesses[place].menu_features)
            and all(people.businesses[place].amenity_features.get(a) for a in one.amenity_features)
        )
        for k in shares:
            shares[k] += first <= k
    assert list(shares.values()) == [50, 81, 86, 87, 93, 95]


def test_text_is_normalised_as_specified():
    assert normalised("  Taco--Bar,  #1! ") == " tacobar 1 "
    assert normalised("a") == " a  "  # padded to four characters
    assert normalised("?!") == "    "


SHOPS = (
    listing("Low", "Taco", rating=0.2, text="Best TACO in town", amenities=["Wifi"]),
    listing("High", "Taco", "Soup", rating=0.9, amenities=["Wifi", "Bar"]),
    listing("Twin", "Soup", rating=0.9),
)


def names(rule, limit=0, page=1, **wanted):
    found = Catalogue(SHOPS).search(rule, Wanted(**wanted), limit=limit, page=page)
    return [SHOPS[place].name for place in found.places]


def test_simple_goes_by_rating_and_equal_ratings_by_the_order_of_the_data():
    assert names("simple", query="nothing") == ["High", "Twin", "Low"]
    assert names("lexical", query="") == ["High", "Twin", "Low"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"query": "taco"}, ["Low"]),  # in the description, in either case; not in the items
        ({"query": "HIG"}, ["High"]),
        ({"query": ""}, ["High", "Twin", "Low"]),
        ({"query": "", "least_rating": 0.5}, ["High", "Twin"]),
        ({"query": "", "amenities": ("Wifi", "Bar")}, ["High"]),
        ({"query": "", "menu_items": ("Soup",)}, ["High", "Twin"]),
        ({"query": "%"}, []),  # no wildcards
        ({"query": "'; drop table agents; --"}, []),
    ],
)
def test_filtered_search_heeds_text_and_constraints(wanted, expected):
    assert names("filtered", **wanted) == expected


def test_optimal_keeps_those_with_every_item_of_the_wish():
    assert names("optimal", items=["Soup"]) == ["High", "Twin"]
    assert names("optimal", items=["Soup", "Taco"]) == ["High"]
    assert names("optimal", items=["Cake"]) == []


@pytest.mark.parametrize(
    ("limit", "page", "expected", "pages"),
    [
        (2, 1, ["High", "Twin"], 2),
        (2, 2, ["Low"], 2),
        (2, 3, [], 2),
        (2, 0, [], 2),
        (2, -1, [], 2),
        (0, 1, ["High", "Twin", "Low"], 1),
        (-5, 1, ["High", "Twin", "Low"], 1),
        (3, 1, ["High", "Twin", "Low"], 1),
    ],
)
@pytest.mark.parametrize("rule", ["simple", "lexical", "filtered"])
def test_pages_count_from_one_and_every_result_is_on_one_of_them(
    rule, limit, page, expected, pages
):
    found = Catalogue(SHOPS).search(rule, Wanted(query=""), limit=limit, page=page)
    assert [SHOPS[place].name for place in found.places] == expected
    assert (found.found, found.pages) == (3, pages)


@pytest.mark.parametrize("rule", ["bm25", "hybrid", "rnr"])
def test_the_rules_beyond_put_what_was_named_first(rule):
    shops = [listing(f"Shop {n}", "Bread", "Plum Cake" if n == 5 else "Pie") for n in range(9)]
    found = Catalogue(shops).search(rule, Wanted(query="I want Plum Cake"), limit=3, page=1)
    assert found.places[0] == 5
    assert (found.found, found.pages) == (9, 3)


def test_rnr_is_another_name_for_hybrid():
    assert RULES["rnr"] is RULES["hybrid"]


def test_reranking_puts_first_what_the_first_stage_found_somewhere():
    people = published("mexican_100_300")
    catalogue = Catalogue(
        [
            Listing(one.name, one.description, one.rating, tuple(one.menu_features), frozenset())
            for one in people.businesses
        ]
    )

    def hits(rule, first):
        found = 0
        for one in people.customers:
            page = catalogue.search(rule, Wanted(query=one.request), limit=first, page=1)
            menus = [people.businesses[place].menu_features for place in page.places]
            found += any(set(one.menu_features) <= set(menu) for menu in menus)
        return found

    assert hits("hybrid", 3) > hits("bm25", 10) > hits("bm25", 3)


def sorted_in_full(listings, scores):
    """Places by score, then rating, then the order of the data."""
    by_rating = sorted(range(len(listings)), key=lambda place: -listings[place].rating)
    return sorted(by_rating, key=lambda place: -scores[place])


def plain_hybrid(listings, query):
    """As the rule says, with full sorts alone."""
    texts, fused = [one.text for one in listings], np.zeros(len(listings))
    for scores in (Bm25(texts).scores(query), GramVectors(texts).scores(query)):
        found = [place for place in sorted_in_full(listings, scores) if scores[place] > 0]
        for rank, place in enumerate(found):
            fused[place] += 1.0 / (60.0 + rank)
    order = sorted_in_full(listings, fused)
    named = {
        place: sum(item.lower() in query.lower() for item in listings[place].items)
        for place in order[:32]
    }
    return sorted(order[:32], key=lambda place: -named[place]) + order[32:]


def plain_filter(listings, wanted):
    by_rating = sorted(range(len(listings)), key=lambda place: -listings[place].rating)
    query = wanted.query.lower()
    return [
        place
        for place in by_rating
        if (one := listings[place]).rating >= (wanted.least_rating or 0.0)
        and set(wanted.amenities) <= one.amenities
        and set(wanted.menu_items) <= set(one.items)
        and (query in one.name.lower() or query in one.description.lower())
    ]


few = st.lists(st.sampled_from(["pie", "plum cake", "tea", "Bun"]), max_size=2)
alike = st.builds(  # a few words, so that many tie
    Listing,
    st.sampled_from(["ab", "Ab cd", ""]),
    st.sampled_from(["pie", "tea cd"]),
    st.sampled_from([0.5, 0.9, 1.0]),
    few.map(tuple),
    st.sets(st.sampled_from(["Wifi", "Bar"])).map(frozenset),
)


@given(
    st.lists(alike, min_size=1, max_size=6),
    st.lists(st.integers(0, 5), max_size=200),
    st.builds(
        Wanted,
        query=st.sampled_from(["", "pie", "AB tea", "plum cake and tea", "xyz"]),
        least_rating=st.sampled_from([None, 0.6, 1.0]),
        amenities=st.lists(st.sampled_from(["Wifi", "Bar", "Pool"]), max_size=2).map(tuple),
        menu_items=few.map(tuple),
    ),
    st.integers(0, 40),
    st.integers(1, 4),
)
def test_a_page_is_a_piece_of_the_full_sort(kinds, repeats, wanted, limit, page):
    found = kinds + [kinds[one % len(kinds)] for one in repeats]
    catalogue = Catalogue(found)
    scores = Bm25([one.text for one in found]).scores(wanted.query)
    for rule, whole in (
        ("bm25", sorted_in_full(found, scores)),
        ("hybrid", plain_hybrid(found, wanted.query)),
        ("filtered", plain_filter(found, wanted)),
    ):
        got = catalogue.search(rule, wanted, limit=limit, page=page)
        expected = whole[(page - 1) * limit : page * limit] if limit else whole
        assert got.places.tolist() == expected
        assert got.found == len(whole)


def test_an_unknown_rule_is_named():
    with pytest.raises(
        UnknownNameError, match="unknown search rule 'lexicla'; did you mean 'lexical'"
    ):
        names("lexicla")


def test_the_order_of_a_page_can_be_changed_on_purpose():
    places, draws = np.array([4, 7, 1]), Stream(3, "position")
    assert reorder(places, "as_ranked", draws, step=0).tolist() == [4, 7, 1]
    assert reorder(places, "reversed", draws, step=0).tolist() == [1, 7, 4]
    firsts = [int(reorder(places, "rotated", draws, step=step)[0]) for step in range(900)]
    assert all(abs(firsts.count(one) - 300) < 60 for one in (4, 7, 1))  # 4 standard deviations
    mixed = [tuple(reorder(places, "shuffled", draws, step=step).tolist()) for step in range(900)]
    assert len(set(mixed)) == 6
    assert all(sorted(one) == [1, 4, 7] for one in mixed)
