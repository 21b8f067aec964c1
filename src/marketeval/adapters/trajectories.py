"""Trajectories of a supply-chain run for training: one JSON line per seed, step and seat.

    {"seed": 1, "step": 0, "seat": "a", "agent": "heuristic:markup",
     "decisions": [{"decision": "bid", "round": 0, "system": TEXT, "observation": TEXT,
                    "action": {"bids": {...}}, "valid": true}, ..., {"decision": "offer", ...}],
     "outcome": {"won": {item: units}, "spend": ..., "sold": {item: units}, "revenue": ...,
                 "funds": ..., "solvent": true},
     "reward": funds gained in the step, "return": funds gained from here to the end}

Observations are the very texts that a model in the seat read or would have read: the run is played
again, with what models, programs and people answered taken from its cassette, and each episode is
held to the recorded digest. Where there was no action, `action` is null and `valid` false.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from marketeval.actions.supply_chain import Bid, Briefing, Offer
from marketeval.core.drive import lockstep, lockstep_async
from marketeval.core.errors import ReplayError, UsageError
from marketeval.core.log import EventLog
from marketeval.core.market import Action, Agent, Noted, Request
from marketeval.experiments import live
from marketeval.experiments.asking import Asking, is_live
from marketeval.experiments.assembly import assemble
from marketeval.experiments.run_directory import RunDirectory, whole


@dataclass(frozen=True)
class Overheard:
    """An agent whose requests and answers are kept, in order."""

    agent: Agent
    kept: list[tuple[Request, Action]] = field(default_factory=list)

    @property
    def immediate(self) -> bool:
        """As the agent."""
        return self.agent.immediate

    @property
    def deterministic(self) -> bool:
        """As the agent."""
        return self.agent.deterministic

    @property
    def privileged(self) -> bool:
        """As the agent."""
        return self.agent.privileged

    async def act(self, request: Request) -> Action:
        """The agent's answer."""
        answer = await self.agent.act(request)
        self.kept.append((request, answer.action if isinstance(answer, Noted) else answer))
        return answer


def write_trajectories(run: RunDirectory, target: Path, *, seed: int | None = None) -> None:
    """Write the trajectories of one seed or of all.

    Raises
    ------
    UsageError : a run of another family, or one whose log was not kept
    ReplayError : an episode came out differently, or the cassette lacks an answer
    """
    if run.manifest.family != "supply_chain":
        raise UsageError(f"trajectories are of supply-chain runs; {run.path} is of another family")
    if run.manifest.keep == "metrics":
        raise UsageError(f"{run.path} was run with --keep metrics: there is no log to export")
    digests = run.manifest.digests()
    agents = {name: seat.agent for name, seat in run.scenario.seats.items()}
    with whole(target) as half, half.open("w", encoding="utf-8") as file:

        def write(one: int, log: EventLog, seats: Mapping[str, Overheard]) -> None:
            if log.digests[one] != digests[one]:
                raise ReplayError(f"seed {one}: the episode differs from the recorded one")
            for row in _rows(one, log, seats, agents):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

        _play_again(run, [seed] if seed is not None else run.seeds(), write)


def _play_again(
    run: RunDirectory,
    seeds: Sequence[int],
    take: Callable[[int, EventLog, Mapping[str, Overheard]], None],
) -> None:
    """Play episodes once more, each seat overheard."""
    experiment = assemble(run.scenario)

    def overheard(agents: Mapping[str, Agent]) -> dict[str, Overheard]:
        return {name: Overheard(agent) for name, agent in agents.items()}

    if not is_live(experiment):
        for seed in seeds:
            seats, log = overheard(experiment.seats), EventLog(experiment.market.events)
            lockstep(experiment.market, seats, seed=seed, log=log)
            take(seed, log, seats)
        return

    async def everything() -> None:
        asking = Asking(mode="replay-only")
        async with live.opened(run.path, {"": run.scenario}, asking) as arms:
            arm = arms[""]
            for seed in seeds:
                seats, log = overheard(arm.seats), EventLog(arm.experiment.market.events)
                await lockstep_async(arm.experiment.market, seats, seed=seed, log=log)
                take(seed, log, seats)

    asyncio.run(everything())


