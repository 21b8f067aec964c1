"""The market families by name. A family is a module, `markets/NAME/family.py`, with

    Spec        the frozen specification of a scenario's `market:` part
    KINDS       the events it may write; SHARED: those of them that hold for every seed
    SERVICES    seats that do not compete, each with the agent that fills it by default

and, unless it is assembled in its own way as `information` is,

    build(spec, seats, *, privileged) -> Market    seats are (name, label) pairs
    default_metrics(spec)                          texts of metrics
    hashes()                                       what else than data a manifest should record
    check_seat(name, agent)                        if there, refuses an agent of the wrong kind
    check_metric(spec, metric)                     if there, refuses a metric that cannot be had

and, where one seat of a scenario may fill many places of the market,

    DEFAULT_SEATS                                  agents of seats that a scenario does not name
    cast(market, seats)                            the seat that fills each place
    data_hashes(market)                            what data the market was made of

and, where seats have data of their own, or everything may be declared and nobody asked,

    SEATLESS                                       whether a scenario may name no seats
    resolve(spec, agent)                           an agent's short text with its paths made whole
    prepare(market, agents)                        the market with what its agents know beforehand

Packages outside add families through the entry point group `marketeval.families`.
"""

from __future__ import annotations

from typing import Any

from marketeval.core.registry import Registry

FAMILIES: Registry[Any] = Registry(  # any: a module; its parts are listed above
    "market family",
    {
        "coupled": "marketeval.markets.coupled.family",
        "information": "marketeval.markets.information.family",
        "supply_chain": "marketeval.markets.supply_chain.family",
        "two_sided": "marketeval.markets.two_sided.family",
    },
    plural="families",
)
