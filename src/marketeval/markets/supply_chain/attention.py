"""How close slogans are to personas, and how that decides whom shoppers notice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.common import Vectors
from marketeval.core.compiled import kernel
from marketeval.core.market import Action

Floats = NDArray[np.float64]


class Resemblance:
    """Cosines of texts with the personas, rounded to 6 decimals; each text is asked for once.

    An empty text or a zero vector has similarity 0 to everything. `references` are fixed slogans
    that are asked for with the personas, so that scores can be put on a common scale.
    """

    def __init__(self, personas: Sequence[str], references: Sequence[str] = ()) -> None:
        self._personas = list(personas)
        self._references = list(references)
        self._vectors: Floats | None = None
        self._known: dict[str, Floats] = {"": np.zeros(len(personas))}

    def asks(self, slogans: Sequence[str]) -> list[str]:
        """The texts whose vectors are needed, the personas first if they are not known yet."""
        new = [one for one in dict.fromkeys(slogans) if one not in self._known]
        if self._vectors is not None or not new:
            return new
        return [*self._personas, *dict.fromkeys([*self._references, *new])]

    def learn(self, texts: Sequence[str], answer: Action) -> str:
        """Take the embedder's answer; what was wrong with it, or an empty text."""
        problem = _problem(answer, len(texts))
        if problem:
            return problem
        values = np.ascontiguousarray(answer.values, np.float64)
        rest = list(texts)
        if self._vectors is None:
            count = len(self._personas)
            self._vectors, values, rest = values[:count], values[count:], rest[count:]
        elif values.shape[1] != self._vectors.shape[1]:
            return f"expected vectors of {self._vectors.shape[1]} numbers, got {values.shape[1]}"
        for text, row in zip(rest, cosines(values, self._vectors), strict=True):
            self._known[text] = row
        return ""

    def of_references(self) -> Floats | None:
        """Similarities of the reference slogans; None before an embedder has answered."""
        return None if self._vectors is None else self.of(self._references)

    def of(self, slogans: Sequence[str]) -> Floats:
        """Similarities, shape (slogans, personas); 0 for texts that no embedder could read."""
        nothing = self._known[""]
        return np.array([self._known.get(one, nothing) for one in slogans]).reshape(
            len(slogans), nothing.size
        )


def _problem(answer: Action, texts: int) -> str:
    if not isinstance(answer, Vectors):
        return str(getattr(answer, "reason", "no vectors"))
    values = np.asarray(answer.values)
    if values.ndim != 2 or values.shape[0] != texts or values.dtype.kind != "f":
        return f"expected {texts} rows of numbers, got an array of shape {values.shape}"
    return "" if np.isfinite(values).all() else "expected finite numbers"


@kernel
def cosines(left: Floats, right: Floats) -> Floats:
    """Cosine of each row of one with each row of the other, to 6 decimals, 0 for zero vectors.

    Sums run from left to right, so that the same vectors give the same bits everywhere.
    """
    out = np.zeros((left.shape[0], right.shape[0]))
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            product, one, other = 0.0, 0.0, 0.0
            for k in range(left.shape[1]):
                product += left[i, k] * right[j, k]
                one += left[i, k] * left[i, k]
                other += right[j, k] * right[j, k]
            if one > 0.0 and other > 0.0:
                cosine = product / (np.sqrt(one) * np.sqrt(other))
                out[i, j] = min(max(np.floor(cosine * 1e6 + 0.5) / 1e6, -1.0), 1.0)
    return out
