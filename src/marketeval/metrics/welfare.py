"""Who gains what in a two-sided market: customers, sellers, and the share of what was possible.

The four components of the public evaluation environment for the Magentic Marketplace are
`PurchaseCompletion`, `NeedsMet`, `WelfareOverOptimum` and `ProposalValidity`; `EvaluationScore` is
their plain mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from marketeval.metrics.analytics import customer_outcome, faults, optimal_utility, revenue
from marketeval.metrics.base import metric
from marketeval.metrics.bazaar import Episode, Offer, episodes, floor_cents, meets_needs
from marketeval.metrics.text import text_form

if TYPE_CHECKING:
    import polars as pl

    from marketeval.core.log import LogReader

Value = tuple[str | None, float | None, str | None]  # subject, value, note
NO_PROPOSAL = "no proposal was made"
NO_PURCHASE = "nothing was bought"


@dataclass(frozen=True, kw_only=True)
class OfEpisode:
    """A metric of each episode by itself; `step` counts the days of a market that is repeated."""

    def __str__(self) -> str:
        return text_form(self)

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """The metric's rows, by seed, then day."""
        import polars as pl

        from marketeval.metrics.base import TIDY

        found = episodes(log)
        days = max((day for _, day, _ in found), default=0)
        rows = [
            (seed, str(self), "all", day if days else None, subject, value, note)
            for seed, day, episode in found
            for subject, value, note in self.measure(log, seed, episode)
        ]
        return pl.DataFrame(rows, schema=TIDY, orient="row")

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """The values of one episode."""
        raise NotImplementedError


@metric
class PurchaseCompletion(OfEpisode):
    """Share of customers who paid at least once, from 0 to 1."""

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """One value."""
        payers = {one.payer for one in episode.payments} & set(episode.world.shoppers)
        yield None, len(payers) / len(episode.world.shoppers), None


@metric
class NeedsMet(OfEpisode):
    """Share of customers who bought all they wanted where all amenities are, from 0 to 1."""

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """One value."""
        met = sum(customer_outcome(episode, one)[1] for one in episode.world.shoppers.values())
        yield None, met / len(episode.world.shoppers), None


@metric
class CustomerUtility(OfEpisode):
    """Per customer, 2 v if its needs were met, less all it paid, in currency units."""

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """A value per customer."""
        for one in episode.world.shoppers.values():
            yield one.id, customer_outcome(episode, one)[0], None


@metric
class CustomerWelfare(OfEpisode):
    """Sum of the customers' utilities, in currency units: the reference's welfare.

    `latest=true` prices a payment by the newest proposal of its id before it, where the reference
    takes the first; with ids that are unique there is no difference.
    """

    latest: bool = False

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """One value."""
        yield None, round(_welfare(episode, latest=self.latest), 2), None


@metric
class OptimalWelfare(OfEpisode):
    """The highest welfare the population allows: at menu prices, or at the sellers' floors."""

    at: Literal["menu", "floor"] = "menu"

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """One value."""
        yield None, round(_optimum(episode, self.at), 2), None


@metric
class WelfareOverOptimum(OfEpisode):
    """Welfare over the optimum at menu prices (or floors), clipped to [0, 1] or raw.

    Above 1 is possible where sellers grant discounts and the optimum is that of the menu.
    """

    at: Literal["menu", "floor"] = "menu"
    raw: bool = False

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """One value."""
        best = _optimum(episode, self.at)
        if best <= 0:
            yield None, None, "nothing worth buying for anybody"
            return
        ratio = _welfare(episode) / best
        yield None, ratio if self.raw else min(max(ratio, 0.0), 1.0), None


@metric
class ProposalValidity(OfEpisode):
    """Share of proposals without an error, from 0 to 1.

    The reference's errors count an honest discount; with `discounts=true` a price below the menu's
    is no error, and one above it is.
    """

    discounts: bool = False

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """One value."""
        if not episode.offers:
            yield None, None, NO_PROPOSAL
            return
        fine = sum(_valid(episode, one, discounts=self.discounts) for one in episode.offers)
        yield None, fine / len(episode.offers), None


