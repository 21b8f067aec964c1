"""Shops with posted prices: buyers come one after the other and walk from the cheapest up.

A buyer sees some sellers, wants some units of an item, and buys of those that post a price it
accepts and have stock, cheapest first, until it has enough or nobody is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import kernel
from marketeval.core.streams import draw_uniform

Integers = NDArray[np.int64]
Codes = NDArray[np.uint64]
NOBODY = -1


class Traffic(NamedTuple):
    """What happened at each seller's shelf, in units; all but `last` of shape (sellers, items).

    A request is what reaches a shelf. At an empty shelf it is all that the buyer wants, whether
    the item is listed (`empty_listed`) or not (`empty_unlisted`). Else, if the walk arrives with
    u units wanted, it is u: `sold`, and `partial` for the rest. A buyer that needs nothing more,
    or finds no price it accepts, asks for nothing: its want counts as `outcompeted`.
    """

    sold: Integers
    empty_listed: Integers
    empty_unlisted: Integers
    partial: Integers
    outcompeted: Integers
    last: Integers  # per buyer, the seller it last bought of, or NOBODY

    def requested(self) -> Integers:
        """All units requested."""
        return self.sold + self.partial + self.empty_listed + self.empty_unlisted


@kernel
def shop(
    buyer: Integers,
    item: Integers,
    need: Integers,
    seen: NDArray[np.int32],
    price: Integers,
    ceiling: Integers,
    kind: Integers,
    stock: Integers,
    codes: Codes,
    step: int,
    buyers: int,
) -> Traffic:
    """Serve wants in order; one row of `buyer`, `item`, `need` per want.

    Parameters
    ----------
    seen : (buyers, most), the sellers a buyer sees, NOBODY where it sees fewer
    price : (sellers, items), 0 where none is posted
    ceiling : (kinds of buyer, items), the highest acceptable price; `kind` gives each buyer's
    stock : (sellers, items), left as it is
    codes : (sellers,), the streams that decide between equal prices
    """
    sellers, items = price.shape
    left = stock.copy()
    sold = np.zeros((sellers, items), np.int64)
    empty_listed = np.zeros((sellers, items), np.int64)
    empty_unlisted = np.zeros((sellers, items), np.int64)
    partial = np.zeros((sellers, items), np.int64)
    outcompeted = np.zeros((sellers, items), np.int64)
    last = np.full(buyers, NOBODY, np.int64)
    most = seen.shape[1]
    walk = np.empty(most, np.int64)
    tie = np.empty(most)
    for row in range(buyer.size):
        who, x, wanted = buyer[row], item[row], need[row]
        if wanted == 0:
            continue
        count = 0
        for place in range(most):
            seller = np.int64(seen[who, place])
            if seller == NOBODY:
                break
            if left[seller, x] == 0:
                if price[seller, x] > 0:
                    empty_listed[seller, x] += wanted
                else:
                    empty_unlisted[seller, x] += wanted
            elif price[seller, x] == 0 or price[seller, x] > ceiling[kind[who], x]:
                outcompeted[seller, x] += wanted
            else:  # insert in order of price, equal prices by a keyed number
                spot = count
                number = -1.0
                while spot > 0:
                    ahead = walk[spot - 1]
                    if price[ahead, x] < price[seller, x]:
                        break
                    if price[ahead, x] == price[seller, x]:
                        if number < 0.0:
                            number = draw_uniform(codes[seller], step, who)
                        if tie[spot - 1] < 0.0:
                            tie[spot - 1] = draw_uniform(codes[ahead], step, who)
                        if tie[spot - 1] <= number:
                            break
                    walk[spot], tie[spot] = ahead, tie[spot - 1]
                    spot -= 1
                walk[spot], tie[spot] = seller, number
                count += 1
        open_need = wanted
        for place in range(count):
            seller = walk[place]
            if open_need == 0:
                outcompeted[seller, x] += wanted
                continue
            taken = min(open_need, left[seller, x])
            left[seller, x] -= taken
            sold[seller, x] += taken
            partial[seller, x] += open_need - taken
            open_need -= taken
            last[who] = seller
    return Traffic(sold, empty_listed, empty_unlisted, partial, outcompeted, last)
