"""Static order against market order: ranks and rank correlations.

The last axis runs over agents; an agent with NaN on either side is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from marketeval.metrics.base import metric
from marketeval.metrics.series import NOTHING, Block, Part, Series
from marketeval.metrics.share import target_shares
from marketeval.metrics.tables import Floats


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> Floats:
    """Kendall's tau-b, from -1 to 1; ties are corrected for on both sides (Kendall, 1945).

        (concordant - discordant) / sqrt(pairs not tied in x * pairs not tied in y)

    NaN with fewer than two agents, or with all tied on one side.

    >>> float(kendall_tau_b([1, 2, 3, 4], [1, 2, 4, 3])).__round__(4)
    0.6667
    """
    left, right = _paired(x, y)
    agreement = np.zeros(left.shape[:-1])
    untied_left, untied_right = np.zeros_like(agreement), np.zeros_like(agreement)
    for place in range(1, left.shape[-1]):
        signs = np.sign(left[..., place:] - left[..., :-place])
        others = np.sign(right[..., place:] - right[..., :-place])
        agreement += np.nansum(signs * others, axis=-1)
        untied_left += np.nansum(np.abs(signs), axis=-1)
        untied_right += np.nansum(np.abs(others), axis=-1)
    return _ratio(agreement, untied_left, untied_right)


def spearman_rho(x: ArrayLike, y: ArrayLike) -> Floats:
    """Spearman's rho, from -1 to 1: Pearson's correlation of the ranks, ties at their mean rank.

    NaN with fewer than two agents, or with all tied on one side.

    >>> float(spearman_rho([1, 2, 3, 4], [1, 2, 4, 3])).__round__(4)
    0.8
    """
    left, right = (_centred_ranks(values) for values in _paired(x, y))
    squares = [np.nansum(one * one, axis=-1) for one in (left, right)]
    return _ratio(np.nansum(left * right, axis=-1), *squares)


def ranks(values: ArrayLike) -> Floats:
    """1 for the largest; equal values share the smallest rank (1, 2, 2, 4). NaN stays NaN.

    >>> ranks([0.5, 0.2, 0.2, 0.1])
    array([1., 2., 2., 4.])
    """
    given = np.asarray(values, np.float64)
    rank = np.where(np.isnan(given), np.nan, 1.0)
    for place in range(given.shape[-1]):
        rank += given[..., place, None] > given
    return rank


@metric
class Rank(Series):
    """Place by market share, 1 = the largest; equal shares share the smallest rank."""

    def measure(self, block: Block) -> Sequence[Part]:
        """The agents' places."""
        there = block.present & ~block.empty[..., None]
        return [Part(ranks(np.where(there, block.counts, np.nan)), [(block.empty, NOTHING)])]


@metric
class StaticRank(Series):
    """Place by static F-score among the agents in the market, 1 = the best; ties share one."""

    def measure(self, block: Block) -> Sequence[Part]:
        """The agents' places."""
        static = np.where(block.present, block.agents.f_score, np.nan)
        return [Part(ranks(static), [(np.isnan(static), "no static score")])]


@metric
class KendallTau(Series):
    """Kendall's tau-b between static F-scores and market shares, from -1 to 1.

    1 = the market ranks as the benchmark does. Undefined with fewer than two agents, with all
    tied on one side, and where an agent in the market has no static score.
    """

    def measure(self, block: Block) -> Sequence[Part]:
        """The market's correlation."""
        return _correlation(block, kendall_tau_b)


@metric
class SpearmanRho(Series):
    """Spearman's rho between static F-scores and market shares, from -1 to 1.

    Undefined in the cases of KendallTau.
    """

    def measure(self, block: Block) -> Sequence[Part]:
        """The market's correlation."""
        return _correlation(block, spearman_rho)


def _correlation(block: Block, formula: Callable[[ArrayLike, ArrayLike], Floats]) -> Sequence[Part]:
    there = block.present
    static = np.where(there, block.agents.f_score, np.nan)
    lacking = (np.isnan(static) & there).any(axis=-1)
    market = np.where(there, block.counts, np.nan)  # whole numbers tie exactly, shares may not
    values = np.where(block.empty | lacking, np.nan, formula(static, market))
    _, reasons = target_shares(block, "static")
    few = there.sum(axis=-1) < 2
    return [
        Part(
            values,
            [
                (block.empty, NOTHING),
                (few, "fewer than two agents in the market"),
                *((mask, reason) for mask, reason in reasons if reason != "static scores sum to 0"),
                (block.peopled, "all tied on one side"),
            ],
        )
    ]


def _paired(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    left, right = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    out = np.isnan(left) | np.isnan(right)
    return np.where(out, np.nan, left), np.where(out, np.nan, right)


def _centred_ranks(values: Floats) -> Floats:
    """Mean ranks minus their mean, times two, so that they are whole numbers."""
    rank = np.where(np.isnan(values), np.nan, 0.0)
    for place in range(values.shape[-1]):
        one = values[..., place, None]
        rank += np.where(np.isnan(one), 0.0, np.sign(values - one))
    return rank


def _ratio(above: Floats, left: Floats, right: Floats) -> Floats:
    below = np.asarray(np.sqrt(left * right))
    out = np.full(below.shape, np.nan)
    return np.asarray(np.clip(np.divide(above, below, out=out, where=below > 0), -1.0, 1.0))
