"""One population of coupled markets seen as a market of its own.

Whoever selects an agent of the population, user, router or generator, counts as one interaction
with it; its score and utility are those of the answer that came of it.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from marketeval.core.errors import UnknownNameError
from marketeval.metrics.base import metric, parse_metric
from marketeval.metrics.tables import Remembering, remembered
from marketeval.metrics.text import text_form

if TYPE_CHECKING:
    import polars as pl

    from marketeval.core.log import LogReader


class OfPopulation:
    """A log in which the interactions are the selections of one population's agents."""

    def __init__(self, log: LogReader, population: str) -> None:
        import polars as pl

        self._log = log
        table = log.scan("agent").select("agent", "population").collect()
        self._numbers = table.filter(pl.col("population") == population)["agent"].to_list()
        if not self._numbers:
            known = log.scan("agent").select(pl.col("population").unique().sort()).collect()
            raise UnknownNameError("population", population, known["population"].to_list())

    def scan(self, kind: str) -> pl.LazyFrame:
        """The log's own table, of this population where it is about agents."""
        import polars as pl

        ours = pl.col("agent").is_in(self._numbers)
        if kind == "interaction":
            return self._log.scan("choice").filter(ours)
        if kind == "generator":
            return self._log.scan("agent").filter(ours).with_columns(
                entry_step=pl.lit(0), privileged=pl.lit(False)
            )  # fmt: skip
        if kind in ("intervention", "static_score"):
            return self._log.scan(kind).filter(ours)
        return self._log.scan(kind)

    def seeds(self) -> list[int]:
        """As the log's own."""
        return self._log.seeds()


class OfEcosystem:
    """A metric of coupled markets alone."""

    def __str__(self) -> str:
        return text_form(self)


@metric
class In(OfEcosystem):
    """A metric of the users' market, of one population instead: In(retrievers, metric=HHI).

    Whoever selects an agent of the population counts as one interaction with it.
    """

    population: str = field(kw_only=False)
    metric: str = field(default="MarketShare", kw_only=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "metric", str(parse_metric(self.metric)))

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """The rows of the metric, named as this one."""
        import polars as pl

        view = remembered(
            log, ("population", self.population),
            lambda: Remembering(OfPopulation(log, self.population)),
        )  # fmt: skip
        return parse_metric(self.metric).compute(view).with_columns(metric=pl.lit(str(self)))
