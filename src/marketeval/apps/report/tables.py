"""The tables of a report, as values that the page and the terminal each draw in their way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from marketeval.apps.report.facts import Agent, Control, Facts, Phase, hhi_of, of_phase
from marketeval.apps.report.numbers import Value
from marketeval.apps.report.words import (
    PERCENT,
    PLAIN,
    POINTS,
    UNDEFINED,
    Unit,
    both,
    interval,
    number,
)
from marketeval.metrics.base import Metric
from marketeval.metrics.dynamics import FailureRate
from marketeval.metrics.ranking import KendallTau, Rank, SpearmanRho, StaticRank
from marketeval.metrics.share import FairShare, MarketShare, ShareVersusFair


@dataclass(frozen=True, slots=True)
class Cell:
    """A text; `tag` is a mark beside it, such as `new`."""

    text: str
    tag: str = ""


@dataclass(frozen=True)
class Table:
    """Columns whose title starts with `>` hold numbers; `groups` span columns above them."""

    name: str
    caption: str
    columns: list[str]
    rows: list[list[Cell]]
    groups: list[tuple[str, int]] = field(default_factory=list)

    def title(self, place: int) -> str:
        """A column's title."""
        return self.columns[place].removeprefix(">")

    def numeric(self, place: int) -> bool:
        """Whether a column holds numbers."""
        return self.columns[place].startswith(">")


def phase_table(facts: Facts, phases: Sequence[Phase] | None = None) -> Table:
    """System rankings phase by phase, in the form of the paper's Tables 2 and 3."""
    phases = phases or facts.phases
    columns, groups = [">#"], [("", 1)]
    standings = [facts.standing(phase) for phase in phases]
    spread = len(facts.seeds) > 1
    for phase in phases:
        columns += ["System", ">Share %", *([">95% interval"] if spread else []), ">(ΔFS)"]
        hhi = both(facts.numbers.pooled(hhi_of(phase)), POINTS)
        groups.append((f"{phase.title}: HHI {hhi}", 4 if spread else 3))
    rows = []
    for place in range(max(map(len, standings), default=0)):
        row = [Cell(str(place + 1))]
        for phase, standing in zip(phases, standings, strict=True):
            if place < len(standing):
                row += _system(facts, phase, standing[place], spread=spread)
            else:
                row += [Cell("")] * (4 if spread else 3)
        rows.append(row)
    caption = (
        "System ranking by market share in each phase. ΔFS: share minus fair share, which is in "
        "proportion to the static score, in percentage points. HHI in points, 10,000 = monopoly."
    )
    return Table("phases", caption, columns, rows, groups)


def _system(facts: Facts, phase: Phase, agent: Agent, *, spread: bool) -> list[Cell]:
    share = facts.numbers.pooled(of_phase(MarketShare, phase), agent.seat)
    gap = facts.numbers.pooled(of_phase(ShareVersusFair, phase), agent.seat)
    new = phase.start > 0 and phase.start <= agent.entry_step < phase.stop
    cells = [Cell(agent.name, "new" if new else ""), Cell(number(share.mean, PERCENT))]
    if spread:
        cells.append(Cell(interval(share, PERCENT)))
    change = number(gap.mean, PERCENT, signed=True)
    return [*cells, Cell(change if change == UNDEFINED else f"({change})")]


def effect_table(facts: Facts, control: Control) -> Table:
    """Paired differences to a control."""
    rows = []
    spread = len(facts.seeds) > 1
    for phase in facts.phases:
        found = _effects(facts, control, phase)
        if all(one.mean == 0 and {one.low, one.high} <= {0, None} for _, one in found):
            same = [Cell(phase.name), Cell("all of these"), Cell("same"), Cell("same"), Cell("0")]
            rows.append([*same, Cell("equal in every seed")])
        else:
            rows += [row for row, _ in found]
    caption = (
        f"Effect against the control '{control.name}': the run minus the control, seed by seed"
        + (", with 95% bootstrap intervals of the mean difference." if spread else ".")
        + " Shares are in percent, their differences in percentage points."
        + ("" if facts.main_phases == facts.phases else " Shares: first and last phase.")
    )
    columns = ["Phase", "Metric", ">Run", ">Control", ">Difference"]
    return Table(
        f"effect-{control.name}",
        caption,
        [*columns, ">95% interval"] if spread else columns,
        rows if spread else [row[:-1] for row in rows],
    )