def _rows(
    seed: int, log: EventLog, seats: Mapping[str, Overheard], agents: Mapping[str, str]
) -> list[dict[str, Any]]:  # any: JSON
    items = log.scan("item").sort("item").collect()["name"].to_list()
    names = log.scan("retailer").sort("agent").collect()["seat"].to_list()
    won = _by_item(log, "award", "won", items)
    sold = _by_item(log, "shelf", "sold", items)
    books = log.scan("account").sort("agent", "step").collect()
    last = dict(books.group_by("agent").agg(pl.col("funds").last()).iter_rows())
    valid = _validity(log)
    heard: dict[tuple[str, int], list[tuple[Request, Action]]] = {}
    for name in names:
        for request, action in seats[name].kept:
            heard.setdefault((name, request.step), []).append((request, action))
    rows = []
    for one in books.sort("step", "agent").iter_rows(named=True):
        step, agent = one["step"], one["agent"]
        seat = names[agent]
        rows.append(
            {
                "seed": seed,
                "step": step,
                "seat": seat,
                "agent": agents[seat],
                "decisions": [
                    _decision(request, action, items, valid, agent)
                    for request, action in heard.get((seat, step), [])
                ],
                "outcome": {
                    "won": won.get((step, agent), {}),
                    "spend": one["spend"],
                    "sold": sold.get((step, agent), {}),
                    "revenue": one["revenue"],
                    "holding": one["holding"],
                    "funds": one["funds"],
                    "solvent": one["solvent"],
                },
                "reward": one["funds"] - one["opening"],
                "return": last[agent] - one["opening"],
            }
        )
    return rows


def _decision(
    request: Request,
    action: Action,
    items: Sequence[str],
    valid: Mapping[tuple[str, int, int, int], bool],
    agent: int,
) -> dict[str, Any]:  # any: JSON
    briefing: Briefing = request.briefing
    place = (request.decision, request.step, briefing.round, agent)
    return {
        "decision": request.decision,
        "round": briefing.round,
        "system": request.instructions,
        "observation": str(briefing),
        "action": _plain(action, items),
        "valid": valid.get(place, False),
    }


def _plain(action: Action, items: Sequence[str]) -> dict[str, Any] | None:  # any: JSON
    """An answer in the form that the prompts ask for; None where it is none of that form."""
    if isinstance(action, Bid):
        lines = zip(action.items or items, _list(action.quantity), _list(action.price), strict=True)
        return {"bids": {name: {"qty": q, "price": p} for name, q, p in lines if q}}
    if isinstance(action, Offer):
        prices = zip(action.items or items, _list(action.price), strict=True)
        return {"prices": {name: p for name, p in prices if p}, "slogan": action.slogan}
    return None


def _list(values: Any) -> list[Any]:  # any: what an agent answered
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _by_item(
    log: EventLog, kind: str, column: str, items: Sequence[str]
) -> dict[tuple[int, int], dict[str, int]]:
    found: dict[tuple[int, int], dict[str, int]] = {}
    rows = log.scan(kind).filter(pl.col(column) > 0).select("step", "agent", "item", column)
    for step, agent, item, units in rows.collect().iter_rows():
        found.setdefault((step, agent), {})[items[item]] = units
    return found


def _validity(log: EventLog) -> dict[tuple[str, int, int, int], bool]:
    bids = log.scan("bid").select("step", "round", "agent", pl.col("state").cast(pl.String))
    found = {
        ("bid", step, round_, agent): state in ("valid", "empty")
        for step, round_, agent, state in bids.collect().iter_rows()
    }
    answers = log.scan("retail").select("step", "agent", "valid").collect()
    return found | {("offer", step, 0, agent): fine for step, agent, fine in answers.iter_rows()}
