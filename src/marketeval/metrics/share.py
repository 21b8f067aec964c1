"""Market share, and the share that the static benchmark would call fair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from marketeval.metrics.base import metric
from marketeval.metrics.series import NOTHING, Block, Part, Reasons, Series
from marketeval.metrics.static import fair_shares
from marketeval.metrics.tables import Floats, Mask

if TYPE_CHECKING:
    from marketeval.metrics.passes import Pass
    from marketeval.metrics.windows import Windows

Target = Literal["equal", "static", "earned"]


@metric
class MarketShare(Series):
    """Share of all interactions that went to an agent, from 0 to 1.

        MS_a(t; w) = interactions with a in the window / all interactions in the window

    The paper, Eq. 6. Every interaction counts, whatever its status. Undefined in a window
    without any. An agent has no row for windows that it was not in the market for.
    """

    def measure(self, block: Block) -> Sequence[Part]:
        """The agents' shares."""
        return [Part(block.shares, [(block.empty, NOTHING)])]


@metric
class FairShare(Series):
    """Share in proportion to the static F-score, among agents in the market, from 0 to 1.

        FS_a = F_a / sum of F over the agents that are there at some time in the window

    The paper, Table 1. Undefined if one of them has no static score, or all scores are 0.
    """

    def measure(self, block: Block) -> Sequence[Part]:
        """The agents' fair shares."""
        fair, reasons = target_shares(block, "static")
        return [Part(fair, reasons)]


@metric
class ShareVersusFair(Series):
    """Market share minus fair share, from -1 to 1 in units of share.

        MS_a(t; w) - FS_a

    The paper's Delta FS (Tables 2 and 3, where it is in percentage points) divided by 100. Only
    agents in the market have a fair share, as in Table 2; Table 3 takes all seven before the
    entry too, and prints +8.62 in Table 2 where its own numbers give +9.02.
    """

    def measure(self, block: Block) -> Sequence[Part]:
        """The agents' differences."""
        fair, reasons = target_shares(block, "static")
        return [Part(block.shares - fair, [(block.empty, NOTHING), *reasons])]


def target_passes(windows: Windows, target: Target) -> Sequence[Pass]:
    """What `target_shares` reads besides the interactions' counts."""
    from marketeval.metrics.passes import Sums

    return [Sums("score", windows)] if target == "earned" else []


def target_shares(block: Block, target: Target) -> tuple[Floats, Reasons]:
    """The target distribution over the agents of each window, and why it is undefined.

    equal: 1 / number of agents there. static: in proportion to the F-score. earned: in
    proportion to the scores q summed over the window (the paper's cumulated mu).
    """
    there = block.present
    reasons: list[tuple[Mask, str]] = []
    if target == "equal":
        merit = np.ones(there.shape)
    elif target == "static":
        merit = np.broadcast_to(block.agents.f_score, there.shape)
        lacking = np.isnan(block.agents.f_score)
        if lacking.all():
            reasons.append((block.peopled, "the log has no static scores"))
        for agent in np.flatnonzero(lacking):
            seat = block.agents.seats[agent]
            reasons.append((there[..., agent], f"no static score for {seat}"))
        reasons.append((block.peopled, "static scores sum to 0"))
    else:
        score, _, above = block.sums("score")
        merit = np.where(above > 0, score, 0.0)  # a count is exact, a running sum of scores is not
        reasons.append((block.empty, NOTHING))
        reasons.append((block.peopled, "nothing was earned in the window"))
    known = ~(np.isnan(merit) & there).any(axis=-1, keepdims=True)
    return fair_shares(np.where(there & known, merit, np.nan)), reasons
