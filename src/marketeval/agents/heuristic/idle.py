"""Idle: asks for nothing and lists nothing; the zero of every scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marketeval.actions.supply_chain import Bid, Briefing
from marketeval.agents.heuristic.base import Integers, Retailer
from marketeval.core.market import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Retailer):
    """Keeps its money."""

    slogan: str = ""

    def bid(self, request: Request, briefing: Briefing) -> Bid:
        """Nothing."""
        return Bid(quantity=np.zeros_like(briefing.quantity), price=briefing.base_price)

    def prices(self, request: Request, briefing: Briefing) -> Integers:
        """Nothing."""
        return np.zeros_like(briefing.quantity)
