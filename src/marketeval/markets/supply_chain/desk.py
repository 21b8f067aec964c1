"""The front desk: what seats answered becomes arrays, and what does not count is noted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.supply_chain import Bid, Offer
from marketeval.core.market import Action, Failure
from marketeval.events import supply_chain as events

Integers = NDArray[np.int64]
Fault = tuple[str, str]

HIGHEST = 10**12  # of a quantity or price; more is read as this
CHARACTERS = 20  # per allowed word, for slogans without spaces


@dataclass(slots=True)
class Sheet:
    """A bid as the auction sees it: valid lines only, arrays of shape (items,)."""

    quantity: Integers
    price: Integers
    state: int = events.EMPTY
    reason: str = ""
    lines: int = 0
    asked: int = 0
    commitment: float = 0.0
    faults: list[Fault] = field(default_factory=list)

    @property
    def counts(self) -> bool:
        """Whether it takes part in the auction."""
        return self.state == events.VALID


@dataclass(slots=True)
class Shelf:
    """An offer as buyers see it: prices of shape (items,), 0 where not listed, and the slogan."""

    price: Integers
    slogan: str = ""
    words: int = 0
    valid: bool = True
    reason: str = ""
    faults: list[Fault] = field(default_factory=list)


class Desk:
    """Reads bids and offers for one catalogue, by the rules of the scenario."""

    def __init__(
        self, names: Sequence[str], *, void_bid_on_line_error: bool, slogan_words: int
    ) -> None:
        self._place = {name: place for place, name in enumerate(names)}
        self._names = names
        self._strict = void_bid_on_line_error
        self._words = slogan_words

    def bid(self, action: Action, reserve: Integers, limit: int) -> Sheet:
        """The bid, checked in the order of the rules: form, lines, then the sum against `limit`."""
        empty = np.zeros(reserve.size, np.int64)
        sheet = Sheet(empty, empty.copy())
        if isinstance(action, Failure):
            sheet.state, sheet.reason = events.INVALID_FORMAT, clean(action.reason)
            return sheet
        if not self._whole(action, action.quantity, action.price):
            sheet.state = events.INVALID_FORMAT
            sheet.reason = "expected a quantity and a price per item"
            return sheet
        arrays = _whole_numbers(action.quantity, action.price) if action.items is None else None
        if arrays is not None:
            quantity, price = arrays
            self._bid_arrays(sheet, quantity, price, reserve)
        else:
            self._bid_lines(sheet, action, reserve)
        sheet.commitment = float(sheet.quantity.astype(np.float64) @ sheet.price)
        if self._strict and sheet.faults:
            sheet.state = events.VOID_LINE
        elif sheet.commitment > limit:
            sheet.state = events.OVERSPENT
        elif sheet.quantity.any():
            sheet.state = events.VALID
        return sheet

    def offer(self, action: Action) -> Shelf:
        """The prices and the slogan; without a readable answer nothing is listed."""
        shelf = Shelf(np.zeros(len(self._names), np.int64))
        if isinstance(action, Failure):
            shelf.valid, shelf.reason = False, clean(action.reason)
            return shelf
        if not self._whole(action, action.price):
            shelf.valid, shelf.reason = False, "expected a price per item"
            return shelf
        arrays = _whole_numbers(action.price) if action.items is None else None
        if arrays is not None:
            (prices,) = arrays
            shelf.faults += [
                ("not_positive", f"{self._names[x]}: {prices[x]}")
                for x in np.flatnonzero(prices < 0).tolist()
            ]
            shelf.price = np.clip(prices, 0, HIGHEST)
        else:
            for place, what, value in self._rows(shelf.faults, action, action.price):
                price = _number(value)
                if isinstance(price, str):
                    shelf.faults.append((price, what))
                elif price == 0 and action.items is None:
                    continue  # not listed
                elif price <= 0:
                    shelf.faults.append(("not_positive", what))
                else:
                    shelf.price[place] = min(price, HIGHEST)
        self._read_slogan(shelf, action)
        return shelf

    def _whole(self, action: Bid | Offer, *columns: object) -> bool:
        """Whether the columns have the lengths they should."""
        try:
            sizes = {len(column) for column in columns}  # type: ignore[arg-type]  # caught below
        except TypeError:
            return False
        return sizes == {len(self._names if action.items is None else action.items)}

    def _bid_arrays(
        self, sheet: Sheet, quantity: Integers, price: Integers, reserve: Integers
    ) -> None:
        quantity, price = np.minimum(quantity, HIGHEST), np.minimum(price, HIGHEST)
        sheet.lines = int(np.count_nonzero(quantity))
        positive = quantity > 0
        fine = positive & (price >= reserve)
        sheet.asked = int(quantity[positive].sum())
        if np.count_nonzero(fine) < sheet.lines:
            for x in np.flatnonzero((quantity != 0) & ~fine).tolist():
                kind = "negative" if quantity[x] < 0 or price[x] < 0 else "below_reserve"
                sheet.faults.append((kind, f"{self._names[x]}: ({quantity[x]}, {price[x]})"))
        sheet.quantity, sheet.price = np.where(fine, quantity, 0), np.where(fine, price, 0)

    def _bid_lines(self, sheet: Sheet, bid: Bid, reserve: Integers) -> None:
        pairs = list(zip(bid.quantity, bid.price, strict=True))
        sheet.lines = sum(1 for quantity, _ in pairs if quantity != 0)
        for place, what, value in self._rows(sheet.faults, bid, pairs):
            quantity, price = (_number(one) for one in value)
            if quantity == 0:
                continue
            problem = next((one for one in (quantity, price) if isinstance(one, str)), None)
            if problem is None:
                assert isinstance(quantity, int)  # the texts are the problems
                assert isinstance(price, int)
                sheet.asked += max(quantity, 0)
                if quantity < 0 or price < 0:
                    problem = "negative"
                elif price < reserve[place]:
                    problem = "below_reserve"
                else:
                    sheet.quantity[place], sheet.price[place] = quantity, price
            if problem is not None:
                sheet.faults.append((problem, what))

    def _rows(
        self, faults: list[Fault], action: Bid | Offer, values: Sequence[Any] | Integers
    ) -> list[tuple[int, str, Any]]:  # any: what a model wrote
        """Place, description and value of each line of a known item; the others become faults."""
        rows, seen = [], set()
        names = self._names if action.items is None else action.items
        for name, value in zip(names, values, strict=True):
            what = clean(f"{name}: {value!r}")[:80]
            place = self._place.get(str(name))
            if place is None:
                faults.append(("unknown_item", what))
            elif place in seen:
                faults.append(("duplicate", what))
            else:
                seen.add(place)
                rows.append((place, what, value))
        return rows

    def _read_slogan(self, shelf: Shelf, offer: Offer) -> None:
        slogan: object = offer.slogan  # declared as text, but a model wrote it
        if not isinstance(slogan, str):
            shelf.faults.append(("slogan_malformed", clean(repr(slogan))[:80]))
            return
        given = clean(slogan)
        words = given.split()
        shelf.words = len(words)
        shelf.slogan = " ".join(words[: self._words])[: CHARACTERS * self._words]
        if len(words) > self._words or len(shelf.slogan) < len(" ".join(words)):
            shelf.faults.append(("slogan_cut", given[:80]))


def clean(text: str) -> str:
    """A text that any file can hold: one line, no half of a character, no control characters."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join("".join(c if c.isprintable() else " " for c in whole).split())


def _whole_numbers(*columns: object) -> list[Integers] | None:
    """The columns as arrays if all that they hold are whole numbers, in whatever form."""
    found = []
    for one in columns:
        if not isinstance(one, np.ndarray):
            if not isinstance(one, (list, tuple)) or any(type(value) is not int for value in one):
                return None
            one = np.array([max(min(value, HIGHEST), -HIGHEST) for value in one], np.int64)
        if one.dtype.kind != "i" or one.ndim != 1:
            return None
        found.append(one.astype(np.int64, copy=False))
    return found


def _number(value: object) -> int | str:
    """A whole number, or the name of what is wrong with it."""
    if isinstance(value, (bool, np.bool_)):
        return "malformed"
    if isinstance(value, (int, np.integer)):
        return max(min(int(value), HIGHEST), -HIGHEST)
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            return "malformed"
        if not float(value).is_integer():
            return "fractional"
        return int(max(min(value, float(HIGHEST)), -float(HIGHEST)))
    return "malformed"


def index_of(names: Sequence[str]) -> Mapping[str, int]:
    """The codes of an enum by name."""
    return {name: code for code, name in enumerate(names)}


FAULT_CODES = index_of(events.FAULTS)
