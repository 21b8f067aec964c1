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
    """A generator's answers to a batch of questions; all arrays have shape (questions,).

    Parameters
    ----------
    score : quality in [0, 1]; NaN where the judge has to grade the text, or, without a text, where
        there is no outcome
    grade : codes of `events.information.GRADES`; None where the data have no grades
    cost_usd, latency_s : None where unknown
    text : the answers; "" where there is none
    cited : places of the documents of its context that each answer rests on, most important first
    reason : why there is no outcome, for all rows or one per row
    """

    score: NDArray[np.float64]
    grade: NDArray[np.int8] | None = None
    cost_usd: NDArray[np.float64] | None = None
    latency_s: NDArray[np.float64] | None = None
    text: Sequence[str] | None = None
    cited: Sequence[Sequence[int]] | None = None
    reason: str | Sequence[str] = NO_OUTCOME


@dataclass(frozen=True, slots=True, kw_only=True)
class Grades:
    """A judge's grades of a batch of answers; all arrays have shape (answers,).

    Parameters
    ----------
    score : quality in [0, 1]; NaN where the judge gave no readable grade
    grade : codes of `events.information.GRADES`; None where the judge only scores
    reason : why a score is NaN, one per row
    judges : the judges behind a panel's score; their own scores and grades stand in `scores` and
        `grades`, of shape (judges, answers), for their agreement
    """

    score: NDArray[np.float64]
    grade: NDArray[np.int8] | None = None
    reason: Sequence[str] = ()
    judges: Sequence[str] = ()
    scores: NDArray[np.float64] | None = None
    grades: NDArray[np.int8] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Whom the users of a batch ask: for each its place among the options of its row, from 0.

    Parameters
    ----------
    agent : shape (users,); -1 where a user names nobody
    reason : why it does not, one per row; empty where there is nothing to say
    """

    agent: NDArray[np.int64]
    reason: Sequence[str] = ()


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