@metric
class EvaluationScore(OfEpisode):
    """Plain mean of purchase completion, needs met, welfare over optimum, proposal validity."""

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """One value; undefined where a component is."""
        parts: Sequence[OfEpisode] = (
            PurchaseCompletion(), NeedsMet(), WelfareOverOptimum(), ProposalValidity()
        )  # fmt: skip
        values = [next(part.measure(log, seed, episode)) for part in parts]
        missing = [note for _, value, note in values if value is None]
        if missing:
            yield None, None, missing[0]
        else:
            yield None, sum(value or 0.0 for _, value, _ in values) / len(values), None


@metric
class SellerRevenue(OfEpisode):
    """Income from payments, in currency units: of the whole side, or of each business with one."""

    each: bool = False

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """One value, or one per business that sold."""
        income = revenue(episode)
        if not self.each:
            yield None, round(sum(income.values()), 2), None
            return
        for name in episode.world.shops:
            if name in income:
                yield name, round(income[name], 2), None


@metric
class SellerProfit(OfEpisode):
    """What sellers were paid above their floors, in currency units."""

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """One value."""
        yield None, round(_profit(episode), 2), None


@metric
class CustomerSurplusShare(OfEpisode):
    """Customers' utility over utility plus profit above floors; above 1 where sellers lose."""

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """One value."""
        customers = _welfare(episode)
        both = customers + _profit(episode)
        if both <= 0:
            yield None, None, "no surplus to share"
        else:
            yield None, customers / both, None


@metric
class RevenueHHI(OfEpisode):
    """Herfindahl-Hirschman index of the businesses' revenue, from 1/n to 1."""

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """One value."""
        income = [one for one in revenue(episode).values() if one > 0]
        total = sum(income)
        if not total:
            yield None, None, NO_PURCHASE
        else:
            yield None, sum((one / total) ** 2 for one in income), None


def _welfare(episode: Episode, *, latest: bool = False) -> float:
    if not latest:
        shoppers = episode.world.shoppers.values()
        return sum(customer_outcome(episode, one)[0] for one in shoppers)
    total = 0.0
    spent: dict[str, float] = {}
    met: set[str] = set()
    for payment, first, business in episode.bought:
        offer = first
        for one in episode.received[payment.payer]:
            if one.id == payment.proposal and one.row < payment.row:
                offer = one
        spent[payment.payer] = spent.get(payment.payer, 0.0) + offer.total
        shopper = episode.world.shoppers.get(payment.payer)
        if shopper is not None and meets_needs(episode, shopper, offer, business):
            met.add(payment.payer)
    for shopper in episode.world.shoppers.values():
        total += (shopper.worth if shopper.id in met else 0.0) - spent.get(shopper.id, 0.0)
    return total


def _optimum(episode: Episode, at: str) -> float:
    return sum(
        optimal_utility(episode, one, at_floor=at == "floor")
        for one in episode.world.shoppers.values()
    )


def _profit(episode: Episode) -> float:
    profit = 0.0
    for _, offer, business in episode.bought:
        shop = episode.world.shops[business]
        floor = 1.0 if shop.floor is None else shop.floor
        cost = sum(
            quantity * floor_cents(shop.menu[name], floor)
            for name, quantity, _ in offer.lines
            if name in shop.menu
        )
        profit += offer.total - cost / 100
    return profit


def _valid(episode: Episode, offer: Offer, *, discounts: bool) -> bool:
    found = [one.type for one in faults(episode, offer)]
    if not discounts:
        return not found
    shop = episode.world.shops.get(offer.sender)
    above = shop is not None and any(
        price > shop.menu[name] + 0.005 for name, _, price in offer.lines if name in shop.menu
    )
    return not above and all(one == "invalid_menu_item_price" for one in found)
