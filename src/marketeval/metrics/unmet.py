"""Why customers went home without what they wanted: where on the way to a purchase it broke off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from marketeval.metrics.analytics import customer_outcome
from marketeval.metrics.base import metric
from marketeval.metrics.bazaar import Episode, Shopper, meets_needs, shown
from marketeval.metrics.welfare import OfEpisode, Value

if TYPE_CHECKING:
    from marketeval.core.log import LogReader

REASONS = (
    "no business has it all",
    "none of them was found",
    "none of them was asked",
    "none of them made a full proposal",
    "paid another proposal",
    "paid nothing",
)


@metric
class UnmetNeeds(OfEpisode):
    """Customers whose needs were not met, by the step at which it went wrong."""

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """The total, and a value per reason, also where it is 0."""
        reasons = list(why_unmet(log, seed, episode).values())
        yield None, float(len(reasons)), None
        for reason in REASONS:
            yield reason, float(reasons.count(reason)), None


def why_unmet(log: LogReader, seed: int, episode: Episode) -> Mapping[str, str]:
    """The customers whose needs were not met, each with one of REASONS."""
    results = shown(log).get(seed, {})
    found: dict[str, set[str]] = {}
    for row, _, agent in episode.searches:
        found.setdefault(agent, set()).update(results.get(row, ()))
    asked: dict[str, set[str]] = {}
    for _, _, sender, recipient, kind in episode.messages:
        if kind == "text":
            asked.setdefault(sender, set()).add(recipient)
    return {
        one.id: _reason(episode, one, found.get(one.id, set()), asked.get(one.id, set()))
        for one in episode.world.shoppers.values()
        if not customer_outcome(episode, one)[1]
    }


def _reason(episode: Episode, shopper: Shopper, found: set[str], asked: set[str]) -> str:
    fitting = {
        one.id
        for one in episode.world.shops.values()
        if set(one.menu) >= set(shopper.wants) and one.has >= set(shopper.needs)
    }
    if not fitting:
        return REASONS[0]
    if not fitting & (found | asked):
        return REASONS[1]
    if not fitting & asked:
        return REASONS[2]
    if not any(
        one.sender in fitting and meets_needs(episode, shopper, one, one.sender)
        for one in episode.received.get(shopper.id, ())
    ):
        return REASONS[3]
    return REASONS[4] if episode.purchases.get(shopper.id) else REASONS[5]
