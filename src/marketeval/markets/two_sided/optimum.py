"""What a population allows at best: reference policies that know everything.

The same policies as the Magentic Marketplace's baseline_utilities.json: over the businesses whose
menu holds all wanted items, a purchase at menu prices p is worth 2 v - p if all amenities are
there, else -p, with v the sum of the customer's own prices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.two_sided import Business, Customer
from marketeval.core.streams import Streams
from marketeval.markets.two_sided.population import Population

Floats = NDArray[np.float64]
DRAWS, RESAMPLES = 1000, 10_000


def best_offers(population: Population) -> dict[str, str | None]:
    """Each customer's cheapest business with all items and amenities; the first of equals."""
    best: dict[str, str | None] = {}
    for customer, matches in _matches(population):
        full = [(price, place) for place, price, fits in matches if fits]
        best[customer.id] = population.businesses[min(full)[1]].id if full else None
    return best


def baselines(population: Population, *, seed: int = 0) -> dict[str, Any]:  # any: JSON
    """The four reference policies: two that draw at random, the cheapest, the best.

    Customers without a match buy nothing and count 0.
    """
    every, fitting, cheapest, optimal = [], [], 0.0, 0.0
    for customer, matches in _matches(population):
        worth = 2 * sum(customer.menu_features.values())
        if not matches:
            continue
        values = np.array([worth * fits - price for _, price, fits in matches])
        full = values[[fits for _, _, fits in matches]]
        every.append(values)
        if full.size:
            fitting.append(full)
        cheapest += float(values[np.argmin([price for _, price, _ in matches])])
        optimal += max(float(values.max()), 0.0)
    streams = Streams(seed)
    return {
        "pick_any_baseline": _spread(_draws(every, streams, "any"), streams, "any"),
        "pick_cheapest_baseline": {"constant": round(cheapest, 2)},
        "pick_any_with_amenities_baseline": _spread(
            _draws(fitting, streams, "fitting"), streams, "fitting"
        ),
        "pick_optimal_baseline": {"constant": round(optimal, 2)},
    }


def _matches(
    population: Population,
) -> Sequence[tuple[Customer, Sequence[tuple[int, float, bool]]]]:
    """Per customer, the businesses with all wanted items: place, price, whether all amenities."""
    having: dict[str, set[int]] = {}
    for place, business in enumerate(population.businesses):
        for item in business.menu_features:
            having.setdefault(item, set()).add(place)
    found = []
    for customer in population.customers:
        sets = sorted((having.get(item, set()) for item in customer.menu_features), key=len)
        places = sorted(sets[0].intersection(*sets[1:]))
        found.append(
            (customer, [_match(customer, population.businesses[one], one) for one in places])
        )
    return found


def _match(customer: Customer, business: Business, place: int) -> tuple[int, float, bool]:
    price = sum(business.menu_features[item] for item in customer.menu_features)
    has = business.amenity_features
    return place, price, all(has.get(one, False) for one in customer.amenity_features)


def _draws(values: Sequence[Floats], streams: Streams, name: str) -> Floats:
    """Total utility of random picks, one per customer, shape (DRAWS,)."""
    total = np.zeros(DRAWS)
    for step, options in enumerate(values):
        total += options[streams[f"pick {name}"].below(options.size, step, DRAWS)]
    return total


def _spread(totals: Floats, streams: Streams, name: str) -> Mapping[str, float]:
    """Median with a 95 % bootstrap interval, quartiles, extremes."""
    ordered = np.sort(totals)
    medians = np.empty(RESAMPLES)
    for step in range(RESAMPLES):
        medians[step] = np.median(ordered[streams[f"resample {name}"].below(DRAWS, step, DRAWS)])
    low, high = np.quantile(medians, [0.025, 0.975])
    first, middle, third = np.quantile(totals, [0.25, 0.5, 0.75])
    values = {
        "median": middle,
        "median_ci_lower": low,
        "median_ci_upper": high,
        "q1": first,
        "q3": third,
        "min": totals.min(),
        "max": totals.max(),
    }
    return {key: round(float(value), 4) for key, value in values.items()}
