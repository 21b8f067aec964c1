"""What seats of the information-access market may answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

NO_OUTCOME = "no recorded outcome"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """A generator's answers to a batch of questions, graded; all arrays have shape (questions,).

    Parameters
    ----------
    score : quality in [0, 1]; NaN where there is no outcome
    grade : codes of `events.information.GRADES`; None where the data have no grades
    cost_usd, latency_s : None where unknown
    reason : why a score is NaN
    """

    score: NDArray[np.float64]
    grade: NDArray[np.int8] | None = None
    cost_usd: NDArray[np.float64] | None = None
    latency_s: NDArray[np.float64] | None = None
    text: Sequence[str] | None = None
    reason: str = NO_OUTCOME


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """One system's recorded outcomes, one row per recorded answer.

    The answers to question i are rows `starts[i]` to `starts[i + 1]`, one per recorded sample.
    `score` in [0, 1], NaN where the outcome is missing; the other columns are None where the data
    have none; `grade` holds codes of `events.information.GRADES`.
    """

    starts: NDArray[np.int64]
    score: NDArray[np.float64]
    grade: NDArray[np.int8] | None = None
    cost_usd: NDArray[np.float64] | None = None
    latency_s: NDArray[np.float64] | None = None
    text: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessRate:
    """Right with probability `rate`: anew for each answer, or `fixed` per question."""

    rate: float
    fixed: bool = False
    cost_usd: float | None = None
    latency_s: float | None = None


@runtime_checkable
class TableBacked(Protocol):
    """An agent whose answers are known beforehand, so that nobody need be asked."""

    def as_table(self) -> AnswerTable | SuccessRate: ...
