"""The facts of a two-sided market that hold for every seed, written once per log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from marketeval.core.log import EventLog
from marketeval.markets.two_sided.manipulation import attacker
from marketeval.markets.two_sided.pages import clean
from marketeval.markets.two_sided.population import Population
from marketeval.markets.two_sided.scenario import TwoSided

if TYPE_CHECKING:
    from marketeval.markets.two_sided.market import FilledBy


def introduce(
    log: EventLog, spec: TwoSided, population: Population, filled_by: Mapping[str, FilledBy]
) -> None:
    """The market, its customers with their wishes, its businesses with their menus, the seats."""
    customers, businesses = population.customers, population.businesses
    log.shared(
        "marketplace",
        rules=json.dumps(dict(spec.rules)),
        search=spec.search,
        limit=max(spec.limit, 0),
        steps=spec.steps,
        customers=len(customers),
        businesses=len(businesses),
        population=population.source,
        unlimited=spec.rules.opening_balance is None,
        opening=spec.rules.opening_balance or 0,
        days=spec.days,
        rounds=spec.rounds,
    )
    log.shared(
        "customer",
        customer=[one.id for one in customers],
        name=[clean(one.name) for one in customers],
        request=[clean(one.request) for one in customers],
    )
    wants = [(one.id, *want) for one in customers for want in one.menu_features.items()]
    _table(log, "want", ("customer", "item", "price"), wants)
    needs = [(one.id, amenity) for one in customers for amenity in one.amenity_features]
    _table(log, "need", ("customer", "amenity"), needs)
    log.shared(
        "business",
        business=[one.id for one in businesses],
        name=[clean(one.name) for one in businesses],
        description=[clean(one.description) for one in businesses],
        rating=[float(one.rating) for one in businesses],
        floor=[float("nan") if one.min_price_factor is None else one.min_price_factor
               for one in businesses],
        progenitor=[one.progenitor_customer for one in businesses],
    )  # fmt: skip
    menus = [(one.id, *item) for one in businesses for item in one.menu_features.items()]
    _table(log, "menu", ("business", "item", "price"), menus)
    amenities = [(one.id, *has) for one in businesses for has in one.amenity_features.items()]
    _table(log, "amenity", ("business", "amenity", "has"), amenities)
    attacks = [(attacker(population, one), one.kind, one.where) for one in spec.manipulation]
    _table(log, "attack", ("business", "kind", "place"), attacks)
    seats = [(seat, who.text, who.privileged) for seat, who in filled_by.items()]
    _table(log, "seat", ("agent", "filled_by", "privileged"), seats)


def _table(
    log: EventLog, kind: str, names: tuple[str, ...], rows: Sequence[tuple[object, ...]]
) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
    log.shared(kind, **dict(zip(names, columns, strict=True)))
