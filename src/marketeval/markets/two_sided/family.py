"""What the two-sided family offers to those who run scenarios of any family."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import resources

from marketeval.core.errors import UnknownNameError
from marketeval.core.log import EventKind
from marketeval.events import two_sided as events
from marketeval.markets.two_sided.floor import EMBEDDER
from marketeval.markets.two_sided.market import FilledBy, TwoSidedMarket, populate
from marketeval.markets.two_sided.population import Population
from marketeval.markets.two_sided.scenario import TwoSided

Spec = TwoSided
KINDS: Sequence[EventKind] = events.KINDS
SHARED: Sequence[EventKind] = events.SHARED
SERVICES: Mapping[str, str] = {}
CUSTOMERS, BUSINESSES = "customers", "businesses"  # seats that stand for all of a side
DEFAULT_SEATS: Mapping[str, str] = {
    CUSTOMERS: "heuristic:careful-buyer",
    BUSINESSES: "heuristic:menu-honest",
}
DEFAULT_METRICS: Sequence[str] = (
    # the evaluation environment's components and their mean
    "EvaluationScore", "PurchaseCompletion", "NeedsMet", "WelfareOverOptimum", "ProposalValidity",
    # what customers gain, of what was possible
    "CustomerWelfare", "OptimalWelfare", "OptimalWelfare(at=floor)",
    "WelfareOverOptimum(raw=true)", "WelfareOverOptimum(at=floor, raw=true)",
    # what sellers gain
    "SellerRevenue", "SellerProfit", "CustomerSurplusShare", "RevenueHHI", "PaymentsReceived",
    # how it came about
    "PaidByArrival", "PaidByPlace", "AttackSuccess", "MessagesPerPurchase", "TokensPerPurchase",
    "ProposalLatency", "ProposalsSeen", "ProposalValidity(discounts=true)", "UnmetNeeds",
    "Refusals", "InvalidDecisions",
)  # fmt: skip


def build(
    spec: TwoSided,
    seats: Sequence[tuple[str, str]],
    *,
    privileged: Collection[str] = (),
    population: Population | None = None,
) -> TwoSidedMarket:
    """The market of a checked scenario; `seats` are (name, label) in configuration order.

    A seat is an agent of the population, by its id, or CUSTOMERS or BUSINESSES for all of that
    side that are not named, or EMBEDDER, which serves searches by meaning. `population` stands in
    for the one that the specification names.
    """
    people = populate(spec) if population is None else population
    labels = dict(seats)
    filled = {
        agent: FilledBy(labels[seat], seat in privileged)
        for agent, seat in _cast(people, labels).items()
    }
    return TwoSidedMarket(
        spec=spec, population=people, filled_by=filled, embedder=EMBEDDER in filled
    )


def cast(market: TwoSidedMarket, seats: Iterable[str]) -> Mapping[str, str]:
    """The seat of the scenario that fills each place the market asks.

    Raises UnknownNameError for a seat that is neither a side nor an agent of the population.
    """
    return _cast(market.population, seats)


def default_metrics(spec: TwoSided) -> tuple[str, ...]:
    """The metrics of a scenario that names none."""
    return tuple(DEFAULT_METRICS)


def hashes() -> Mapping[str, str]:
    """What a manifest should record besides data: the prompts that seats were shown."""
    folder = resources.files("marketeval.markets.two_sided.prompts")
    texts = sorted(one.name for one in folder.iterdir() if one.name.endswith(".txt"))
    together = "\n".join((folder / name).read_text("utf-8") for name in texts)
    return {"prompts/two_sided": hashlib.sha256(together.encode()).hexdigest()}


def data_hashes(market: TwoSidedMarket) -> Mapping[str, str]:
    """The content of the population, whatever file it came from."""
    return {f"population/{market.population.source}": market.population.digest}


def _cast(population: Population, seats: Iterable[str]) -> Mapping[str, str]:
    named = list(seats)
    sides = {
        **{one.id: CUSTOMERS for one in population.customers},
        **{one.id: BUSINESSES for one in population.businesses},
    }
    for name in named:
        if name not in sides and name not in (CUSTOMERS, BUSINESSES, EMBEDDER):
            raise UnknownNameError("seat", name, [CUSTOMERS, BUSINESSES, EMBEDDER, *sides])
    known = set(named)
    sides[EMBEDDER] = EMBEDDER
    return {
        agent: agent if agent in known else side
        for agent, side in sides.items()
        if agent in known or side in known
    }
