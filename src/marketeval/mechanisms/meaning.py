"""What texts mean, as vectors that an embedder gave: kept by text, compared by cosine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import kernel

Floats = NDArray[np.float64]


class Meanings:
    """Vectors by text. A text that no embedder could read has none."""

    def __init__(self) -> None:
        self._known: dict[str, Floats] = {}
        self._size = 0

    def unknown(self, texts: Iterable[str]) -> list[str]:
        """Those of the texts that have no vector yet, each once, in order."""
        return [one for one in dict.fromkeys(texts) if one and one not in self._known]

    def learn(self, texts: Sequence[str], values: Any) -> str:  # any: whatever was answered
        """Take an embedder's vectors, shape (texts, size); what was wrong with them, or ''."""
        try:
            rows = np.asarray(values, np.float64)
        except (TypeError, ValueError):
            return "expected rows of numbers"
        if rows.ndim != 2 or rows.shape[0] != len(texts) or not rows.shape[1]:
            return f"expected {len(texts)} rows of numbers, got an array of shape {rows.shape}"
        if self._size and rows.shape[1] != self._size:
            return f"expected vectors of {self._size} numbers, got {rows.shape[1]}"
        if not np.isfinite(rows).all():
            return "expected finite numbers"
        self._size = rows.shape[1]
        self._known.update(zip(texts, rows, strict=True))
        return ""

    def of(self, text: str) -> Floats | None:
        """The vector of a text, shape (size,)."""
        return self._known.get(text)

    def matrix(self, texts: Sequence[str]) -> Floats:
        """The vectors of texts, shape (texts, size); zeros where there is none."""
        nothing = np.zeros(self._size)
        rows = [self._known.get(one, nothing) for one in texts]
        return np.array(rows).reshape(len(texts), self._size)


@kernel
def cosines(matrix: Floats, vector: Floats) -> Floats:
    """Cosine of each row with a vector, to 6 decimals; 0 for zero vectors; shape (rows,).

    Sums run from left to right, so that the same vectors give the same bits everywhere.
    """
    out = np.zeros(matrix.shape[0])
    other = 0.0
    for k in range(vector.size):
        other += vector[k] * vector[k]
    for i in range(matrix.shape[0]):
        product, one = 0.0, 0.0
        for k in range(vector.size):
            product += matrix[i, k] * vector[k]
            one += matrix[i, k] * matrix[i, k]
        if one > 0.0 and other > 0.0:
            cosine = product / np.sqrt(one * other)
            out[i] = np.floor(cosine * 1e6 + 0.5) / 1e6
    return out
