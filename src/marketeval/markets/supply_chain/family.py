"""What the supply-chain family offers to those who run scenarios of any family."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from marketeval.core.log import EventKind
from marketeval.events import supply_chain as events
from marketeval.markets.supply_chain.market import EMBEDDER, SupplyChainMarket
from marketeval.markets.supply_chain.prompts import prompt_hash
from marketeval.markets.supply_chain.scenario import SupplyChain

Spec = SupplyChain
KINDS: Sequence[EventKind] = events.KINDS
SHARED: Sequence[EventKind] = events.SHARED
SERVICES: Mapping[str, str] = {EMBEDDER: "embedder:lexical"}  # seats that do not compete
DEFAULT_METRICS: Sequence[str] = (
    # Table 2 of the paper, in its order
    "NPM", "Profit", "RAR", "IEI", "StockoutRate", "BidEfficiency", "OSI", "FillRate", "MMS",
    # what must stand beside them, and their parts
    "UnitsSold", "Revenue", "PartialRate", "WinShare", "PriceDiscipline", "OverbidRate",
    "InvalidRate", "VoidLineRate", "CapitalEfficiency", "Drawdown", "LanguageLeverage", "Funds",
    "Profit(basis=accrual)",
    # section 4.3
    "ProfitCorrelation(BidEfficiency)", "ProfitCorrelation(FillRate)",
    "ProfitCorrelation(StockoutRate)", "ProfitCorrelation(MMS)", "RankMobility", "ActiveRatio",
    # Figures 3 to 6
    *(
        f"MarketIndex({index}, base={base}, by=step)"
        for base in ("funds", "step_revenue", "cumulative_revenue")
        for index in ("gini", "theil_t", "theil_l", "cv", "hhi", "cr4")
    ),
    "ActiveRatio(by=step)", "RankMobility(by=step)",
    *(
        f"{name}(by=step)"
        for name in ("NPM", "Profit", "Funds", "OSI", "BidEfficiency", "FillRate", "MMS")
    ),
)  # fmt: skip


def build(
    spec: SupplyChain, seats: Sequence[tuple[str, str]], *, privileged: Collection[str] = ()
) -> SupplyChainMarket:
    """The market of a checked scenario; `seats` are (name, label) in configuration order."""
    return SupplyChainMarket(spec=spec, retailers=list(seats), privileged=frozenset(privileged))


def default_metrics(spec: SupplyChain) -> tuple[str, ...]:
    """The metrics of a scenario that names none: the above, and similarity to each tribe."""
    tribes = [f'MMS(tribe="{one.name}", by=step)' for one in spec.tribes]
    return (*DEFAULT_METRICS, *tribes)


def hashes() -> Mapping[str, str]:
    """What a manifest should record besides data: the prompts that seats were shown."""
    return {"prompts/supply_chain": prompt_hash()}
