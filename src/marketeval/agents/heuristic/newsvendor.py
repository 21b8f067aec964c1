"""Newsvendor: orders expected demand, up to the critical ratio (Arrow et al., 1951)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marketeval.actions.supply_chain import Bid, Briefing
from marketeval.agents.heuristic.base import Retailer
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Retailer):
    """Expects to sell what it sold on average; orders mean plus z standard deviations less stock,
    with z for the critical ratio of a goods that keep: about the 84th percentile, z = 1."""

    slogan: str = "Always in stock, always reliable."

    def bid(self, request: Request, briefing: Briefing) -> Bid:
        """Order-up-to levels at 8 % above base, cut in proportion to what the funds allow."""
        fair = briefing.quantity / max(briefing.retailers, 1)
        if briefing.history:
            sold = np.array([past.sold[briefing.me] for past in briefing.history])
            level = np.maximum(sold.mean(axis=0) + np.maximum(sold.std(axis=0), 1.0), 0.5 * fair)
        else:
            level = fair
        unit = np.ceil(briefing.base_price * 1.08).astype(np.int64)
        order = np.maximum(np.ceil(level) - briefing.stock, 0.0)
        cost = float((order * unit).sum())
        part = min(1.0, max(briefing.funds, 0) / cost) if cost > 0 else 0.0
        return Bid(quantity=np.floor(order * part).astype(np.int64), price=unit)
