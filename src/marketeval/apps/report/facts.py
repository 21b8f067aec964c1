"""What a report says about a run, gathered once for the page, the pictures and the terminal.

Numbers come from the run's stored metrics where they are there, else from its log; controls are
read the same way, so that every value can be paired by seed. What the page alone shows is computed
when the page asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import polars as pl

from marketeval.apps.report.numbers import Numbers, tidy_of
from marketeval.core.errors import MarketevalError
from marketeval.events.information import STATUSES
from marketeval.metrics.base import TIDY, Metric, parse_metric
from marketeval.metrics.choices import choices
from marketeval.metrics.concentration import HHI
from marketeval.metrics.dynamics import FailureRate, SwitchRate
from marketeval.metrics.ranking import KendallTau, Rank, SpearmanRho, StaticRank
from marketeval.metrics.resampling import paired_effect, summarise
from marketeval.metrics.retention import Retention
from marketeval.metrics.share import FairShare, MarketShare, ShareVersusFair
from marketeval.metrics.tables import horizon as steps_of

if TYPE_CHECKING:
    from marketeval.core.log import LogReader
    from marketeval.experiments.run_directory import RunDirectory

PHASE_METRICS = (MarketShare, ShareVersusFair, FairShare, Rank, StaticRank, KendallTau, SpearmanRho)
MOST_WINDOWS = 100
_CELLS = 2_000_000  # resampled means that a summary may sort
_WORK = 4_000_000_000  # multiplications that resampling may take
_VERBS = {"entry": "enters", "exit": "exits", "recovery": "recovers"}


@dataclass(frozen=True, slots=True)
class Agent:
    """A competitor: its seat in the log, and the name that people see."""

    seat: str
    name: str
    entry_step: int
    privileged: bool
    f_score: float | None
    accuracy: float | None
    items: int = 0  # questions of the static benchmark; 0 where a rate was declared
    correct: float | None = None
    attempted: float | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of steps [start, stop) counted from 0; people read it as steps start+1 to stop."""

    name: str
    start: int
    stop: int
    named: bool = True

    @property
    def steps(self) -> str:
        """As in the paper: `steps 1-100`."""
        return steps(self.start, self.stop)

    @property
    def title(self) -> str:
        """`before (steps 1-100)`."""
        return self.name if self.name == self.steps else f"{self.name} ({self.steps})"


@dataclass(frozen=True, slots=True)
class Change:
    """Something scheduled that happened at a step: an entry, an exit, an outage."""

    step: int
    agent: str
    kind: str

    @property
    def text(self) -> str:
        """`Qwen3 enters`."""
        return (
            f"{self.agent} {_VERBS[self.kind]}"
            if self.kind in _VERBS
            else (f"{self.agent}: {self.kind}")
        )


@dataclass(frozen=True)
class Control:
    """A run on the same seeds with something left out, and the paired differences to it."""

    run: RunDirectory
    name: str
    title: str
    numbers: Numbers
    effect: Numbers


@dataclass(frozen=True)
class Facts:
    """All that is told about one run; `numbers` are those of whole phases."""

    run: RunDirectory
    agents: list[Agent]
    phases: list[Phase]
    changes: list[Change]
    horizon: int
    users: int
    users_per_step: int
    seeds: list[int]
    window: int
    retention: Retention
    numbers: Numbers
    controls: list[Control]
    failures: list[tuple[str, str, int, int]] = field(default_factory=list)

    @cached_property
    def ranked(self) -> list[Agent]:
        """The agents by mean share in the last phase (those that left go last)."""
        metric = of_phase(MarketShare, self.phases[-1])
        share = {a.seat: self.numbers.pooled(metric, a.seat).mean for a in self.agents}
        return sorted(self.agents, key=lambda a: -1 if (s := share[a.seat]) is None else -s)

    def standing(self, phase: Phase) -> list[Agent]:
        """The agents that were there in a phase, by mean share; the system ranking."""
        metric = of_phase(MarketShare, phase)
        found = [(self.numbers.pooled(metric, a.seat).mean, a) for a in self.agents]
        there = [(share, agent) for share, agent in found if share is not None]
        return [agent for _, agent in sorted(there, key=lambda pair: -pair[0])]

    @property
    def main_phases(self) -> list[Phase]:
        """All phases if they are few, else the first and the last, for what has room for few."""
        return self.phases if len(self.phases) < 4 else [self.phases[0], self.phases[-1]]

    def schedule(self) -> list[str]:
        """What is scheduled, step by step: `step 101: Qwen3 enters`."""
        by_step: dict[int, list[str]] = {}
        for change in self.changes:
            by_step.setdefault(change.step, []).append(change.text)
        return [f"step {step + 1}: {', '.join(texts)}" for step, texts in by_step.items()]

    @property
    def share_series(self) -> MarketShare:
        """Market share per window."""
        return MarketShare(window=self.window, mode="tumbling")

    @property
    def hhi_series(self) -> HHI:
        """HHI per window, in points."""
        return HHI(window=self.window, mode="tumbling", points=True)

    @cached_property
    def details(self) -> Numbers:
        """What only the page tells: shares and HHI per window, retention, switching."""
        switching = [of_phase(SwitchRate, phase) for phase in self.phases]
        series = [self.share_series, self.hhi_series]
        return _numbers(self.run, [*series, self.retention, *switching])

    def series_of(self, control: Control) -> Numbers:
        """Shares and HHI per window of a control."""
        return _of_control(control.run, [self.share_series, self.hhi_series])

    def undefined(self) -> list[tuple[str, str, int]]:
        """Metric, reason and number of the values that are undefined, all seeds counted; the
        metrics that the scenario names come first."""
        found = (
            pl.concat([self.details.tidy, self.numbers.tidy])
            .filter(pl.col("value").is_null())
            .with_columns(pl.col("note").fill_null("no reason given"))
            .group_by("metric", "note", maintain_order=True)
            .len()
            .rows()
        )
        named = [str(parse_metric(text)) for text in self.run.scenario.metrics]
        return sorted(found, key=lambda row: [*named, row[0]].index(row[0]))


