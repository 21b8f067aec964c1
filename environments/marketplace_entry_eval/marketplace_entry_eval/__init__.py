"""The entry into an information market as an environment of verifiers; it lives in marketeval."""

from marketeval.adapters.verifiers.entry import EntryEnv, EntryTaskset
from marketeval.adapters.verifiers.harness import SeatHarness

__all__ = ["EntryEnv", "EntryTaskset", "SeatHarness"]
