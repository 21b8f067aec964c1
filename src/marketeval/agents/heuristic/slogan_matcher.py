"""Slogan matcher: searches slogans by the public history only (follow the leader, then its own)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marketeval.actions.supply_chain import Briefing
from marketeval.agents.heuristic.base import Retailer
from marketeval.core.market import Request

TRIES = (
    "Green, fair and eco-friendly goods for people and planet.",
    "Exclusive and limited: get the trending thing first.",
    "Low prices, big discounts, good value for your money.",
    "Quality and fine craft, made to last.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Retailer):
    """Tries its own slogans in turn, then keeps the one whose step sold the most units of what it
    then had listed; slogans of others are data and never copied."""

    def words(self, request: Request, briefing: Briefing) -> str:
        """The next untried slogan, else the best one seen in the history."""
        if briefing.step < len(TRIES):
            return TRIES[(briefing.step + briefing.me) % len(TRIES)]
        best, most = TRIES[0], -1.0
        for past in briefing.history:
            sold = float(np.sum(past.sold[briefing.me]))
            if past.slogans[briefing.me] and sold > most:
                best, most = past.slogans[briefing.me], sold
        return best
