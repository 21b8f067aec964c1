"""Reserve bidder: its share of everything at the base price, never more (spec section 6)."""

from __future__ import annotations

from dataclasses import dataclass

from marketeval.agents.heuristic.base import Retailer


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Retailer):
    """Bids the base price and sells a little dearer than it bought."""

    markup: float = 1.3
    slogan: str = "Everyday low prices, every day."
