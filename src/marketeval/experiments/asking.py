"""Whether anybody is asked in a run, how much, and where; `live` does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from marketeval.core.market import Agent, Market
from marketeval.experiments.experiment import Experiment

if TYPE_CHECKING:
    from marketeval.llm.calls import Tally
    from marketeval.llm.cassette import Mode


class Stage(Protocol):
    """Where a run is played if not within this process: over HTTP, against a server."""

    def check(self, experiment: Experiment) -> None:
        """Raises UsageError for a scenario that cannot be played there."""
        ...

    def seats(self, experiment: Experiment) -> Mapping[str, Agent]:
        """The agents of an experiment as they are asked there."""
        ...

    def market(
        self, market: Market, seats: Mapping[str, Agent]
    ) -> AbstractAsyncContextManager[Market]:
        """The market of one episode there; `seats` are what `seats` gave."""
        ...

    def close(self) -> None:
        """Nothing more is played."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How much may be asked: nothing (`replay-only`), or up to so many calls or dollars.

    `told` gets a line on each call that is made, `note` what somebody who waits should know.
    """

    mode: Mode = "record"
    max_calls: int | None = None
    max_cost: float | None = None
    retry_missing: bool = False
    told: Callable[[str], None] | None = None
    note: Callable[[str], None] | None = None
    stage: Stage | None = None
    tallies: dict[str, Tally] = field(default_factory=dict)  # what each seat has used, for a view


def is_live(experiment: Experiment) -> bool:
    """Whether anybody has to be waited for, or might do something else the next time."""
    return any(not (one.immediate and one.deterministic) for one in experiment.seats.values())
