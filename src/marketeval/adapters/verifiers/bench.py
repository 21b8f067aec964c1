"""market-bench-eval: retailers that bid, price and advertise, as an environment.

In the cell `focal` the evaluated model has one seat against fourteen scripts that are the same
every time; in the cell `arena` every retailer is a model. A seat's reward is its profit over the
best response in hindsight to what all the others did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Literal

import verifiers.v1 as vf
from pydantic import Field

from marketeval.adapters.verifiers.table import Json, MarketData, MarketTask, Rewards, Table
from marketeval.core.log import EventLog
from marketeval.core.market import Agent
from marketeval.experiments.assembly import assemble
from marketeval.experiments.experiment import Experiment
from marketeval.experiments.hindsight import best_response
from marketeval.experiments.scenario import check, read_tree
from marketeval.metrics.base import Metric, evaluate
from marketeval.metrics.inventory import BidEfficiency, FillRate, InvalidRate, StockoutRate
from marketeval.metrics.profit import NPM, Profit

FOCAL = "focal"  # the scenario's seat for whoever is judged
COMPONENTS: Mapping[str, Metric] = {
    "mb_profit": Profit(),
    "mb_npm": NPM(),
    "mb_bid_efficiency": BidEfficiency(),
    "mb_fill_rate": FillRate(),
    "mb_stockout_rate": StockoutRate(),
    "mb_invalid_rate": InvalidRate(),
}
NOTHING_TO_EARN = "even the best response of the menu earns nothing"


class BenchTasksetConfig(vf.TasksetConfig):
    """Which economies are played."""

    cells: list[Literal["focal", "arena"]] = ["focal", "arena"]
    """focal: one seat against the fixed panel; arena: every retailer is a model."""
    seeds: list[int] = [1, 2, 3]
    """Seeds of each cell; the places of the seats move on by one per seed."""
    preset: Literal["default", "language_matters"] = "default"
    """The world: as in the paper with a highest mark-up, or one in which slogans decide."""
    horizon: int = Field(6, ge=1)
    """Steps of an episode; each asks a retailer for its bids, round by round, and its prices."""
    retailers: int = Field(5, ge=2)
    """Seats of the arena."""


class BenchTaskset(vf.Taskset[MarketTask, BenchTasksetConfig]):
    """Cells x seeds."""

    def load(self) -> Iterable[MarketTask]:
        """One task per episode."""
        for cell in self.config.cells:
            for seed in self.config.seeds:
                data = MarketData(
                    name=f"{cell}/seed-{seed}",
                    cell=cell,
                    seed=seed,
                    market=_tree(cell, self.config),
                )
                yield MarketTask(data, self.config.task)


class BenchEnvConfig(vf.EnvConfig):
    """Who plays: the role `agent` has the focal seat, or the seats of the arena; the last `rivals`
    of these go to the role `opponent`, which may be pinned to a model and endpoint of its own."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    opponent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    rivals: int = Field(0, ge=0)
    """Seats of the arena that opponents have."""
    max_concurrent_agents: int | None = Field(8, ge=1)


class BenchEnv(vf.Env[BenchEnvConfig]):
    """One episode of the economy."""

    async def setup(self, agents: vf.Agents) -> None:
        """Opponents are not trained."""
        agents.opponent.trainable = False

    async def run(self, task: MarketTask, agents: vf.Agents) -> None:
        """Play, look back for the best response of each model, write the rewards."""
        experiment = assemble(check(task.data.market))
        names = [FOCAL] if task.data.cell == "focal" else _arena(task.data.market)
        opponents = names[max(1, len(names) - self.config.rivals) :] if self.config.rivals else []
        async with Table(task, ("mb", *COMPONENTS, "mb_best_response")) as table:
            for name in names:
                table.seat(name, agents.opponent if name in opponents else agents.agent)
            log = await table.play(experiment.market, experiment.seats, seed=task.data.seed)
            # It plays a menu of strategies, all in numbers: beside the loop, which goes on.
            best = await asyncio.to_thread(_in_hindsight, experiment, log, task.data, names)
            rewards, info = _scores(log, task.data, best)
            table.record(rewards, key="market_bench", info=info)


def _tree(cell: str, config: BenchTasksetConfig) -> Json:
    """The scenario of a cell; the seats of models hold a script until they are filled."""
    tree = read_tree("market-bench-focal")
    tree["market"] = {"preset": config.preset, "rotate": True, "horizon": config.horizon}
    tree.pop("description", None)
    if cell == "arena":
        tree["seats"] = {f"model-{n}": "heuristic:idle" for n in range(1, config.retailers + 1)}
    return tree


def _arena(tree: Json) -> list[str]:
    return list(tree["seats"])


def _in_hindsight(
    experiment: Experiment, log: EventLog, data: MarketData, names: Iterable[str]
) -> dict[str, float]:
    services: dict[str, Agent] = {
        name: agent for name, agent in experiment.seats.items() if name not in data.market["seats"]
    }
    return {
        name: best_response(experiment.market, services, log, seed=data.seed, seat=name)
        for name in names
    }


def _scores(
    log: EventLog, data: MarketData, best: Mapping[str, float]
) -> tuple[dict[str, Rewards], Json]:
    """Each model's rewards: profit over best response, within -1 and 1, and what it is made of."""
    values: dict[str, dict[str, float | None]] = {}
    for name, one in COMPONENTS.items():
        rows = evaluate(log, [one]).select("subject", "value").iter_rows()
        values[name] = {str(subject): value for subject, value in rows}
    rewards: dict[str, Rewards] = {}
    for seat, most in best.items():
        mine = {name: found.get(seat) for name, found in values.items()}
        profit = mine["mb_profit"]
        share = max(-1.0, min(1.0, profit / most)) if profit is not None and most > 0 else None
        rewards[seat] = {
            "mb": (share, 1.0),
            **{name: (value, 0.0) for name, value in mine.items()},
            "mb_best_response": (most, 0.0),
        }
    info = {
        "cell": data.cell,
        "seed": data.seed,
        "profits": values["mb_profit"],
        "undefined": {seat: NOTHING_TO_EARN for seat, most in best.items() if most <= 0},
        "log_digest": log.digests[data.seed],
    }
    return rewards, info
