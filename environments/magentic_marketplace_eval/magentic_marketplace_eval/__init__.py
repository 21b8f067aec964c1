"""The two-sided marketplace as an environment of verifiers; all of it lives in marketeval."""

from marketeval.adapters.verifiers.harness import SeatHarness
from marketeval.adapters.verifiers.magentic import MagenticEnv, MagenticTaskset

__all__ = ["MagenticEnv", "MagenticTaskset", "SeatHarness"]