@lru_cache(maxsize=2)
def gather(run: RunDirectory) -> Facts:
    """Read a run and its controls; the last two are remembered, for the terminal and the page."""
    log = run.log
    horizon = steps_of(log)
    market = log.scan("market").collect()
    users, users_per_step = (
        int(market[name][0]) if market.height else 0 for name in ("users", "users_per_step")
    )
    agents = _agents(log)
    phases = [
        Phase(name, start, min(stop, horizon))
        for name, start, stop in log.scan("phase").select("name", "start", "stop").collect().rows()
        if start < horizon
    ] or [Phase("all steps", 0, horizon, named=False)]
    wanted: list[Metric] = []
    for phase in phases:
        wanted += [*(of_phase(cls, phase) for cls in PHASE_METRICS), hhi_of(phase)]
    failures = _failures(log, {agent.seat: agent.name for agent in agents})
    if failures:
        wanted.append(FailureRate())
    numbers = _numbers(run, wanted)
    controls = [_control(name, one, numbers, wanted) for name, one in sorted(run.controls.items())]
    return Facts(
        run=run,
        agents=agents,
        phases=phases,
        changes=_changes(log, agents),
        horizon=horizon,
        users=users,
        users_per_step=users_per_step,
        seeds=log.seeds(),
        window=window_width(horizon),
        retention=_retention(run),
        numbers=numbers,
        controls=controls,
        failures=failures,
    )


def of_phase(cls: type[Metric], phase: Phase) -> Metric:
    """A metric over a phase, or over everything where the log names no phase."""
    return cls(phase=phase.name) if phase.named else cls()  # type: ignore[call-arg]


def hhi_of(phase: Phase) -> HHI:
    """HHI of a phase in points, as in the paper's Tables 2 and 3."""
    return HHI(phase=phase.name, points=True) if phase.named else HHI(points=True)


def steps(start: int, stop: int) -> str:
    """Steps [start, stop) from 0 as people count them: `steps 1-100`, `step 7`."""
    return f"steps {start + 1}-{stop}" if stop > start + 1 else f"step {start + 1}"


