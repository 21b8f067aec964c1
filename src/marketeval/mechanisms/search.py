"""Search over listings: seven rules, one order that cannot tie, right paging.

Every rule ranks by its own score; equal scores keep the order of rating, highest first, and equal
ratings the order of the data. Indexes are built once per catalogue, when first needed. The dense
half of the hybrid rule takes the vectors of an embedder (`meaning`) where it has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from marketeval.core.errors import UnknownNameError
from marketeval.core.streams import Stream
from marketeval.mechanisms.meaning import Meanings, cosines
from marketeval.mechanisms.search_index import Bm25, GramIndex, GramVectors

Integers = NDArray[np.int64]
Order = Literal["as_ranked", "reversed", "shuffled", "rotated"]
DENSE = ("hybrid", "rnr")  # rules that use vectors
RERANKED = 32  # results that the hybrid's second stage looks at


@dataclass(frozen=True, slots=True)
class Listing:
    """What there is to be found: a name, a description, a rating, items in order, amenities."""

    name: str
    description: str
    rating: float
    items: Sequence[str]
    amenities: frozenset[str]

    @property
    def text(self) -> str:
        """What words and vectors are made of."""
        return ". ".join((self.name, self.description, *self.items))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is searched for. `items` are those of the searcher's private wish (rule `optimal`);
    the others narrow the filtered search."""

    query: str = ""
    items: Sequence[str] | None = None
    least_rating: float | None = None
    amenities: Sequence[str] = ()
    menu_items: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """One page of results: places in the catalogue, the number of results and of pages in all."""

    places: Integers
    found: int
    pages: int


