"""An experiment: a checked scenario with its market and the agents in its seats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from marketeval.core.market import Agent, Market
from marketeval.experiments.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A scenario ready to be played: every seat filled, every file read and checked."""

    scenario: Scenario
    market: Market
    seats: Mapping[str, Agent]
    hashes: Mapping[str, str]
