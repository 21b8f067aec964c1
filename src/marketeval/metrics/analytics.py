"""The analysis of the Magentic Marketplace over our log: the same formulas, the same JSON keys.

    utility(c) = (2 v(c) if its needs were met else 0) - sum of the prices of all its payments
    utility(b) = sum of the prices of the payments for its proposals

v(c) is the sum of the customer's own prices for what it wants. A payment counts the first proposal
of that id its payer received. Errors are the reference's: an honest discount is one of them.
Variants that repair what is odd here stand in `welfare`, under other names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from marketeval.metrics.bazaar import Episode, Offer, Shop, Shopper, best_price, episodes, world

if TYPE_CHECKING:
    from marketeval.core.log import LogReader

Json = dict[str, Any]  # any: JSON


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a proposal: one of the reference's classes, with words."""

    proposal_id: str
    type: str
    detail: str


def analytics(log: LogReader, seed: int, *, day: int = 0, fuzzy: int = 0) -> Json:
    """The reference's analysis of one episode, with its keys.

    `fuzzy` > 0 also counts names within that Levenshtein distance of a menu item, in lower case.
    LLM calls are not in the event log: their counts are 0 here and filled in by the caller.
    """
    episode = next(one for s, d, one in episodes(log) if (s, d) == (seed, day))
    shoppers, shops = episode.world.shoppers, episode.world.shops
    kinds: dict[str, int] = {}
    sent: dict[str, int] = {}
    for _, _, sender, _, kind in episode.messages:
        kinds[kind] = kinds.get(kind, 0) + 1
        sent[sender] = sent.get(sender, 0) + 1
    searched: dict[str, int] = {}
    for _, _, agent in episode.searches:
        searched[agent] = searched.get(agent, 0) + 1
    paid: dict[str, int] = {}
    for payment in episode.payments:
        paid[payment.payer] = paid.get(payment.payer, 0) + 1
    proposed: dict[str, int] = {}
    for offer in episode.offers:
        proposed[offer.sender] = proposed.get(offer.sender, 0) + 1
    outcome = {one.id: customer_outcome(episode, one, fuzzy=fuzzy) for one in shoppers.values()}
    income = revenue(episode)
    active = sum(1 for one in shoppers if paid.get(one))
    total = sum(utility for utility, _ in outcome.values())
    return {
        "total_customers": len(shoppers),
        "total_businesses": len(shops),
        "total_actions_executed": sum(episode.actions.values()),
        "total_messages_sent": len(episode.messages),
        "action_breakdown": dict(episode.actions),
        "message_type_breakdown": kinds,
        "transaction_summary": _transactions(episode, fuzzy),
        "customer_summaries": [
            {
                "customer_id": one.id,
                "customer_name": one.name,
                "messages_sent": sent.get(one.id, 0),
                "proposals_received": len(episode.received.get(one.id, ())),
                "payments_made": paid.get(one.id, 0),
                "searches_made": searched.get(one.id, 0),
                "utility": outcome[one.id][0],
                "needs_met": outcome[one.id][1],
            }
            for one in shoppers.values()
        ],
        "business_summaries": [
            {
                "business_id": one.id,
                "business_name": one.name,
                "messages_sent": sent.get(one.id, 0),
                "proposals_sent": proposed.get(one.id, 0),
                "utility": round(income.get(one.id, 0.0), 2),
            }
            for one in shops.values()
        ],
        "llm_providers": [],
        "llm_models": [],
        "total_llm_calls": 0,
        "failed_llm_calls": 0,
        "customers_who_made_purchases": active,
        "customers_with_needs_met": sum(met for _, met in outcome.values()),
        "total_marketplace_customer_utility": total,
        "average_utility_per_active_customer": total / active if active else None,
        "purchase_completion_rate": 100 * active / len(shoppers) if shoppers else 0,
    }


def customer_outcome(episode: Episode, shopper: Shopper, *, fuzzy: int = 0) -> tuple[float, bool]:
    """A customer's utility, in cents' precision, and whether its needs were met."""
    purchases = episode.purchases.get(shopper.id, ())
    met = any(
        valid_items(offer, episode.world.shops[business], fuzzy) >= set(shopper.wants)
        and episode.world.shops[business].has >= set(shopper.needs)
        for offer, business in purchases
    )
    spent = sum(offer.total for offer, _ in purchases)
    return round((shopper.worth if met else 0.0) - spent, 2), met


def revenue(episode: Episode) -> Mapping[str, float]:
    """Each business's income from matched payments."""
    income: dict[str, float] = {}
    for _, offer, business in episode.bought:
        income[business] = income.get(business, 0.0) + offer.total
    return income


def valid_items(offer: Offer, shop: Shop, fuzzy: int) -> set[str]:
    """The menu items a proposal holds, by name; `fuzzy` as in `analytics`."""
    valid = offer.items & set(shop.menu)
    if fuzzy <= 0:
        return valid
    pairs = sorted(
        (distance, name, item)
        for name in offer.items - valid
        for item in set(shop.menu) - valid
        if (distance := levenshtein(name.lower(), item.lower())) <= fuzzy
    )
    names: set[str] = set()
    for _, name, item in pairs:
        if name not in names and item not in valid:
            names.add(name)
            valid.add(item)
    return valid


