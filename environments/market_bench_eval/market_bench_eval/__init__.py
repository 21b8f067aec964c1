"""The supply-chain market as an environment of verifiers; all of it lives in marketeval."""

from marketeval.adapters.verifiers.bench import BenchEnv, BenchTaskset
from marketeval.adapters.verifiers.harness import SeatHarness

__all__ = ["BenchEnv", "BenchTaskset", "SeatHarness"]
