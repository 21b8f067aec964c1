"""Greedy undercutter: one below the cheapest rival, the answer of Bertrand (1883)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marketeval.actions.supply_chain import Bid, Briefing
from marketeval.agents.heuristic.base import Integers, Retailer, bundle, listed
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Retailer):
    """Prices one below the lowest price that a rival posted last step, but not below its cost."""

    slogan: str = "The lowest price in town, guaranteed."

    def bid(self, request: Request, briefing: Briefing) -> Bid:
        """A little above the base price."""
        return bundle(briefing, briefing.base_price * 1.05, briefing.funds)

    def prices(self, request: Request, briefing: Briefing) -> Integers:
        """The lowest rival price less 1; the mark-up where nobody listed the item."""
        if not briefing.history:
            return listed(briefing, briefing.base_price * self.markup)
        rivals = np.delete(briefing.history[-1].price, briefing.me, axis=0)
        none = np.iinfo(np.int64).max
        lowest = np.where(rivals > 0, rivals, none).min(axis=0, initial=none)
        cost = -(-briefing.cost // np.maximum(briefing.stock, 1))
        wanted = np.where(lowest < none, np.maximum(lowest - 1, cost + 1), 0)
        return listed(briefing, np.where(wanted > 0, wanted, briefing.base_price * self.markup))