def _effects(facts: Facts, control: Control, phase: Phase) -> list[tuple[list[Cell], Value]]:
    share = of_phase(MarketShare, phase)
    there = facts.standing(phase) if phase in facts.main_phases else []
    wanted: list[tuple[str, Metric, str | None, Unit]] = [
        ("HHI, points", hhi_of(phase), None, POINTS),
        *((f"Share of {a.name}, %", share, a.seat, PERCENT) for a in there),
        ("Kendall tau", of_phase(KendallTau, phase), None, PLAIN),
    ]
    found = []
    for name, metric, subject, unit in wanted:
        numbers = (facts.numbers, control.numbers, control.effect)
        run, other, effect = (one.pooled(metric, subject) for one in numbers)
        absent = other.mean is None and subject is not None
        row = [
            Cell(phase.name),
            Cell(name),
            Cell(number(run.mean, unit)),
            Cell("not there" if absent else number(other.mean, unit)),
            Cell("" if absent else number(effect.mean, unit, signed=True)),
            Cell(interval(effect, unit, signed=True)),
        ]
        found.append((row, effect))
    return found


def rank_table(facts: Facts, phases: Sequence[Phase] | None = None) -> Table:
    """How each system did on the static benchmark, and where it and the market place it."""
    benchmark = [">Items", ">Correct", ">Attempted"] if any(a.items for a in facts.agents) else []
    columns = ["System", *benchmark, ">F-score %"]
    groups = [("static benchmark" if benchmark else "", len(columns))]
    phases = phases or facts.main_phases
    for phase in phases:
        columns += [">Static", ">Market", ">Mean place", ">Fair %"]
        groups.append((f"{phase.title}: {correlations(facts, phase)}", 4))
    scored = sorted(facts.agents, key=lambda a: -1.0 if a.f_score is None else -a.f_score)
    rows = []
    for agent in scored:
        counts = (agent.items or None, agent.correct, agent.attempted)
        row = [
            Cell(agent.name),
            *(Cell(_count(one)) for one in counts if benchmark),
            Cell(number(agent.f_score, PERCENT)),
        ]
        for phase in phases:
            standing = facts.standing(phase)
            if agent not in standing:
                row += [Cell("")] * 4
                continue
            static, rank, fair = (
                facts.numbers.pooled(of_phase(cls, phase), agent.seat)
                for cls in (StaticRank, Rank, FairShare)
            )
            row += [
                Cell(number(static.mean, (0, 1.0))),
                Cell(str(standing.index(agent) + 1)),
                Cell(both(rank, (1, 1.0))),
                Cell(number(fair.mean, PERCENT)),
            ]
        rows.append(row)
    caption = (
        "Static rank against market rank. Static: place by F-score among the systems there; "
        "market: place by mean share; mean place: mean over seeds of each seed's own place."
    )
    return Table("ranks", caption, columns, rows, groups)


def _count(value: float | None) -> str:
    """A count of items; samples of an item are averaged, so it may have a fraction."""
    return "" if value is None else f"{value:,.1f}".removesuffix(".0")


def order_table(facts: Facts) -> Table:
    """How far the market's order follows the static one, phase by phase."""
    rows = [
        [
            Cell(phase.name),
            Cell(phase.steps),
            *(
                Cell(both(facts.numbers.pooled(of_phase(cls, phase)), PLAIN))
                for cls in (KendallTau, SpearmanRho)
            ),
        ]
        for phase in facts.phases
    ]
    caption = "Rank correlation of static scores and market shares: 1 = the same order."
    return Table("order", caption, ["Phase", "Steps", ">Kendall tau", ">Spearman rho"], rows)


