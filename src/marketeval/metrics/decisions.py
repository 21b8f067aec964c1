"""How many of the seats' decisions could be used, by side: what a small model is measured by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from marketeval.metrics.base import metric
from marketeval.metrics.bazaar import Episode, world
from marketeval.metrics.tables import remembered
from marketeval.metrics.welfare import OfEpisode, Value

if TYPE_CHECKING:
    from marketeval.core.log import LogReader


@metric
class InvalidDecisions(OfEpisode):
    """Share of decisions that could not be carried out at all, by side, from 0 to 1.

    A decision is invalid if the answer could not be read, its form was wrong or its call failed;
    what the rules refused is counted by `Refusals`. The note holds both counts.
    """

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """A value per side."""
        for side in ("customers", "businesses"):
            counts = _counts(log).get((seed, episode.day, side), [])
            if not counts:
                yield side, None, "nobody was asked"
            else:
                invalid = sum(counts)
                yield side, invalid / len(counts), f"{len(counts) - invalid} valid, {invalid} not"


def _counts(log: LogReader) -> Mapping[tuple[int, int, str], list[bool]]:
    """Whether each decision was invalid, by seed, day and side."""

    def read() -> Mapping[tuple[int, int, str], list[bool]]:
        rounds = world(log).rounds
        found: dict[tuple[int, int, str], list[bool]] = {}
        rows = log.scan("decision").select("seed", "round", "toward", "kind").collect()
        for seed, round_, toward, kind in rows.iter_rows():
            side = "businesses" if toward else "customers"
            found.setdefault((seed, round_ // rounds, side), []).append(kind == "invalid")
        return found

    return remembered(log, "bazaar decisions", read)