class Catalogue:
    """Listings in the order of the data, ready to be searched.

    `meanings` holds the vectors of their texts and of what is searched for, if an embedder gave
    any; they must be there before the first search.
    """

    def __init__(self, listings: Sequence[Listing], meanings: Meanings | None = None) -> None:
        self.listings = listings
        self._meanings = meanings
        self._ratings = np.array([one.rating for one in listings], np.float64)
        self._by_rating: Integers = np.argsort(-self._ratings, kind="stable")
        self._rank = np.empty(len(listings), np.int64)
        self._rank[self._by_rating] = np.arange(len(listings))

    def search(self, rule: str, wanted: Wanted, *, limit: int, page: int) -> Page:
        """The page asked for; pages count from 1, and a limit of 0 or less is one page of all.

        Raises UnknownNameError for a rule that is not in RULES.
        """
        if rule not in RULES:
            raise UnknownNameError("search rule", rule, RULES)
        start = (page - 1) * limit if limit > 0 else 0
        stop = start + limit if limit > 0 else len(self.listings)
        ranked, found = RULES[rule](self, wanted, min(max(stop, 0), len(self.listings)))
        pages = -(-found // limit) if limit > 0 else 1
        places = ranked[start:stop] if page >= 1 else ranked[:0]
        return Page(places, found, pages)

    def simple(self, wanted: Wanted, stop: int) -> tuple[Integers, int]:
        """All by rating; the query is ignored."""
        return self._by_rating[:stop], self._by_rating.size

    def filtered(self, wanted: Wanted, stop: int) -> tuple[Integers, int]:
        """The query, if any, stands in the name or the description, in either case; the rating,
        amenities and items asked for are there."""
        query = wanted.query.lower()
        kept = np.ones(len(self.listings), np.bool_)
        if wanted.least_rating is not None:
            kept &= self._ratings >= wanted.least_rating
        for known, asked in (
            (self._with_amenity, wanted.amenities),
            (self._with_item, wanted.menu_items),
        ):
            for one in dict.fromkeys(asked):
                having = np.zeros(kept.size, np.bool_)
                having[self._by_rating[known.get(one, _NOTHING)]] = True
                kept &= having
        ranked = self._by_rating[kept[self._by_rating]]
        if query:
            texts = self._lowered
            saying = [query in texts[at][0] or query in texts[at][1] for at in ranked.tolist()]
            ranked = ranked[np.array(saying, np.bool_)]
        return ranked[:stop], ranked.size

    def lexical(self, wanted: Wanted, stop: int) -> tuple[Integers, int]:
        """By the share of the query's character 4-grams found in name, description and items."""
        counts = self._grams.counts(wanted.query)
        if counts is None:
            return self.simple(wanted, stop)
        return self._top(counts, stop), counts.size

    def optimal(self, wanted: Wanted, stop: int) -> tuple[Integers, int]:
        """Those whose items include all of the searcher's own wish, by rating."""
        if wanted.items is None:
            raise ValueError("the optimal rule needs the searcher's wish")
        having = [self._with_item.get(item, _NOTHING) for item in wanted.items]
        if not having:
            return self.simple(wanted, stop)
        ranks = having[0]
        for more in having[1:]:
            ranks = np.intersect1d(ranks, more, assume_unique=True)
        return self._by_rating[ranks], ranks.size

    def bm25(self, wanted: Wanted, stop: int) -> tuple[Integers, int]:
        """By BM25 over the words of name, description and items."""
        return self._first(self._words.scores(wanted.query), stop), len(self.listings)

    def hybrid(self, wanted: Wanted, stop: int) -> tuple[Integers, int]:
        """BM25 and dense vectors, fused by reciprocal rank; the first 32 reranked by how many of
        their items the query names verbatim."""
        fused = np.zeros(len(self.listings))
        for scores in (self._words.scores(wanted.query), self._dense(wanted.query)):
            found = self._by_rating[scores[self._by_rating] > 0]  # others have no rank in a stage
            order = found[np.argsort(-scores[found], kind="stable")]
            fused[order] += 1.0 / (60.0 + np.arange(order.size))
        order = self._first(fused, max(stop, RERANKED))
        query = wanted.query.lower()
        first = order[:RERANKED]
        named = [
            -sum(item.lower() in query for item in self.listings[place].items) for place in first
        ]
        order[:RERANKED] = first[np.argsort(named, kind="stable")]
        return order[:stop], len(self.listings)

    def _dense(self, query: str) -> NDArray[np.float64]:
        """Cosines of the embedder's vectors; of hashed 3-grams where it has none for the query."""
        vector = None if self._meanings is None else self._meanings.of(query)
        if vector is None:
            return self._vectors.scores(query)
        return np.asarray(cosines(self._learned, vector))

    @cached_property
    def _learned(self) -> NDArray[np.float64]:
        assert self._meanings is not None  # asked for with a vector at hand
        return self._meanings.matrix([one.text for one in self.listings])

    @cached_property
    def _grams(self) -> GramIndex:
        """name, description, items, each followed by a comma and a space."""
        return GramIndex(
            [
                "".join(f"{part.strip()}, " for part in (one.name, one.description, *one.items))
                for one in self.listings
            ]
        )

    @cached_property
    def _words(self) -> Bm25:
        return Bm25([one.text for one in self.listings])

    @cached_property
    def _vectors(self) -> GramVectors:
        return GramVectors([one.text for one in self.listings])

    @cached_property
    def _lowered(self) -> list[tuple[str, str]]:
        return [(one.name.lower(), one.description.lower()) for one in self.listings]

    @cached_property
    def _with_item(self) -> Mapping[str, Integers]:
        return self._having([one.items for one in self.listings])

    @cached_property
    def _with_amenity(self) -> Mapping[str, Integers]:
        return self._having([one.amenities for one in self.listings])

    def _having(self, features: Sequence[Iterable[str]]) -> Mapping[str, Integers]:
        """The ranks by rating of the listings that have a feature, ascending."""
        ranks: dict[str, list[int]] = {}
        for rank, place in enumerate(self._by_rating.tolist()):
            for one in dict.fromkeys(features[place]):
                ranks.setdefault(one, []).append(rank)
        return {one: np.array(found, np.int64) for one, found in ranks.items()}

    def _top(self, counts: Integers, stop: int) -> Integers:
        """The first `stop` places by count, then rank; whole numbers that cannot tie."""
        size = counts.size
        keys = self._rank - counts * size
        if stop < size // 4:
            chosen = np.argpartition(keys, stop)[:stop]
            return chosen[np.argsort(keys[chosen])]
        return np.argsort(keys)[:stop]

    def _first(self, scores: NDArray[np.float64], stop: int) -> Integers:
        """The first `stop` places by score (none below 0), then rank."""
        ranked = scores[self._by_rating]
        ranks = np.flatnonzero(ranked > 0)
        if 0 < stop < ranks.size // 4:
            found = ranked[ranks]
            last = np.partition(found, found.size - stop)[found.size - stop]
            above, level = ranks[found > last], ranks[found == last]
            ranks = np.concatenate([above, level[: stop - above.size]])
        ranks = ranks[np.argsort(-ranked[ranks], kind="stable")][:stop]
        if ranks.size < stop:
            rest = np.flatnonzero(ranked <= 0)[: stop - ranks.size]
            ranks = np.concatenate([ranks, rest])
        return self._by_rating[ranks]


_NOTHING = np.empty(0, np.int64)
Rule = Callable[[Catalogue, Wanted, int], tuple[Integers, int]]
RULES: Mapping[str, Rule] = {
    "simple": Catalogue.simple,
    "filtered": Catalogue.filtered,
    "lexical": Catalogue.lexical,
    "optimal": Catalogue.optimal,
    "bm25": Catalogue.bm25,
    "hybrid": Catalogue.hybrid,
    "rnr": Catalogue.hybrid,
}


def reorder(places: Integers, order: Order, draws: Stream, *, step: int) -> Integers:
    """A page of results in another order, for studies of position.

    `rotated` moves everybody forward by a keyed number of places, so that over many draws each
    result stands equally often at each place; `shuffled` is a keyed permutation.
    """
    if order == "reversed":
        return places[::-1]
    if order == "shuffled":
        return places[draws.permutation(step, places.size)]
    if order == "rotated" and places.size:
        return np.roll(places, -int(draws.below(places.size, step, 1)[0]))
    return places
