"""magentic-marketplace-eval: the two-sided market as an environment, cell for cell.

A cell is a population, a search rule and a budget of decisions per customer. Every seat, customer
or business, is the evaluated model, unless one side is handed to opponents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import verifiers.v1 as vf
from pydantic import Field, field_validator

from marketeval.adapters.verifiers.table import Json, MarketData, MarketTask, Rewards, Table
from marketeval.agents.registry import make_agent
from marketeval.core.errors import MarketevalError
from marketeval.core.log import EventLog
from marketeval.markets.two_sided.family import BUSINESSES, CUSTOMERS, build
from marketeval.markets.two_sided.market import populate
from marketeval.markets.two_sided.population import Population
from marketeval.markets.two_sided.prompts import instructions
from marketeval.markets.two_sided.scenario import TwoSided
from marketeval.mechanisms.search import RULES
from marketeval.metrics.analytics import analytics, fault_rows, optimum
from marketeval.metrics.base import Metric, evaluate
from marketeval.metrics.tables import Remembering
from marketeval.metrics.welfare import (
    NeedsMet,
    ProposalValidity,
    PurchaseCompletion,
    WelfareOverOptimum,
)

# Of each group: our population, the reference's folder of that shape, customers, businesses.
GROUPS: Mapping[str, tuple[str, str, int, int]] = {
    "mexican3": ("restaurants-3x9", "mexican_3_9", 3, 9),
    "mexican5": ("restaurants-10x30", "mexican_10_30", 5, 15),
    "mexican10": ("restaurants-10x30", "mexican_10_30", 10, 30),
    "contractors5": ("home-services-10x30", "contractors_10_30", 5, 15),
    "contractors10": ("home-services-10x30", "contractors_10_30", 10, 30),
}
CELLS = (
    "mexican3_simple", "mexican3_lexical", "mexican3_optimal", "mexican5_lexical",
    "contractors5_simple", "contractors5_lexical",
    "mexican3_simple_tight", "mexican5_lexical_tight", "contractors5_lexical_tight",
)  # fmt: skip
COMPONENTS: Mapping[str, Metric] = {
    "mm_purchase_completion": PurchaseCompletion(),
    "mm_needs_met": NeedsMet(),
    "mm_welfare": WelfareOverOptimum(),
    "mm_proposal_validity": ProposalValidity(),
}
_CELL = re.compile(rf"({'|'.join(GROUPS)})_({'|'.join(RULES)})(_tight)?")


class MagenticTasksetConfig(vf.TasksetConfig):
    """Which cells are played, and how they differ from the published ones.

    `cells`: GROUP_SEARCH or GROUP_SEARCH_tight; groups are mexican3, mexican5, contractors5, and
    with 40 seats mexican10 and contractors10. `steps` and `tight_steps` are a customer's decisions;
    `search` puts one search rule into every cell. `populations` is a folder with the reference's
    own populations (mexican_3_9, mexican_10_30, contractors_10_30), instead of ours in the same
    shapes. `briefing` bounds the first message of a seat, in characters. `forms: known` has the
    JSON schemas of answers name only the items, businesses and proposals that the seat knows.
    """

    cells: list[str] = list(CELLS)
    seeds: list[int] = [1, 2]
    steps: int = Field(10, ge=1)
    tight_steps: int = Field(6, ge=1)
    search: str | None = None
    rules: Literal["compatible", "strict"] = "compatible"
    populations: Path | None = None
    briefing: int = Field(16_000, ge=1000)
    forms: Literal["open", "known"] = "open"

    @field_validator("cells")
    @classmethod
    def _known(cls, cells: list[str]) -> list[str]:
        for cell in cells:
            if not _CELL.fullmatch(cell):
                raise ValueError(
                    f"unknown cell '{cell}'; expected GROUP_SEARCH or GROUP_SEARCH_tight, such as "
                    f"{', '.join(CELLS)}"
                )
        return cells

    @field_validator("search")
    @classmethod
    def _rule(cls, name: str | None) -> str | None:
        if name is not None and name not in RULES:
            raise ValueError(f"unknown search rule '{name}'; known: {', '.join(sorted(RULES))}")
        return name

    @field_validator("populations")
    @classmethod
    def _folder(cls, folder: Path | None) -> Path | None:
        if folder is not None and not folder.is_dir():
            raise ValueError(f"expected a folder of populations, got {folder}")
        return folder


class MagenticTaskset(vf.Taskset[MarketTask, MagenticTasksetConfig]):
    """Cells x seeds, the seeds of a cell together."""

    def load(self) -> Iterable[MarketTask]:
        """One task per episode."""
        for cell in self.config.cells:
            for seed in self.config.seeds:
                yield MarketTask(
                    MarketData(
                        name=f"{cell}/seed-{seed}",
                        cell=cell,
                        seed=seed,
                        market=_specification(cell, self.config),
                    ),
                    self.config.task,
                )


class MagenticEnvConfig(vf.EnvConfig):
    """Who plays. `focal`: the side that the evaluated model has; the other side is played by
    `opponents`: `model` (the role `opponent`, which may be pinned to a model and an endpoint of
    its own) or a script by its name, such as heuristic:menu-honest."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    opponent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    focal: Literal["both", "customers", "businesses"] = "both"
    opponents: str = "model"
    max_concurrent_agents: int | None = Field(8, ge=1)

    @field_validator("opponents")
    @classmethod
    def _playable(cls, text: str) -> str:
        try:
            if text != "model":
                make_agent(text, seat="opponents")
        except MarketevalError as error:
            raise ValueError(str(error)) from None
        return text


