"""How concentrated a market is, and how far its shares are from a target.

The formulas are functions of shares; the last axis runs over agents, and NaN is an agent that is
not in the market.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from marketeval.core.errors import UsageError
from marketeval.metrics.base import metric
from marketeval.metrics.series import NOTHING, Block, Part, Series, total
from marketeval.metrics.share import Target, target_passes, target_shares
from marketeval.metrics.tables import Floats
from marketeval.metrics.windows import at_least

if TYPE_CHECKING:
    from marketeval.core.log import LogReader
    from marketeval.metrics.passes import Pass


def hhi(shares: ArrayLike) -> Floats:
    """The sum of squared shares (Rhoades, 1993), from 1/n to 1 for shares that sum to 1.

    Shares in percent give points, up to 10,000: the paper's Table 2, before the entry, is

    >>> round(float(hhi([29.4, 21.0, 14.4, 13.8, 12.8, 8.6])), 2)
    1940.96
    """
    return total(np.square(np.asarray(shares, np.float64)))


def concentration_ratio(shares: ArrayLike, k: int) -> Floats:
    """The sum of the k largest shares, from k/n to 1.

    >>> round(float(concentration_ratio([0.4, 0.3, 0.2, 0.1], 2)), 6)
    0.7
    """
    values = np.asarray(shares, np.float64)
    ranked = -np.sort(-values, axis=-1)  # NaN goes last
    return total(np.where(np.isnan(values).all(axis=-1, keepdims=True), np.nan, ranked)[..., :k])


def entropy(shares: ArrayLike, *, normalised: bool = False) -> Floats:
    """Shannon's entropy of shares, in nats from 0 to ln n; normalised by ln n, from 0 to 1.

        - sum of MS_a ln MS_a

    Normalised, it is NaN for a single agent, where ln n is 0.

    >>> round(float(entropy([0.5, 0.5])), 4), float(entropy([0.5, 0.5], normalised=True))
    (0.6931, 1.0)
    """
    values = np.asarray(shares, np.float64)
    parts = -values * np.log(np.where(values > 0, values, 1.0))
    result = total(np.where(np.isnan(values), np.nan, parts)) + 0.0
    if not normalised:
        return result
    most = np.log(np.maximum(np.sum(~np.isnan(values), axis=-1), 1))
    out = np.full_like(most, np.nan)
    return np.asarray(np.divide(result, most, out=out, where=most > 0))


@metric
class HHI(Series):
    """Herfindahl-Hirschman index: the sum of squared shares, from 1/n to 1.

        HHI(t; w) = sum over agents of MS_a(t; w)^2

    The paper, Eq. 9. `points=true` multiplies by 10,000, the base of the paper's Tables 2 and 3,
    whose values are pooled over a half (no window). The note says the base.
    """

    points: bool = False

    def measure(self, block: Block) -> Sequence[Part]:
        """The market's index."""
        base = "points, 10,000 = monopoly" if self.points else "from 0 to 1, 1 = monopoly"
        scale = 10_000 if self.points else 1
        return [Part(scale * hhi(block.shares), [(block.empty, NOTHING)], note=base)]


@metric
class EED(Series):
    """Expected exposure disparity: the squared length of the shares, from 1/n to 1.

        EE-D(t; w) = || MS(t; w) ||_2^2

    The paper, section 5.2, after Diaz et al. (2020); the same number as HHI on the base of 1.
    """

    def measure(self, block: Block) -> Sequence[Part]:
        """The market's disparity."""
        return [Part(hhi(block.shares), [(block.empty, NOTHING)])]


@metric
class Dominance(Series):
    """How far the most favoured agent's share is above its target, from -1 to 1.

        max over agents of ( MS_a(t; w) - target_a )

    The paper, Eq. 10. `own=true` is its other reading: the largest share minus the target of the
    agent that has it (of several, the first in the table of agents). `target` is equal, static
    (F-scores) or earned (scores summed in the window).
    """

    target: Target = "equal"
    own: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_target(self, self.target)

    def passes(self, log: LogReader, /) -> Sequence[Pass]:
        """Interactions, and what the target is made of."""
        return [*super().passes(log), *target_passes(self.windows(log), self.target)]

    def measure(self, block: Block) -> Sequence[Part]:
        """The market's dominance."""
        target, reasons = target_shares(block, self.target)
        above = block.shares - target
        order = block.counts if self.own else np.where(np.isnan(above), -np.inf, above)
        top = np.argmax(order, axis=-1)[..., None]
        values = np.take_along_axis(above, top, axis=-1)[..., 0]
        return [Part(values, [(block.empty, NOTHING), *reasons])]


@metric
class ExpectedExposure(Series):
    """Squared distance of the shares from a target, from 0 to below 2.

        EE(t; w) = || MS(t; w) - target ||_2^2

    The paper, Eq. 11, after Diaz et al. (2020). `target` as in Dominance.
    """

    target: Target = "equal"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_target(self, self.target)

    def passes(self, log: LogReader, /) -> Sequence[Pass]:
        """Interactions, and what the target is made of."""
        return [*super().passes(log), *target_passes(self.windows(log), self.target)]

    def measure(self, block: Block) -> Sequence[Part]:
        """The market's distance from the target."""
        target, reasons = target_shares(block, self.target)
        return [Part(hhi(block.shares - target), [(block.empty, NOTHING), *reasons])]


@metric
class CR(Series):
    """Concentration ratio: the sum of the k largest shares, from k/n to 1.

    CR4 of industrial economics is `CR(4)`. With at most k agents it is 1.
    """

    k: int = field(default=4, kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "k", self.k, 1)

    def measure(self, block: Block) -> Sequence[Part]:
        """The market's ratio."""
        return [Part(concentration_ratio(block.shares, self.k), [(block.empty, NOTHING)])]


@metric
class Entropy(Series):
    """Shannon's entropy of the shares, from 0 (monopoly) to ln n, in nats.

        - sum over agents of MS_a ln MS_a

    `normalised=true` divides by ln n, for a range from 0 to 1; undefined with one agent.
    """

    normalised: bool = False

    def measure(self, block: Block) -> Sequence[Part]:
        """The market's entropy."""
        values = entropy(block.shares, normalised=self.normalised)
        alone = block.present.sum(axis=-1) == 1
        return [Part(values, [(block.empty, NOTHING), (alone, "only one agent in the market")])]


def _check_target(given: object, target: str) -> None:
    if target not in ("equal", "static", "earned"):
        raise UsageError(f"{given}: target takes equal, static or earned")
