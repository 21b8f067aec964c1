"""What seats of a coupled market answer with; generators with `actions.information.Answers`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A retriever's answer to a batch of queries, one row per query.

    Parameters
    ----------
    documents : document ids, best first
    scores : what the retriever says they are worth; shown in the log, learned from by nobody
    texts : the documents' texts, where it hands them over
    reason : why a row is empty
    """

    documents: Sequence[Sequence[str]]
    scores: Sequence[Sequence[float]] = ()
    texts: Sequence[Sequence[str]] = ()
    reason: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """A router's choice for a batch: for each row the place of its target in the row's options."""

    target: NDArray[np.int64]


@runtime_checkable
class KnownRankings(Protocol):
    """A retriever whose answers to given questions are known beforehand."""

    def rank_all(self, ids: Sequence[str], texts: Sequence[str], depth: int) -> Found:
        """The rankings of questions by id and text."""
        ...

    @property
    def shelf(self) -> Mapping[str, str]:
        """The texts of its documents, where it has any."""
        ...

    @property
    def collections(self) -> Mapping[str, str]:
        """The files its documents or rankings come from, each with the hash of its content."""
        ...

    @property
    def takes_words(self) -> bool:
        """Whether it can be asked any query, and not only the questions of the pool."""
        ...
