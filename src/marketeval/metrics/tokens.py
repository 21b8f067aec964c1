"""What models used for what came of it: tokens per purchase, from what the log says of calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from marketeval.metrics.base import metric
from marketeval.metrics.bazaar import Episode, world
from marketeval.metrics.tables import remembered
from marketeval.metrics.welfare import NO_PURCHASE, OfEpisode, Value

if TYPE_CHECKING:
    from marketeval.core.log import LogReader

NO_MODEL = "no model was asked"
UNSTATED = "an endpoint states no tokens"
Uses = Mapping[tuple[int, int], list[tuple[str, int]]]  # (seed, day): seat, tokens or -1


@metric
class TokensPerPurchase(OfEpisode):
    """Tokens that models read and wrote in an episode, over its payments that were not refused.

    `side`: those of customers, of businesses, or of both. Calls that brought no purchase count;
    calls that failed for good have no tokens.
    """

    side: Literal["both", "customers", "businesses"] = "both"

    def measure(self, log: LogReader, seed: int, episode: Episode) -> Iterator[Value]:
        """One value; the note holds the total."""
        world = episode.world
        seats = {
            "customers": set(world.shoppers),
            "businesses": set(world.shops),
            "both": {*world.shoppers, *world.shops},
        }[self.side]
        used = [tokens for seat, tokens in _uses(log).get((seed, episode.day), ()) if seat in seats]
        if not used:
            yield None, None, NO_MODEL
        elif min(used) < 0:
            yield None, None, UNSTATED
        elif not episode.payments:
            yield None, None, f"{NO_PURCHASE}; {sum(used)} tokens"
        else:
            yield None, sum(used) / len(episode.payments), f"{sum(used)} tokens"


def _uses(log: LogReader) -> Uses:
    """The tokens of every decision of a model, by seed and day.

    What is noted with an action stands in the log before its round is written, so the round is
    that of the next decision.
    """
    import polars as pl

    def read() -> Uses:
        rounds = world(log).rounds
        decisions = log.scan("decision").select("seed", "turn", "round").sort("seed", "turn")
        asked = log.scan("structured").sort("seed", "turn", maintain_order=True)
        joined = asked.join_asof(
            decisions, on="turn", by="seed", strategy="forward", check_sortedness=False
        )
        total = (
            pl.when((pl.col("input_tokens") < 0) | (pl.col("output_tokens") < 0))
            .then(pl.lit(-1))
            .otherwise(pl.col("input_tokens") + pl.col("output_tokens"))
        )
        found: dict[tuple[int, int], list[tuple[str, int]]] = {}
        rows = joined.select("seed", "round", "seat", total.alias("tokens")).collect()
        for seed, round_, seat, tokens in rows.iter_rows():
            found.setdefault((seed, (round_ or 0) // rounds), []).append((seat, tokens))
        return found

    return remembered(log, "bazaar tokens", read)