class MagenticEnv(vf.Env[MagenticEnvConfig]):
    """One episode: a whole market, every model seat a held-open interaction."""

    async def setup(self, agents: vf.Agents) -> None:
        """Opponents are not trained."""
        agents.opponent.trainable = False

    async def run(self, task: MarketTask, agents: vf.Agents) -> None:
        """Open the seats, play, and write the rewards before they close."""
        spec = TwoSided(**task.data.market)
        population = populate(spec)
        market = build(spec, [(CUSTOMERS, "model"), (BUSINESSES, "model")], population=population)
        rules = {
            CUSTOMERS: instructions("customer", spec.prompts),
            BUSINESSES: instructions("business", spec.prompts),
        }
        async with Table(task, ("mm", *COMPONENTS), counters="magentic_seat") as table:
            scripted = {}
            for side, name in _seats(population):
                focal = self.config.focal in ("both", side)
                if focal or self.config.opponents == "model":
                    table.seat(name, agents.agent if focal else agents.opponent)
                else:
                    scripted[name] = make_agent(self.config.opponents, seat=name)
            await table.sit({name: rules[side] for side, name in _seats(population)})
            log = await table.play(market, scripted, seed=task.data.seed)
            rewards, info = _scores(log, task.data, population)
            _count_calls(info["raw"], table)
            table.record(dict.fromkeys(table.seats, rewards), key="magentic", info=info)


def _specification(cell: str, config: MagenticTasksetConfig) -> Json:
    found = _CELL.fullmatch(cell)
    assert found is not None  # the config has checked it
    ours, reference, customers, businesses = GROUPS[found[1]]
    return {
        "population": str(config.populations / reference) if config.populations else ours,
        "customers": customers,
        "businesses": businesses,
        "search": config.search or found[2],
        "steps": config.tight_steps if found[3] else config.steps,
        "rules": config.rules,
        "briefing": config.briefing,
        "forms": config.forms,
    }


def _seats(population: Population) -> list[tuple[str, str]]:
    """Side and name of every seat, in the order of the data."""
    return [
        *((CUSTOMERS, one.id) for one in population.customers),
        *((BUSINESSES, one.id) for one in population.businesses),
    ]


def _scores(events: EventLog, data: MarketData, population: Population) -> tuple[Rewards, Json]:
    """The rewards, and what stands beside them in a trace's info.

    The composite is the mean of the components; one that is undefined (no proposal was made, so
    none was valid) is left out of it, and `undefined` says so.
    """
    log = Remembering(events)
    table = evaluate(log, list(COMPONENTS.values()))
    rows = dict(zip(COMPONENTS, table.select("value", "note").iter_rows(), strict=True))
    values = {name: value for name, (value, _) in rows.items()}
    defined = [value for value in values.values() if value is not None]
    composite = sum(defined) / len(defined) if defined else None
    rewards = {"mm": (composite, 1.0), **{name: (one, 0.0) for name, one in values.items()}}
    info = {
        "cell": data.cell,
        "seed": data.seed,
        "market": data.market,
        "population": {"source": population.source, "digest": population.digest},
        "rewards": {"mm": composite, **values},
        "undefined": {name: note for name, (value, note) in rows.items() if value is None},
        "raw": {
            **analytics(log, data.seed),
            "optimal_welfare": optimum(log),
            "proposal_errors": fault_rows(log, data.seed),
        },
        "log_digest": events.digests[data.seed],
    }
    return rewards, info


def _count_calls(raw: dict[str, Any], table: Table) -> None:  # any: JSON
    """The counts of model calls, which no event log holds."""
    calls = [call for _, trace in table.traces for call in trace.calls]
    raw["llm_models"] = sorted({call.model for call in calls if call.model})
    raw["total_llm_calls"] = len(calls)
    raw["failed_llm_calls"] = sum(call.error is not None for call in calls)
