"""Sells what is on the menu at the menu's prices, and says so when it is not."""

from __future__ import annotations

from dataclasses import dataclass

from marketeval.agents.selling import Seller


@dataclass(frozen=True, slots=True)
class Agent(Seller):
    """Proposes the items asked for at menu prices if it has them all."""
