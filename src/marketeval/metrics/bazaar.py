"""What metrics of the two-sided market read from a log: who wanted what, who offered, who paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from marketeval.metrics.tables import remembered, seeds

if TYPE_CHECKING:
    from marketeval.core.log import LogReader


@dataclass(frozen=True, slots=True)
class Shopper:
    """A customer: wanted items with the price expected, needed amenities."""

    id: str
    name: str
    wants: dict[str, float] = field(default_factory=dict)
    needs: list[str] = field(default_factory=list)

    @property
    def worth(self) -> float:
        """What a purchase that meets all needs is worth: twice the expected prices."""
        return 2 * sum(self.wants.values())


@dataclass(frozen=True, slots=True)
class Shop:
    """A business: its menu, the amenities it has, its floor as a share of menu prices."""

    id: str
    name: str
    floor: float | None
    menu: dict[str, float] = field(default_factory=dict)
    has: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Offer:
    """An order proposal that was not refused; its lines are (item, quantity, unit price)."""

    row: int
    round: int
    id: str
    sender: str
    recipient: str
    total: float
    lines: Sequence[tuple[str, int, float]]

    @property
    def items(self) -> set[str]:
        """The names on it."""
        return {name for name, _, _ in self.lines}


@dataclass(frozen=True, slots=True)
class Paying:
    """A payment that was not refused."""

    row: int
    round: int
    payer: str
    business: str
    proposal: str


@dataclass(frozen=True)
class World:
    """Customers and businesses by id, in order of registration; `rounds` are those of a day."""

    shoppers: Mapping[str, Shopper]
    shops: Mapping[str, Shop]
    attackers: Sequence[str]
    rounds: int

    @cached_property
    def having(self) -> Mapping[str, set[str]]:
        """The businesses that have an item on their menu."""
        found: dict[str, set[str]] = {}
        for shop in self.shops.values():
            for item in shop.menu:
                found.setdefault(item, set()).add(shop.id)
        return found


@dataclass(frozen=True)
class Episode:
    """One seed, or one day of it: proposals and payments in row order, searches and messages."""

    world: World
    offers: Sequence[Offer]
    payments: Sequence[Paying]
    messages: Sequence[tuple[int, int, str, str, str]]  # row, round, sender, recipient, kind
    searches: Sequence[tuple[int, int, str]]  # row, round, agent
    actions: Mapping[str, int]
    day: int = 0

    @cached_property
    def received(self) -> Mapping[str, Sequence[Offer]]:
        """The proposals each customer received from registered businesses, oldest first."""
        found: dict[str, list[Offer]] = {}
        for one in self.offers:
            if one.sender in self.world.shops:
                found.setdefault(one.recipient, []).append(one)
        return found

    @cached_property
    def first_sender(self) -> Mapping[str, str]:
        """The first business that ever sent a proposal with an id."""
        found: dict[str, str] = {}
        for one in self.offers:
            if one.sender in self.world.shops:
                found.setdefault(one.id, one.sender)
        return found

    @cached_property
    def bought(self) -> Sequence[tuple[Paying, Offer, str]]:
        """Each payment with the first proposal of that id its payer received, and its business."""
        found = []
        for payment in self.payments:
            for offer in self.received.get(payment.payer, ()):
                if offer.id == payment.proposal:
                    found.append((payment, offer, self.first_sender[offer.id]))
                    break
        return found

    @cached_property
    def purchases(self) -> Mapping[str, Sequence[tuple[Offer, str]]]:
        """Each customer's matched payments: the proposal and its business."""
        found: dict[str, list[tuple[Offer, str]]] = {}
        for payment, offer, business in self.bought:
            found.setdefault(payment.payer, []).append((offer, business))
        return found


def world(log: LogReader) -> World:
    """The facts that hold for every seed."""

    def read() -> World:
        shoppers = {
            one: Shopper(one, name) for one, name in _rows(log, "customer", "customer", "name")
        }
        for one, item, price in _rows(log, "want", "customer", "item", "price"):
            shoppers[one].wants[item] = price
        for one, amenity in _rows(log, "need", "customer", "amenity"):
            shoppers[one].needs.append(amenity)
        shops = {
            one: Shop(one, name, floor)
            for one, name, floor in _rows(log, "business", "business", "name", "floor")
        }
        for one, item, price in _rows(log, "menu", "business", "item", "price"):
            shops[one].menu[item] = price
        for one, amenity, has in _rows(log, "amenity", "business", "amenity", "has"):
            if has:
                shops[one].has.add(amenity)
        rounds = log.scan("marketplace").select("rounds").collect()["rounds"].max()
        attackers = [one for (one,) in _rows(log, "attack", "business")]
        return World(shoppers, shops, attackers, int(str(rounds or 2**31 - 1)))

    return remembered(log, "bazaar world", read)


