"""Marginal-value bidder: pays up to a part of what a unit sold for last step (Vickrey, 1961, shades
less; a pay-as-bid auction rewards shading)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marketeval.actions.supply_chain import Bid, Briefing
from marketeval.agents.heuristic.base import Retailer, bundle, resale_value
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Retailer):
    """Bids `shade` times the resale value, on the items with the best margin first."""

    shade: float = 0.8
    slogan: str = "Fine goods, fairly made and built to last."

    def bid(self, request: Request, briefing: Briefing) -> Bid:
        """Shaded resale value; an item that resells below its base price is left out."""
        value = resale_value(briefing, otherwise=1.4)
        margin = np.maximum(value / briefing.base_price - 1.0, 0.0)
        return bundle(briefing, value * self.shade, briefing.funds, weight=np.minimum(margin, 1.0))
