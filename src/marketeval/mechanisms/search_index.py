"""The indexes behind search: character 4-grams, BM25 over words, and hashed dense vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import kernel

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
_ODD = re.compile(r"[^\w\s]")
_WORD = re.compile(r"\w+")


def normalised(text: str) -> str:
    """Lower case, word characters and single spaces only, one space on each side, at least four
    characters.

    >>> normalised("Taco,  'Al  Pastor'!")
    ' taco al pastor '
    """
    return f" {' '.join(_ODD.sub('', text.lower()).split())} ".ljust(4)


def grams(texts: Sequence[str], length: int) -> tuple[Integers, NDArray[np.uint64]]:
    """Every character gram of every text: its text's number and its code, repeats included.

    A code is a polynomial in the characters' own code points modulo 2**64; for grams of at most
    three characters, or of characters below 2**16, no two grams share one.
    """
    joined = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    sizes = np.array([len(one) for one in texts], np.int64)
    ends = np.cumsum(sizes)
    owner = np.repeat(np.arange(sizes.size), sizes)
    starts = np.flatnonzero(np.arange(joined.size) + length <= ends[owner])
    codes = np.zeros(starts.size, np.uint64)
    for place in range(length):
        codes = codes * np.uint64(1 << 16 if length > 3 else 1 << 21) + joined[starts + place]
    return owner[starts], codes


class _Postings:
    """Distinct (term, text) pairs: the texts of each term, in one array."""

    def __init__(self, owner: Integers, codes: NDArray[np.uint64]) -> None:
        self.terms, term = np.unique(codes, return_inverse=True)
        texts = np.int64(owner.max(initial=0) + 1)
        pairs = term.astype(np.int64) * texts + owner
        pairs.sort()  # sorting many million numbers is faster than a hash table of them
        pairs = pairs[np.diff(pairs, prepend=-1) != 0]
        self.texts = (pairs % texts).astype(np.int32)
        self.starts = np.searchsorted(pairs, np.arange(self.terms.size + 1) * texts)

    def find(self, codes: NDArray[np.uint64]) -> Integers:
        """The numbers of those of the given terms that are known."""
        if not self.terms.size:
            return np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(self.terms, codes), self.terms.size - 1)
        return np.asarray(at[self.terms[at] == codes])


@kernel
def _count(
    terms: Integers, starts: Integers, texts: NDArray[np.int32], counts: Integers
) -> Integers:
    for term in terms:
        for place in range(starts[term], starts[term + 1]):
            counts[texts[place]] += 1
    return counts


class GramIndex:
    """How many of a query's distinct character 4-grams each text holds."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._size = len(texts)
        self._postings = _Postings(*grams([normalised(one) for one in texts], 4))

    def counts(self, query: str) -> Integers | None:
        """Distinct 4-grams of the query in each text, shape (texts,); None for an empty query.

        Divided by the number of the query's own 4-grams it is the lexical score; the order is
        the same.
        """
        text = normalised(query)
        if text.isspace():
            return None
        _, codes = grams([text], 4)
        terms = self._postings.find(np.unique(codes))
        postings = self._postings
        return _count(terms, postings.starts, postings.texts, np.zeros(self._size, np.int64))


class Bm25:
    """BM25 with the idf that cannot turn negative (Robertson and Zaragoza 2009; Lucene's form).

        sum over query words of ln(1 + (N - n + 0.5) / (n + 0.5)) f (k + 1) / (f + k (1 - b + b L))

    f: the word's frequency in the text, n: texts with the word, L: length over mean length.
    """

    def __init__(self, texts: Sequence[str], *, k: float = 1.2, b: float = 0.75) -> None:
        found: dict[str, dict[int, int]] = {}
        lengths = np.zeros(len(texts))
        for place, text in enumerate(texts):
            words = _WORD.findall(text.lower())
            lengths[place] = len(words)
            for word in words:
                counts = found.setdefault(word, {})
                counts[place] = counts.get(place, 0) + 1
        norm = k * (1 - b + b * lengths / max(lengths.mean() if lengths.size else 1.0, 1e-9))
        self._size = len(texts)
        self._weights: dict[str, tuple[Integers, Floats]] = {}
        for word, counts in found.items():
            places = np.array(list(counts), np.int64)
            often = np.array(list(counts.values()), np.float64)
            idf = np.log(1 + (len(texts) - places.size + 0.5) / (places.size + 0.5))
            self._weights[word] = places, idf * often * (k + 1) / (often + norm[places])

    def scores(self, query: str) -> Floats:
        """The score of each text, shape (texts,); words of the query count once."""
        scores = np.zeros(self._size)
        for word in dict.fromkeys(_WORD.findall(query.lower())):
            if word in self._weights:
                places, weights = self._weights[word]
                scores[places] += weights
        return scores


class GramVectors:
    """Dense vectors without a model: character 3-grams, weighted by idf, hashed with signs into
    a fixed number of dimensions (Weinberger et al. 2009), compared by cosine."""

    def __init__(self, texts: Sequence[str], *, dimensions: int = 256) -> None:
        self._dimensions = dimensions
        owner, codes = grams([normalised(one) for one in texts], 3)
        self._postings = _Postings(owner, codes)
        spread = np.diff(self._postings.starts)
        self._idf = np.log(1 + len(texts) / np.maximum(spread, 1))
        term = np.repeat(np.arange(spread.size), spread)
        cells = self._postings.texts.astype(np.int64) * dimensions
        self._matrix = self._vectors(term, cells, len(texts))

    def scores(self, query: str) -> Floats:
        """Cosine with each text, shape (texts,)."""
        _, codes = grams([normalised(query)], 3)
        terms = self._postings.find(np.unique(codes))
        vector = self._vectors(terms, np.zeros(terms.size, np.int64), 1)
        return np.asarray(self._matrix @ vector[0])

    def _vectors(self, term: Integers, cells: Integers, rows: int) -> Floats:
        mixed = self._postings.terms[term] * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
        sign = np.where(mixed & np.uint64(1), 1.0, -1.0)
        cells = cells + ((mixed >> np.uint64(1)) % np.uint64(self._dimensions)).astype(np.int64)
        sums = np.bincount(cells, sign * self._idf[term], minlength=rows * self._dimensions)
        matrix = sums.reshape(rows, self._dimensions)
        norms = np.sqrt((matrix * matrix).sum(axis=1, keepdims=True))
        return np.asarray(matrix / np.maximum(norms, 1e-12))
