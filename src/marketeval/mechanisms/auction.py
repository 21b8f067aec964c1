"""Sealed-bid auctions of several units of several items, and a double auction that crosses quotes.

Quantities and money are integers. Nobody is allocated more than was asked for or is there, and no
rejected bid beats an accepted one.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import kernel
from marketeval.core.streams import draw_uniform

Integers = NDArray[np.int64]
Codes = NDArray[np.uint64]

Ties = Literal["random", "pro_rata", "agent_order"]
Pricing = Literal["pay_as_bid", "uniform_lowest_accepted", "uniform_reserve"]
TIES: tuple[Ties, ...] = ("random", "pro_rata", "agent_order")
PRICINGS: tuple[Pricing, ...] = ("pay_as_bid", "uniform_lowest_accepted", "uniform_reserve")


def allocate(
    quantity: Integers,
    price: Integers,
    *,
    supply: Integers,
    reserve: Integers,
    codes: Codes,
    step: int,
    ties: Ties = "random",
    pricing: Pricing = "pay_as_bid",
    rank: Integers | None = None,
) -> tuple[Integers, Integers]:
    """Units won and the price per unit, both of shape (bidders, items).

    Each item goes to the highest bids first, in part where it runs out; among equal bids by a
    keyed number per bidder and item (`random`), in proportion with largest remainders
    (`pro_rata`), or by `rank` (`agent_order`; default: the order of rows). A winner pays its bid,
    the lowest accepted bid of an item that sells out (else the reserve), or the reserve.

    Parameters
    ----------
    quantity, price : (bidders, items); lines with quantity 0 or price below reserve take no part
    supply, reserve : (items,)
    codes : (bidders,), each bidder's stream of tie-breaking numbers
    """
    order = np.arange(quantity.shape[0]) if rank is None else rank
    return _allocate(
        quantity, price, supply, reserve, codes, order, step, TIES.index(ties),
        PRICINGS.index(pricing),
    )  # fmt: skip


@kernel
def _allocate(
    quantity: Integers,
    price: Integers,
    supply: Integers,
    reserve: Integers,
    codes: Codes,
    rank: Integers,
    step: int,
    ties: int,
    pricing: int,
) -> tuple[Integers, Integers]:
    bidders, items = quantity.shape
    won = np.zeros((bidders, items), np.int64)
    unit = np.zeros((bidders, items), np.int64)
    who = np.empty(bidders, np.int64)
    key = np.empty(bidders)
    for item in range(items):
        count = 0
        for bidder in range(bidders):
            if quantity[bidder, item] > 0 and price[bidder, item] >= reserve[item]:
                who[count] = bidder
                key[count] = rank[bidder] if ties == 2 else draw_uniform(codes[bidder], step, item)
                count += 1
        order = who[:count][np.argsort(key[:count], kind="mergesort")]
        offers = np.empty(count, np.int64)
        for place in range(count):
            offers[place] = -price[order[place], item]
        order = order[np.argsort(offers, kind="mergesort")]

        left, place, lowest = supply[item], 0, reserve[item]
        while place < count and left > 0:
            bid, end, asked = price[order[place], item], place, 0
            while end < count and price[order[end], item] == bid:
                asked += min(quantity[order[end], item], supply[item])
                end += 1
            lowest = bid
            if ties == 1 and asked > left:
                _pro_rata(won, quantity, order, place, end, item, left, asked, supply[item])
                left = 0
            for spot in range(place, end):
                if left > 0:
                    taken = min(quantity[order[spot], item], left)
                    won[order[spot], item] = taken
                    left -= taken
            place = end
        for bidder in range(bidders):
            if won[bidder, item] > 0:
                if pricing == 0:
                    unit[bidder, item] = price[bidder, item]
                elif pricing == 1 and left == 0:
                    unit[bidder, item] = lowest
                else:
                    unit[bidder, item] = reserve[item]
    return won, unit


@kernel
def _pro_rata(
    won: Integers,
    quantity: Integers,
    order: Integers,
    start: int,
    end: int,
    item: int,
    left: int,
    asked: int,
    supply: int,
) -> None:
    """Divide what is left among equal bids: floors of the shares, then largest remainders."""
    rest = np.empty(end - start, np.int64)
    given = 0
    for spot in range(start, end):
        share = left * min(quantity[order[spot], item], supply)
        won[order[spot], item] = share // asked
        given += share // asked
        rest[spot - start] = -(share % asked)
    for spot in np.argsort(rest, kind="mergesort")[: left - given]:
        won[order[start + spot], item] += 1


def cross(bids: Integers, asks: Integers) -> tuple[Integers, Integers]:
    """The pairs of a call-market double auction: rows of `bids` and of `asks`, best pair first.

    The highest bid meets the lowest ask, and so on while a bid is at least its ask; equal quotes
    go in the order given. Each pair may trade at its `midpoint`.

    >>> cross(np.array([5, 9, 7]), np.array([8, 4, 7]))
    (array([1, 2]), array([1, 2]))
    """
    buyers = np.argsort(-np.asarray(bids), kind="stable")
    sellers = np.argsort(np.asarray(asks), kind="stable")
    size = min(buyers.size, sellers.size)
    meets = np.asarray(bids)[buyers[:size]] >= np.asarray(asks)[sellers[:size]]
    count = int(np.argmin(meets)) if not meets.all() else size
    return buyers[:count], sellers[:count]


def midpoint(bid: NDArray[np.int64], ask: NDArray[np.int64]) -> NDArray[np.float64]:
    """Half of bid plus ask, in ticks; a market that trades in whole ticks rounds it."""
    return (np.asarray(bid) + np.asarray(ask)) / 2.0
