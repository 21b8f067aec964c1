"""A deterministic lexical embedder without dependencies: a small lexicon and hashed n-grams.

A text becomes counts of the ideas its words point to (`lexicon.txt`) and of hashed character
trigrams of its words, the latter at a lower weight; the vector has unit length. It works in any
language for words that texts share, and across English, German, Spanish and French for the ideas
of the lexicon. It is no model of meaning: use it for tests and to try things out.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
VERSION = "1"
GRAMS = 192  # hashed places
IDEA, GRAM = 1.0, 0.15  # weights
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


def _lexicon() -> list[tuple[str, tuple[str, ...]]]:
    lines = (resources.files("marketeval.llm") / "lexicon.txt").read_text("utf-8").splitlines()
    pairs = (line.split(":", 1) for line in lines if line and not line.startswith("#"))
    return [(name, tuple(stems.split())) for name, stems in pairs]


class Lexical:
    """The embedder described above; the same text gives the same bits everywhere."""

    local = True
    name = f"lexical {VERSION}"

    def __init__(self) -> None:
        self._ideas = _lexicon()
        self._stems = {
            stem: place for place, (_, stems) in enumerate(self._ideas) for stem in stems
        }
        whole = repr((VERSION, GRAMS, IDEA, GRAM, self._ideas)).encode()
        self.sha256 = hashlib.sha256(whole).hexdigest()
        self._one = lru_cache(maxsize=1 << 14)(self._vector)

    def embed(self, texts: Sequence[str], /) -> Floats:
        """Unit vectors of shape (texts, ideas + hashed places); a text without words gives 0."""
        return np.array([self._one(text) for text in texts]).reshape(len(texts), -1)

    def _vector(self, text: str) -> Floats:
        vector = np.zeros(len(self._ideas) + GRAMS)
        for word in _WORD.findall(text.lower()):
            idea = self._idea(word)
            if idea is not None:
                vector[idea] += IDEA
            padded = f" {word} "
            for at in range(len(padded) - 2):
                place = zlib.crc32(padded[at : at + 3].encode()) % GRAMS
                vector[len(self._ideas) + place] += GRAM
        length = float(np.sqrt(sum(float(one) * float(one) for one in vector)))
        return vector / length if length else vector

    def _idea(self, word: str) -> int | None:
        """The idea of the longest beginning that the lexicon knows; short ones must be whole."""
        for size in range(len(word), 2, -1):
            place = self._stems.get(word[:size])
            if place is not None and (size >= 4 or size == len(word)):
                return place
        return None