def correlations(facts: Facts, phase: Phase) -> str:
    """`Kendall tau 0.47 [0.41, 0.52], Spearman rho 0.58 [...]`: static against market order."""
    tau, rho = (facts.numbers.pooled(of_phase(cls, phase)) for cls in (KendallTau, SpearmanRho))
    return f"Kendall tau {both(tau, PLAIN)}, Spearman rho {both(rho, PLAIN)}"


def retention_table(facts: Facts) -> Table:
    """Retention by system."""
    rows = []
    for agent in facts.ranked:
        value = facts.details.pooled(facts.retention, agent.seat)
        rows.append([Cell(agent.name), Cell(both(value, PERCENT))])
    caption = f"{facts.retention} by system: mean over seeds, in percent."
    return Table("retention", caption, ["System", ">Retention %"], rows)


def failure_table(facts: Facts) -> Table:
    """Interactions without an outcome, by system."""
    rows = [
        [
            Cell(name),
            Cell(status),
            Cell(f"{failed:,}"),
            Cell(f"{asked:,}"),
            Cell(number(failed / asked, PERCENT)),
        ]
        for name, status, failed, asked in facts.failures
    ]
    rate = facts.numbers.pooled(FailureRate())
    caption = (
        "Interactions that had no outcome, and choices of users that named nobody, over all seeds; "
        f"in all {both(rate, PERCENT)}% of the interactions failed."
    )
    columns = ["System", "What happened", ">Failed", ">Asked", ">Failed %"]
    return Table("failures", caption, columns, rows)


def undefined_table(facts: Facts) -> Table:
    """Values that are undefined, and why."""
    rows = [[Cell(name), Cell(why), Cell(f"{many:,}")] for name, why, many in facts.undefined()]
    caption = "Undefined values are left out of means and never counted as 0."
    return Table("undefined", caption, ["Metric", "Reason", ">Values"], rows)


def summary_table(many: Sequence[tuple[str, Facts]]) -> Table:
    """Several runs side by side."""
    rows: list[list[Cell]] = []

    def add(name: str, values: Sequence[str | None]) -> None:
        if any(values):
            rows.append([Cell(name), *(Cell(one or "") for one in values)])

    add("Seeds", [f"{len(facts.seeds):,}" for _, facts in many])
    add("Systems", [str(len(facts.agents)) for _, facts in many])
    for name in dict.fromkeys(phase.name for _, facts in many for phase in facts.phases):
        pairs = [(f, next((p for p in f.phases if p.name == name), None)) for _, f in many]
        add(f"HHI, {name}", [_if(p, f, hhi_of, POINTS) for f, p in pairs])
        add(f"Largest share, {name}", [_leader(f, p) if p else None for f, p in pairs])
        for cls, label in ((KendallTau, "Kendall tau"), (SpearmanRho, "Spearman rho")):
            add(f"{label}, {name}", [_if(p, f, partial(of_phase, cls), PLAIN) for f, p in pairs])
    for control in dict.fromkeys(one.name for _, facts in many for one in facts.controls):
        for name in dict.fromkeys(p.name for _, facts in many for p in facts.phases):
            texts = [_hhi_effect(facts, control, name) for _, facts in many]
            add(f"Effect on HHI against {control}, {name}", texts)
    caption = "The runs side by side: means over seeds with 95% bootstrap intervals."
    return Table("runs", caption, ["", *(f">{name}" for name, _ in many)], rows)


def _if(
    phase: Phase | None, facts: Facts, metric: Callable[[Phase], Metric], unit: Unit
) -> str | None:
    return both(facts.numbers.pooled(metric(phase)), unit) if phase else None


def _leader(facts: Facts, phase: Phase) -> str:
    standing = facts.standing(phase)
    if not standing:
        return UNDEFINED
    share = facts.numbers.pooled(of_phase(MarketShare, phase), standing[0].seat)
    return f"{standing[0].name} {both(share, PERCENT)}%"


def _hhi_effect(facts: Facts, control: str, phase: str) -> str | None:
    for one in facts.controls:
        for stretch in facts.phases:
            if one.name == control and stretch.name == phase:
                value: Value = one.effect.pooled(hhi_of(stretch))
                return both(value, POINTS, signed=True)
    return None
