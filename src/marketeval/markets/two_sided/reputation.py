"""Ratings that move: after a day, a business's rating goes toward how its buyers fared.

    rating <- (1 - w) rating + w share of the day's buyers whose needs were met

with w the scenario's `learning`. A business without buyers keeps its rating.
"""

from __future__ import annotations

from dataclasses import replace

from marketeval.actions.two_sided import Business, Customer
from marketeval.markets.two_sided.floor import Floor
from marketeval.markets.two_sided.population import Population


def rated_anew(floor: Floor, population: Population, learning: float) -> Population:
    """The population of the next day; the new ratings go to the log."""
    outcomes: dict[str, list[bool]] = {}
    profiles = floor.state.profiles
    for offer in floor.state.offers.values():
        buyer, seller = profiles.get(offer.buyer), profiles.get(offer.seller)
        if offer.paid and isinstance(buyer, Customer) and isinstance(seller, Business):
            items = {line.item_name for line in offer.proposal.items}
            met = items & set(seller.menu_features) >= set(buyer.menu_features) and all(
                seller.amenity_features.get(one, False) for one in buyer.amenity_features
            )
            outcomes.setdefault(seller.id, []).append(met)
    businesses = []
    for one in population.businesses:
        fared = outcomes.get(one.id)
        if fared:
            share = sum(fared) / len(fared)
            one = replace(one, rating=(1 - learning) * one.rating + learning * share)
            floor.pages.add("rating", floor.step, one.id, float(one.rating))
        businesses.append(one)
    return replace(population, businesses=businesses)
