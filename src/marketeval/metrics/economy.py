"""Money and load of coupled markets: who earned what, what a unit of utility cost, who was full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from marketeval.core.errors import UsageError
from marketeval.metrics.base import metric
from marketeval.metrics.population import OfEcosystem
from marketeval.metrics.tables import batches, seeds

if TYPE_CHECKING:
    import polars as pl

    from marketeval.core.log import LogReader

MICROS = 1_000_000


class _Tabled(OfEcosystem):
    """A metric whose values are a table of seed, subject and value; null says why."""

    missing = ""

    def subjects(self, log: LogReader) -> Sequence[str | None]:
        """The rows of each seed."""
        table = log.scan("agent").select("agent", "seat").sort("agent").collect()
        return table["seat"].to_list()

    def values(self, log: LogReader) -> pl.DataFrame:
        """Columns seed, subject, value."""
        raise NotImplementedError

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """A row for every seed and subject."""
        import polars as pl

        from marketeval.metrics.base import TIDY

        found = {(seed, who): value for seed, who, value in self.values(log).iter_rows()}
        rows = []
        for seed in seeds(log):
            for subject in self.subjects(log):
                value = found.get((seed, subject))
                note = self.missing if value is None else None
                rows.append((seed, str(self), "all", None, subject, value, note))
        return pl.DataFrame(rows, schema=TIDY, orient="row")


@metric
class NetIncome(_Tabled):
    """Dollars that came in less dollars that went out, of every agent that is no user.

    `part=revenue` counts what came in, `part=spending` what went out.
    """

    part: Literal["profit", "revenue", "spending"] = "profit"
    missing = "nothing has a price in this market"

    def __post_init__(self) -> None:
        if self.part not in ("profit", "revenue", "spending"):
            raise UsageError(f"{self}: part takes profit, revenue or spending")

    def values(self, log: LogReader) -> pl.DataFrame:
        """Sums of the payments; 0 for who had none, null where nothing has a price."""
        import polars as pl

        paid = log.scan("payment")
        came = paid.select("seed", subject="payee", value=pl.col("micros"))
        went = paid.select("seed", subject="payer", value=-pl.col("micros"))
        parts = {"profit": [came, went], "revenue": [came], "spending": [went]}[self.part]
        books = log.scan("balance").select("seed", subject="account", value=pl.lit(0, pl.Int64))
        sign = -1 if self.part == "spending" else 1
        return (
            pl.concat([*parts, books])
            .group_by("seed", "subject")
            .agg((sign * pl.col("value").sum() / MICROS).alias("value"))
            .collect()
        )


@metric
class CostPerUtility(_Tabled):
    """Dollars that users paid per unit of their utility; null where utility is not above 0."""

    missing = "the users' utility is not above 0"

    def subjects(self, log: LogReader) -> Sequence[str | None]:
        """The market as a whole."""
        return (None,)

    def values(self, log: LogReader) -> pl.DataFrame:
        """Sum of the costs over sum of the utilities, each added up in the order of the rows."""
        import polars as pl

        every = np.array(seeds(log), np.int64)
        costs, utilities = np.zeros((2, every.size))
        for part in batches(log, "interaction", ["seed", "cost_usd", "utility"]):
            seed, cost, utility = np.broadcast_arrays(*part.values())
            place = np.searchsorted(every, seed)
            np.add.at(costs, place, np.where(np.isnan(cost), 0.0, cost))
            np.add.at(utilities, place, np.where(np.isnan(utility), 0.0, utility))
        useful = utilities > 0
        return pl.DataFrame(
            {"seed": every[useful], "value": costs[useful] / utilities[useful]}
        ).select("seed", pl.lit(None, pl.String).alias("subject"), "value")


@metric
class Congestion(_Tabled):
    """Share of the calls of an agent that were turned away, had to wait, or were served worse."""

    missing = "nobody called it"

    def values(self, log: LogReader) -> pl.DataFrame:
        """Calls of retrievers, and of providers by users."""
        import polars as pl

        names = log.scan("agent").select("agent", "seat")
        slow = (pl.col("effort") < 1) | (pl.col("served") > pl.col("step"))
        calls = log.scan("retrieval").filter(pl.col("caller") >= 0)
        both = pl.concat(
            [
                calls.select("seed", "agent", slow.alias("slow")),
                log.scan("path").select("seed", pl.col("provider").alias("agent"), slow=slow),
            ]
        )
        return (
            both.join(names, on="agent")
            .group_by("seed", "seat")
            .agg(pl.col("slow").mean())
            .select("seed", "seat", "slow")
            .collect()
        )
