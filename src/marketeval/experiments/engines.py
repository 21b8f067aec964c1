"""Which engine plays an experiment: general (any agents) or compiled (all answers known before)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from marketeval.actions.information import TableBacked
from marketeval.core.drive import lockstep
from marketeval.core.errors import UsageError
from marketeval.core.log import EventLog
from marketeval.core.market import Agent, Market
from marketeval.experiments.experiment import Experiment
from marketeval.markets.information.compiled import CompiledMarket, can_compile
from marketeval.markets.information.market import InformationMarket

Engine = Literal["auto", "general", "compiled"]
ENGINES: tuple[Engine, ...] = ("auto", "general", "compiled")


def engine_for(experiment: Experiment, wanted: Engine) -> Literal["general", "compiled"]:
    """The engine that will play; `auto` takes the compiled one where it can.

    Raises UsageError where `compiled` is wanted and cannot be had, and says why.
    """
    market = experiment.market
    if not isinstance(market, InformationMarket):
        if wanted == "compiled":
            raise UsageError(
                f"the compiled engine plays the information family; this scenario is of family "
                f"'{experiment.scenario.family}'; use --engine general"
            )
        return "general"
    asked = [seat for seat, agent in experiment.seats.items() if not isinstance(agent, TableBacked)]
    if wanted == "general" or (wanted == "auto" and asked):
        return "general"
    if asked:
        raise UsageError(
            f"the compiled engine plays recorded and bernoulli agents; seat '{asked[0]}' is "
            "another; use --engine general"
        )
    if can_compile(market):
        return "compiled"
    if wanted == "compiled":
        raise UsageError(
            "the compiled engine plays the shipped choice rules on keyed draws; this scenario has "
            "another rule, users who are agents, draws: mersenne or on_missing: stop; use --engine "
            "general"
        )
    return "general"


def playable(
    experiment: Experiment, engine: Literal["general", "compiled"]
) -> tuple[Market, Mapping[str, Agent]]:
    """The market to play and the seats it may ask; the log is the same with either engine."""
    if engine == "general" or not isinstance(experiment.market, InformationMarket):
        return experiment.market, experiment.seats
    tables = {
        seat: agent.as_table()
        for seat, agent in experiment.seats.items()
        if isinstance(agent, TableBacked)
    }
    return CompiledMarket(market=experiment.market, tables=tables), {}


def play_all(
    market: Market, seats: Mapping[str, Agent], seeds: Sequence[int], log: EventLog
) -> None:
    """Play the episodes of several seeds, at once where the engine can."""
    if isinstance(market, CompiledMarket):
        market.play_seeds(seeds, log)
        return
    for seed in seeds:
        lockstep(market, seats, seed=seed, log=log)
