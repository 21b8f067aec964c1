"""How unequal the agents' shares are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from marketeval.metrics.base import metric
from marketeval.metrics.series import NOTHING, Block, Part, Series
from marketeval.metrics.tables import Floats


def gini(values: ArrayLike) -> Floats:
    """Gini's coefficient of amounts that are not negative, from 0 to 1 - 1/n.

        G = sum over i, j of |x_i - x_j| / (2 n sum of x)

    The last axis runs over who has them; NaN is left out. NaN where all amounts are 0.

    >>> float(gini([1.0, 1.0, 1.0])), float(gini([0.0, 0.0, 0.0, 1.0]))
    (0.0, 0.75)
    """
    amounts = np.asarray(values, np.float64)
    ordered = np.sort(amounts, axis=-1)  # NaN goes last
    count = np.sum(~np.isnan(amounts), axis=-1)
    rank = np.arange(1, amounts.shape[-1] + 1)
    sums = np.nansum(ordered, axis=-1)
    weighted = np.nansum(ordered * (2 * rank - count[..., None] - 1), axis=-1)
    below = np.asarray(count * sums)
    out = np.full(below.shape, np.nan)
    return np.asarray(np.maximum(np.divide(weighted, below, out=out, where=below > 0), 0.0))


@metric
class Gini(Series):
    """Gini's coefficient of the market shares, from 0 (equal) to 1 - 1/n (monopoly).

        G = sum over agents a, b of |MS_a - MS_b| / (2 n)

    n is the number of agents in the market, those that nobody asked included.
    """

    def measure(self, block: Block) -> Sequence[Part]:
        """The market's coefficient."""
        return [Part(gini(block.shares), [(block.empty, NOTHING)])]