def episodes(log: LogReader) -> Sequence[tuple[int, int, Episode]]:
    """Every seed and day with its episode; a market that is not repeated has day 0 alone."""

    def read() -> Sequence[tuple[int, int, Episode]]:
        everything, rounds = world(log), world(log).rounds
        lines = _by_seed(log, "proposal_item", ("row", "item", "quantity", "unit_price"))
        offers = _by_seed(
            log, "proposal", ("row", "round", "id", "sender", "recipient", "total", "refused")
        )
        payments = _by_seed(
            log, "payment", ("row", "round", "payer", "business", "proposal", "refused")
        )
        messages = _by_seed(
            log, "message", ("row", "round", "sender", "recipient", "kind", "refused")
        )
        searches = _by_seed(log, "search", ("row", "round", "agent"))
        fetches = _by_seed(log, "fetch", ("row", "round"))
        found = []
        for seed in seeds(log):
            of_row: dict[int, list[tuple[str, int, float]]] = {}
            for row, item, quantity, price in lines.get(seed, ()):
                of_row.setdefault(row, []).append((item, quantity, price))
            tables = [one.get(seed, ()) for one in (offers, payments, messages, searches, fetches)]
            last = max((row[1] for table in tables for row in table), default=0)
            for day in range(last // rounds + 1):
                made, paid, sent, looked, fetched = (
                    [row for row in table if row[1] // rounds == day] for table in tables
                )
                counts = {"SendMessage": sent, "FetchMessages": fetched, "Search": looked}
                episode = Episode(
                    world=everything,
                    offers=[
                        Offer(row, now, id_, sender, recipient, total, of_row.get(row, []))
                        for row, now, id_, sender, recipient, total, refused in made
                        if not refused
                    ],
                    payments=[Paying(*row[:5]) for row in paid if not row[5]],
                    messages=[row[:5] for row in sent if not row[5]],
                    searches=list(looked),
                    actions={name: len(rows) for name, rows in counts.items() if rows},
                    day=day,
                )
                found.append((seed, day, episode))
        return found

    return remembered(log, "bazaar episodes", read)


def meets_needs(episode: Episode, shopper: Shopper, offer: Offer, business: str) -> bool:
    """Whether a proposal holds every wanted item and its business has every needed amenity.

    Items that are not on the business's menu do not count.
    """
    shop = episode.world.shops[business]
    valid = offer.items & set(shop.menu)
    return valid >= set(shopper.wants) and shop.has >= set(shopper.needs)


def best_price(world: World, shopper: Shopper, *, at_floor: bool = False) -> float | None:
    """The lowest sum of prices among the businesses with all wanted items and amenities."""
    candidates: set[str] | None = None
    for item in shopper.wants:
        having = world.having.get(item, set())
        candidates = set(having) if candidates is None else candidates & having
    prices = []
    for one in candidates or ():
        shop = world.shops[one]
        if shop.has >= set(shopper.needs):
            price = sum(shop.menu[item] for item in shopper.wants)
            if at_floor and shop.floor is not None:
                price = (
                    sum(floor_cents(shop.menu[item], shop.floor) for item in shopper.wants) / 100
                )
            prices.append(price)
    return min(prices, default=None)


def floor_cents(price: float, floor: float) -> int:
    """A menu price at a business's floor, in whole cents, as a discounter rounds it."""
    return round(round(price * 100) * floor)


def shown(log: LogReader) -> dict[int, dict[int, list[str]]]:
    """Per seed and search, the businesses in the order shown."""

    def read() -> dict[int, dict[int, list[str]]]:
        found: dict[int, dict[int, list[str]]] = {}
        rows = log.scan("shown").select("seed", "row", "business").collect()
        for seed, row, business in rows.iter_rows():
            found.setdefault(seed, {}).setdefault(row, []).append(business)
        return found

    return remembered(log, "bazaar shown", read)


def _rows(log: LogReader, kind: str, *names: str) -> list[tuple[Any, ...]]:  # any: column values
    return log.scan(kind).select(names).collect().rows()


def _by_seed(
    log: LogReader, kind: str, names: Sequence[str]
) -> Mapping[int, Sequence[tuple[Any, ...]]]:  # any: column values
    table = log.scan(kind).select("seed", *names).sort("seed", "row", maintain_order=True).collect()
    found: dict[int, list[tuple[Any, ...]]] = {}  # any: as above
    for seed, *values in table.iter_rows():
        found.setdefault(seed, []).append(tuple(values))
    return found
