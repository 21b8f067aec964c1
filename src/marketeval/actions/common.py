"""Actions that several families take."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """An embedder's answer: one row per text of the request's batch, any length.

    `embedder` is the id of the embedder, `sha256` the hash of its weights (or code and data).
    """

    values: NDArray[np.float64]
    embedder: str
    sha256: str


def first_object(text: str) -> dict[str, Any]:  # any: JSON
    """The JSON object in a text, whatever prose or fences stand around it.

    >>> first_object('Sure! ```json {"bids": {}} ``` Good luck.')
    {'bids': {}}

    Raises ValueError if there is none.
    """
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            found, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
        at = text.find("{", at + 1)
    raise ValueError(f"expected a JSON object, got {text[:60]!r}")
