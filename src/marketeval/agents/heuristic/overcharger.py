"""Asks more than its menu says; where surcharges are refused it falls back to the menu."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marketeval.actions.two_sided import BusinessAction, BusinessBriefing
from marketeval.agents.selling import Seller, propose


@dataclass(frozen=True, slots=True)
class Agent(Seller):
    """Menu prices times 1 + `surcharge`."""

    surcharge: float = 0.25

    def offer(self, known: BusinessBriefing, items: Sequence[str]) -> BusinessAction:
        """The surcharge first, the menu's prices once the market has refused it."""
        return propose(known, items, factor=1.0 if known.problem else 1.0 + self.surcharge)
