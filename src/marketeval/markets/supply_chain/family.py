"""What the supply-chain family offers to those who run scenarios of any family."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from marketeval.core.errors import ScenarioError, UnknownNameError
from marketeval.core.log import EventKind
from marketeval.events import supply_chain as events
from marketeval.markets.supply_chain.market import EMBEDDER, SupplyChainMarket
from marketeval.markets.supply_chain.prompts import prompt_hash
from marketeval.markets.supply_chain.scenario import SupplyChain

Spec = SupplyChain
KINDS: Sequence[EventKind] = events.KINDS
SHARED: Sequence[EventKind] = events.SHARED
SERVICES: Mapping[str, str] = {EMBEDDER: "embedder:lexical"}  # seats that do not compete
PLAYERS = ("heuristic", "openai", "openrouter", "http", "https", "local", "person")
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


def check_seat(name: str, agent: str) -> None:
    """Refuse an agent of the wrong kind for its seat, as far as its name tells."""
    kind = agent.partition(":")[0].partition("#")[0]
    if name in SERVICES and kind in (*PLAYERS, "judge", "bernoulli", "recorded"):
        raise ScenarioError(
            f"seat '{name}' does not compete: expected an agent such as {SERVICES[name]}, got "
            f"'{agent}'"
        )
    if name not in SERVICES and kind in ("embedder", "judge", "bernoulli", "recorded"):
        raise ScenarioError(
            f"seat '{name}': {kind} decides nothing in a supply chain; expected heuristic:NAME, a "
            f"model, remote:, python: or person, got '{agent}'"
        )


def check_metric(spec: SupplyChain, metric: object) -> None:
    """Refuse a metric of a tribe that the scenario does not have."""
    tribe = getattr(metric, "tribe", None)
    names = [one.name for one in spec.tribes]
    if tribe is not None and tribe not in names:
        raise UnknownNameError(f"tribe in {metric}", tribe, names)


def hashes() -> Mapping[str, str]:
    """What a manifest should record besides data: the prompts that seats were shown."""
    return {"prompts/supply_chain": prompt_hash()}
