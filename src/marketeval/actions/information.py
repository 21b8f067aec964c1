"""What seats of the information-access market may answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
    reason: str = "no recorded outcome"
