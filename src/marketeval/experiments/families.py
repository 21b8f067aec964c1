"""The market families by name. A family is a module, `markets/NAME/family.py`, with

    Spec        the frozen specification of a scenario's `market:` part
    KINDS       the events it may write; SHARED: those of them that hold for every seed
    SERVICES    seats that do not compete, each with the agent that fills it by default

and, unless it is assembled in its own way as `information` is,

    build(spec, seats, *, privileged) -> Market    seats are (name, label) pairs
    default_metrics(spec)                          texts of metrics
    hashes()                                       what else than data a manifest should record

Packages outside add families through the entry point group `marketeval.families`.
"""

from __future__ import annotations

from typing import Any

from marketeval.core.registry import Registry

FAMILIES: Registry[Any] = Registry(  # any: a module; its parts are listed above
    "market family",
    {
        "information": "marketeval.markets.information.family",
        "supply_chain": "marketeval.markets.supply_chain.family",
    },
    plural="families",
)
