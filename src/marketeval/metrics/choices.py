"""How often users who are agents chose nobody whom they could ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketeval.metrics.base import metric
from marketeval.metrics.tables import seeds
from marketeval.metrics.text import text_form

if TYPE_CHECKING:
    import polars as pl

    from marketeval.core.log import LogReader

NO_CHOICES = "no user is an agent"
NOT_ASKED = "was not asked"


@metric
class ChoiceFailureRate:
    """Share of the choices of users who are agents that gave no valid option, from 0 to 1.

        choices without a valid option / choices asked for

    In all, and of each seat that chooses for users; their segments' rule chose instead. A choice is
    asked for where there is anybody to ask, so there is one per interaction of such a user.
    """

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """One row per seed for all, then one per seat."""
        import polars as pl

        from marketeval.metrics.base import TIDY

        asked = _by_seed_and_seat(log, "interaction")
        failed = _by_seed_and_seat(log, "missing_choice")
        seats = log.scan("segment").select("seat").filter(pl.col("seat") != "").unique().collect()
        rows = []
        for seed in seeds(log):
            for seat in (None, *sorted(seats["seat"])):
                here = [
                    sum(
                        many
                        for (one_seed, name), many in counts.items()
                        if one_seed == seed and seat in (None, name)
                    )
                    for counts in (asked, failed)
                ]
                note = None if here[0] else NOT_ASKED if seats.height else NO_CHOICES
                value = here[1] / here[0] if here[0] else None
                rows.append((seed, str(self), "all", None, seat, value, note))
        return pl.DataFrame(rows, schema=TIDY, orient="row")

    def __str__(self) -> str:
        return text_form(self)


def choices(log: LogReader) -> list[tuple[str, int, int]]:
    """Each seat that chooses for users, its failed choices and all it was asked for; over seeds."""
    asked = _by_seed_and_seat(log, "interaction")
    failed = _by_seed_and_seat(log, "missing_choice")
    return [
        (
            seat,
            sum(many for (_, name), many in failed.items() if name == seat),
            sum(many for (_, name), many in asked.items() if name == seat),
        )
        for seat in sorted({name for _, name in asked})
    ]


def _by_seed_and_seat(log: LogReader, kind: str) -> dict[tuple[int, str], int]:
    """Rows of a kind of event by users whose segment names a seat."""
    import polars as pl

    segments = log.scan("segment").select("segment", "seat").filter(pl.col("seat") != "").unique()
    users = log.scan("user").select("seed", "user", "segment").join(segments, on="segment")
    first = users.filter(pl.col("seed").is_null()).select("user", "seat").unique()
    later = users.filter(pl.col("seed").is_not_null()).select("seed", "user", "seat")
    rows = log.scan(kind).select("seed", "user")
    found = pl.concat(
        [
            rows.join(first, on="user").select("seed", "seat"),
            rows.join(later, on=["seed", "user"]).select("seed", "seat"),
        ]
    )
    counts = found.group_by("seed", "seat").len().collect()
    return {(seed, seat): many for seed, seat, many in counts.iter_rows()}