def faults(episode: Episode, offer: Offer, *, fuzzy: int = 0) -> Sequence[Fault]:
    """What the reference finds wrong with a proposal."""
    found = []
    shop = episode.world.shops.get(offer.sender)
    if shop is None:
        found.append(Fault(offer.id, "invalid_business", offer.sender))
    if offer.recipient not in episode.world.shoppers:
        found.append(Fault(offer.id, "invalid_customer", offer.recipient))
    if shop is not None:
        for name, _, price in offer.lines:
            if name in shop.menu:
                if abs(price - shop.menu[name]) >= 0.01:
                    detail = f"{name}: {price} instead of {shop.menu[name]}"
                    found.append(Fault(offer.id, "invalid_menu_item_price", detail))
            else:
                distance, nearest = min(
                    (levenshtein(name.lower(), one.lower()), one) for one in shop.menu
                )
                if distance > fuzzy:
                    detail = f"{name}: nearest is {nearest}, {distance} edits away"
                    found.append(Fault(offer.id, "invalid_menu_item", detail))
    total = sum(quantity * price for _, quantity, price in offer.lines)
    if not abs(offer.total - total) < 0.01:
        detail = f"{offer.total} instead of {total}"
        found.append(Fault(offer.id, "invalid_total_price", detail))
    return found


def audit(log: LogReader, seed: int) -> Json:
    """Whether each proposal stood before its customer at its last decision, and what was lost.

    Per customer `all`, `partial` or `none` of its proposals; those whose utility is below the
    optimum at menu prices, with the gap.
    """
    import polars as pl

    episode = next(one for s, d, one in episodes(log) if (s, d) == (seed, 0))
    rows = log.scan("in_last_briefing").filter(pl.col("seed") == seed)
    seen = set(rows.select("row").collect()["row"].to_list())
    customers: list[Json] = []
    gaps: list[Json] = []
    for shopper in episode.world.shoppers.values():
        received = episode.received.get(shopper.id, ())
        count = sum(one.row in seen for one in received)
        utility, met = customer_outcome(episode, shopper)
        optimum = optimal_utility(episode, shopper)
        if received:
            state = "all" if count == len(received) else "partial" if count else "none"
            customers.append(
                {
                    "customer_id": shopper.id,
                    "proposals": len(received),
                    "seen": count,
                    "state": state,
                }
            )
        if utility < optimum - 0.005:
            gaps.append(
                {
                    "customer_id": shopper.id,
                    "utility": utility,
                    "optimal_utility": optimum,
                    "gap": round(optimum - utility, 2),
                    "needs_met": met,
                }
            )
    return {
        "proposals": sum(one["proposals"] for one in customers),
        "proposals_seen": sum(one["seen"] for one in customers),
        "customers": customers,
        "suboptimal_customers": gaps,
        "total_utility_gap": round(sum(one["gap"] for one in gaps), 2),
    }


def optimal_utility(episode: Episode, shopper: Shopper, *, at_floor: bool = False) -> float:
    """2 v less the lowest price of all that is wanted; 0 where nothing fits or it does not pay."""
    price = best_price(episode.world, shopper, at_floor=at_floor)
    return 0.0 if price is None else max(round(shopper.worth - price, 2), 0.0)


def levenshtein(one: str, other: str) -> int:
    """The number of insertions, deletions and substitutions between two texts.

    >>> levenshtein("tacos", "taco"), levenshtein("soup", "soap")
    (1, 1)
    """
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        diagonal, row[0] = row[0], place
        for at, against in enumerate(other, 1):
            diagonal, row[at] = (
                row[at],
                min(row[at] + 1, row[at - 1] + 1, diagonal + (letter != against)),
            )
    return row[-1]


def _transactions(episode: Episode, fuzzy: int) -> Json:
    invalid = {
        fault.proposal_id
        for offer in episode.offers
        for fault in faults(episode, offer, fuzzy=fuzzy)
    }
    totals = [offer.total for offer in episode.offers]
    paid = [offer.total for _, offer, _ in episode.bought]
    return {
        "order_proposals_created": len(totals),
        "payments_made": len(episode.payments),
        "average_proposal_value": sum(totals) / len(totals) if totals else None,
        "average_paid_order_value": sum(paid) / len(paid) if paid else None,
        "total_invalid_proposals": len(invalid),
        "invalid_proposals_purchased": len(invalid & {one.proposal for one in episode.payments}),
    }


def fault_rows(log: LogReader, seed: int) -> list[Json]:
    """Every fault of every proposal of an episode."""
    episode = next(one for s, d, one in episodes(log) if (s, d) == (seed, 0))
    return [asdict(fault) for offer in episode.offers for fault in faults(episode, offer)]


def optimum(log: LogReader, *, at_floor: bool = False) -> float:
    """The highest welfare that the population allows, at menu prices or at the floors."""
    everything = world(log)
    empty = Episode(everything, (), (), (), (), {})
    return round(
        sum(optimal_utility(empty, one, at_floor=at_floor) for one in everything.shoppers.values()),
        2,
    )
