"""Whom a buyer notices: consideration sets, persona-gated attention (Market-Bench, section 3.3).

A seller's weight for a buyer is w = exp(lambda * Sim / tau), times what memory adds; the buyer
notices m sellers. `plackett_luce` draws them one by one without replacement in proportion to w
(as a race: the m smallest -log(1 - u) / w, one keyed u per seller and buyer);
`softmax_with_replacement` draws m times and keeps whom it met; `top_m` takes the m largest
weights; `uniform` ignores weights.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from marketeval.choice._math import exp, log
from marketeval.core.compiled import inline, kernel
from marketeval.core.streams import draw_uniform
from marketeval.core.threads import each_part, kernel_threads

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = NDArray[np.uint64]

Sampler = Literal["plackett_luce", "softmax_with_replacement", "top_m", "uniform"]
SAMPLERS: tuple[Sampler, ...] = ("plackett_luce", "softmax_with_replacement", "top_m", "uniform")
NOBODY = -1
_LOWEST = -700.0  # of an exponent below the largest; e^-700 is still a normal number
SLACK = 1.000000001  # more than the logarithm errs
_MANY = 2_000_000  # weights in one step from which threads are worth their start


def set_size(patience: float, most: int, sellers: int) -> int:
    """How many sellers a buyer notices: min(sellers, max(1, ceil(rho * K_max))).

    >>> set_size(0.6, 20, 20), set_size(0.0, 20, 20), set_size(1.0, 20, 7)
    (12, 1, 7)
    """
    return min(sellers, max(1, math.ceil(round(patience * most, 9))))


def consider(
    attraction: Floats,
    kind: Integers,
    sizes: Integers,
    *,
    candidates: NDArray[np.bool_],
    codes: Codes,
    own_code: np.uint64,
    step: int,
    sampler: Sampler = "plackett_luce",
    favourite: Integers | None = None,
    loyalty: float = 0.0,
) -> NDArray[np.int32]:
    """The sellers each buyer notices; shape (buyers, largest set), NOBODY behind smaller sets.

    Parameters
    ----------
    attraction : (kinds of buyer, sellers), the exponent lambda * Sim / tau
    kind : (buyers,), each buyer's kind; sizes : (kinds,), m of each kind
    candidates : (sellers,), who can be noticed at all
    codes : (sellers,), each seller's stream; own_code : the buyers' own, for draws with replacement
    favourite, loyalty : (buyers,) a seller whose exponent is `loyalty` higher for that buyer
    """
    who = np.flatnonzero(candidates)
    most = int(min(sizes.max(initial=0), who.size))
    seen = np.full((kind.size, most), NOBODY, np.int32)
    if not most:
        return seen
    weights = _weights(np.ascontiguousarray(attraction[:, who]), sampler == "uniform")
    liked = np.full(kind.size, NOBODY, np.int64)
    if favourite is not None and loyalty and sampler != "uniform":
        place = np.full(candidates.size, NOBODY, np.int64)
        place[who] = np.arange(who.size)
        liked = np.where(favourite >= 0, place[favourite], NOBODY)
    rule = SAMPLERS.index(sampler)
    factor = math.exp(min(loyalty, -_LOWEST))

    limits = _limits(weights, np.asarray(sizes, np.int64))
    bounds = limits[:, None] * weights * SLACK

    def part(start: int, stop: int) -> None:
        _consider(
            weights, kind, sizes, who, codes[who], own_code, step, rule, liked, factor, limits,
            bounds, seen, start, stop,
        )  # fmt: skip

    alone = kind.size * who.size < _MANY
    each_part(kind.size, max(1, kind.size if alone else -(-kind.size // kernel_threads())), part)
    return seen


@kernel
def _weights(attraction: Floats, flat: bool) -> Floats:
    """exp of each exponent, relative to the largest of its kind; 1 throughout if `flat`."""
    out = np.ones(attraction.shape)
    if not flat:
        for kind in range(attraction.shape[0]):
            top = attraction[kind].max()
            for seller in range(attraction.shape[1]):
                out[kind, seller] = exp(max(attraction[kind, seller] - top, _LOWEST))
    return out


@inline
def _rank_key(weight: float, u: float) -> float:
    """Orders by weight, heaviest first; equal weights (in the first 9 digits) by u."""
    return -(math.floor(log(weight) * 1e9)) + u


@kernel
def _consider(
    weights: Floats,
    kind: Integers,
    sizes: Integers,
    who: Integers,
    codes: Codes,
    own_code: np.uint64,
    step: int,
    rule: int,
    liked: Integers,
    factor: float,
    limits: Floats,
    bounds: Floats,
    seen: NDArray[np.int32],
    start: int,
    stop: int,
) -> None:
    sellers = who.size
    keys = np.empty(seen.shape[1])
    draws = np.empty(sellers)
    close = np.empty(sellers, np.int64)
    for buyer in range(start, stop):
        row = weights[kind[buyer]]
        size = min(sizes[kind[buyer]], sellers)
        favoured = liked[buyer]
        if rule == 1:
            total = 0.0
            for seller in range(sellers):
                total += row[seller] * (factor if seller == favoured else 1.0)
            met = 0
            for draw in range(size):
                point = draw_uniform(own_code, step, buyer * seen.shape[1] + draw) * total
                chosen, running = sellers - 1, 0.0
                for seller in range(sellers):
                    running += row[seller] * (factor if seller == favoured else 1.0)
                    if point < running:
                        chosen = seller
                        break
                known = False
                for place in range(met):
                    known |= seen[buyer, place] == who[chosen]
                if not known:
                    seen[buyer, met] = who[chosen]
                    met += 1
            continue
        for seller in range(sellers):  # a loop of its own, which the compiler can run in parallel
            draws[seller] = draw_uniform(codes[seller], step, buyer)
        # A key is at least u / weight, so whose key is below `limit` has u below its bound. The
        # limit leaves a few more than are wanted; where it left too few, all are looked at.
        limit = limits[kind[buyer]]
        bound = bounds[kind[buyer]]
        count = 0
        if rule != 2 and limit < np.inf:
            for seller in range(sellers):
                close[count] = seller
                count += int(draws[seller] <= bound[seller])
            if favoured >= 0 and draws[favoured] > bound[favoured]:
                close[count] = favoured
                count += 1
        worst = size
        if count >= size:
            worst = _smallest(
                row, draws, close, count, size, rule, favoured, factor, keys, seen[buyer], who
            )
        if worst == size or keys[worst] > limit:
            for seller in range(sellers):
                close[seller] = seller
            _smallest(
                row, draws, close, sellers, size, rule, favoured, factor, keys, seen[buyer], who
            )


@inline
def _smallest(
    row: Floats,
    draws: Floats,
    close: Integers,
    count: int,
    size: int,
    rule: int,
    favoured: int,
    factor: float,
    keys: Floats,
    seen: NDArray[np.int32],
    who: Integers,
) -> int:
    """Fill `seen` with the `size` sellers of smallest key among `close`; the place of the last."""
    worst = 0  # the place of the largest key kept so far
    filled = 0
    for near in range(count):
        seller = close[near]
        weight = row[seller] * (factor if seller == favoured else 1.0)
        u = draws[seller]
        if rule == 2:
            key = _rank_key(weight, u)
        else:  # -log(1 - u) >= u: many sellers are out without a logarithm
            if filled == size and u > keys[worst] * weight * SLACK:
                continue
            key = -log(1.0 - u) / weight
        if filled < size:
            keys[filled] = key
            seen[filled] = who[seller]
            if key >= keys[worst]:
                worst = filled
            filled += 1
        elif key < keys[worst]:
            keys[worst] = key
            seen[worst] = who[seller]
            for place in range(size):
                if keys[place] > keys[worst]:
                    worst = place
    return worst


@kernel
def _limits(weights: Floats, sizes: Integers) -> Floats:
    """A key per kind of buyer below which somewhat more than m sellers' keys are to be expected.

    The m-th smallest of n exponential keys of rates w: where sum of 1 - exp(-w T) is m and a margin
    of four standard deviations, so that hardly one buyer in 10,000 has fewer. Infinite where m is
    so near to n that there is nothing to leave out.
    """
    limits = np.full(sizes.size, np.inf)
    for kind in range(sizes.size):
        wanted = sizes[kind] + 4.0 * math.sqrt(float(sizes[kind])) + 4.0
        if wanted > 0.5 * weights.shape[1]:
            continue
        low, high = 0.0, 1.0
        while _expected(weights[kind], high) < wanted and high < 1e300:
            high *= 2.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            if _expected(weights[kind], middle) < wanted:
                low = middle
            else:
                high = middle
        limits[kind] = high
    return limits


@inline
def _expected(weights: Floats, limit: float) -> float:
    """How many sellers' keys are below a limit in the mean."""
    total = 0.0
    for seller in range(weights.size):
        total += 1.0 - exp(max(-weights[seller] * limit, _LOWEST))
    return total