def window_width(horizon: int) -> int:
    """Steps per window of the pictures: 10, fewer in a short run, more in a very long one.

    >>> window_width(200), window_width(12), window_width(5000)
    (10, 1, 50)
    """
    if horizon < 40:
        return max(1, horizon // 10)
    width = 10
    for factor in (2, 2.5, 2) * 8:
        if horizon <= width * MOST_WINDOWS:
            break
        width = int(width * factor)
    return width


def _agents(log: LogReader) -> list[Agent]:
    scores = log.scan("static_score").drop("seed", "turn").unique("agent")
    table = (
        log.scan("generator")
        .unique("agent", keep="first")
        .join(scores, on="agent", how="left")
        .sort("position", "agent")
        .collect()
    )
    labels = table["label"].to_list()
    return [
        Agent(
            row["seat"],
            _shown(row["label"], row["seat"], labels, privileged=row["privileged"]),
            row["entry_step"],
            row["privileged"],
            row["f_score"],
            row["accuracy"],
            row["items"] or 0,
            row["correct"],
            row["attempted"],
        )
        for row in table.iter_rows(named=True)
    ]


def _shown(label: str, seat: str, labels: Sequence[str], *, privileged: bool) -> str:
    label = label or seat
    name = f"{label} ({seat})" if labels.count(label) > 1 else label
    name = "".join(c if c.isprintable() else " " for c in name)
    return f"{name} †" if privileged else name


def _changes(log: LogReader, agents: Sequence[Agent]) -> list[Change]:
    late = {Change(a.entry_step, a.name, "entry") for a in agents if a.entry_step > 0}
    names = log.scan("generator").select("agent", "seat").unique("agent")
    rows = (
        log.scan("intervention")
        .join(names, on="agent", how="left")
        .select("step", "seat", pl.col("change").cast(pl.String))
        .unique()
        .collect()
        .rows()
    )
    shown = {agent.seat: agent.name for agent in agents}
    found = {Change(step, shown.get(seat, str(seat)), kind) for step, seat, kind in rows}
    return sorted(found | late, key=lambda one: (one.step, one.kind, one.agent))


def _failures(log: LogReader, names: dict[str, str]) -> list[tuple[str, str, int, int]]:
    """Name, what happened, how often, out of how many: of systems, then of seats that choose.

    What happened is the status and, of missing outcomes, the reason's beginning, up to a colon
    (after the word judge, where it was the judge).
    """
    found: list[tuple[str, str, int, int]] = []
    rows = log.scan("interaction")
    failing = pl.col("status") != STATUSES[0]
    if rows.select(failing.any()).collect().item():
        seats = log.scan("generator").select("agent", "seat").unique("agent")
        asked = dict(rows.group_by("agent").len().collect().iter_rows())
        reasons = log.scan("missing").select("seed", "step", "slot", "reason")
        failed = (
            rows.filter(failing)
            .select("seed", "step", "slot", "agent", pl.col("status").cast(pl.String))
            .join(reasons, on=["seed", "step", "slot"], how="left")
            .with_columns(pl.col("reason").str.extract(r"^((?:judge: )?[^:]*)").fill_null(""))
            .group_by("agent", "status", "reason")
            .len()
            .join(seats, on="agent")
            .sort("agent", "status", "reason")
            .collect()
        )
        found += [
            (names[seat], f"{status}: {reason}" if reason else status, number, asked[agent])
            for agent, status, reason, number, seat in failed.iter_rows()
        ]
    if not log.scan("missing_choice").limit(1).collect().is_empty():
        found += [
            (f"{seat} (chooses for users)", "no valid choice", lost, every_choice)
            for seat, lost, every_choice in choices(log)
            if lost
        ]
    return found


def _retention(run: RunDirectory) -> Retention:
    """The retention that the scenario asks for, else that of the next 10 interactions."""
    for text in run.scenario.metrics:
        found = parse_metric(text)
        if isinstance(found, Retention) and found == Retention(m=found.m):
            return found
    return Retention(m=10)


def _numbers(run: RunDirectory, wanted: Sequence[Metric]) -> Numbers:
    tidy = tidy_of(run, wanted)
    pooled = pl.col("step").is_null()
    parts = [tidy.filter(pooled), tidy.filter(~pooled)]
    return Numbers(tidy, pl.concat(summarise(one, resamples=_resamples(one)) for one in parts))


def _control(name: str, run: RunDirectory, numbers: Numbers, wanted: Sequence[Metric]) -> Control:
    other = _of_control(run, wanted)
    effect = paired_effect(numbers.tidy, other.tidy, resamples=_resamples(numbers.tidy))
    return Control(run, name, run.manifest.title or name, other, Numbers(numbers.tidy, effect))


def _of_control(run: RunDirectory, wanted: Sequence[Metric]) -> Numbers:
    """Numbers of a control; none of them where its phases or events are others: nothing to pair."""
    try:
        return _numbers(run, wanted)
    except MarketevalError:
        empty = pl.DataFrame(schema=TIDY)
        return Numbers(empty, summarise(empty))


def _resamples(tidy: pl.DataFrame) -> int:
    """2000 for the bootstrap; fewer where many seeds or series would take minutes, and one where
    one seed has no interval."""
    if tidy["seed"].n_unique() < 2:
        return 1
    series = max(1, tidy.select("metric", "subject", "step").n_unique())
    return max(400, min(2000, _CELLS // series, _WORK // max(tidy.height, 1)))
