"""Small economies with scripted answers, for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from marketeval.actions.supply_chain import Bid, Offer
from marketeval.agents.registry import make_agent
from marketeval.core.drive import lockstep
from marketeval.core.log import EventLog
from marketeval.core.market import Failure
from marketeval.markets.supply_chain.family import build
from marketeval.markets.supply_chain.scenario import SupplyChain


@dataclass(frozen=True)
class Scripted:
    """Gives the answer that `bids` or `offers` hold for a step; text is read as a model's."""

    bids: Callable[[Any], object] = lambda briefing: Bid(quantity=[], price=[], items=[])
    offers: Callable[[Any], object] = lambda briefing: Offer(price=[], items=[])
    heard: list = field(default_factory=list)
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False

    async def act(self, request):
        self.heard.append(request)
        kind, answers = (Bid, self.bids) if request.decision == "bid" else (Offer, self.offers)
        answer = answers(request.briefing)
        if isinstance(answer, str):
            try:
                return kind.read(answer)
            except ValueError as error:
                return Failure(str(error))
        return answer


def bid(**lines: tuple[int, int]) -> Bid:
    """`bid(apple=(8, 11))`: 8 units at 11."""
    quantity, price = zip(*lines.values(), strict=True) if lines else ((), ())
    return Bid(items=list(lines), quantity=list(quantity), price=list(price))


def offer(slogan: str = "", **prices: int) -> Offer:
    """`offer("Fresh!", apple=15)`."""
    return Offer(items=list(prices), price=list(prices.values()), slogan=slogan)


def play(
    spec: Mapping[str, Any] | SupplyChain,
    agents: Mapping[str, Any],
    *,
    seeds=(1,),
    embedder="lexical",
) -> EventLog:
    """The log of some episodes; agents are scripted or named by their short text."""
    checked = spec if isinstance(spec, SupplyChain) else SupplyChain.model_validate(spec)
    seats = {
        name: make_agent(one, seat=name) if isinstance(one, str) else one
        for name, one in agents.items()
    }
    market = build(
        checked,
        [(name, name.title()) for name in seats],
        privileged=[name for name, one in seats.items() if one.privileged],
    )
    seats["embedder"] = (
        make_agent(f"embedder:{embedder}", seat="embedder")
        if isinstance(embedder, str)
        else embedder
    )
    log = EventLog(market.events)
    for seed in seeds:
        lockstep(market, seats, seed=seed, log=log)
    return log
