"""The tables of a run as plain text, for the terminal; needs neither altair nor colours."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

from marketeval.apps.report.facts import Facts, gather
from marketeval.apps.report.tables import (
    Cell,
    Table,
    correlations,
    effect_table,
    failure_table,
    phase_table,
    rank_table,
)
from marketeval.apps.report.words import PRIVILEGED, hhi_story, interval_note, phase_warning

if TYPE_CHECKING:
    from marketeval.experiments.run_directory import RunDirectory

WIDTH = 100


def terminal_tables(run: RunDirectory) -> str:
    """The phase table and the effect against each control, as text that any terminal can show."""
    if run.manifest.family == "supply_chain":
        return _retail_text(run)
    if run.manifest.family == "two_sided":
        return _bazaar_text(run)
    if run.manifest.family == "coupled":
        return _ecosystem_text(run)
    return tables_text(gather(run))


def _retail_text(run: RunDirectory) -> str:
    from marketeval.apps.report import retailers

    told = retailers.gather(run)
    drawn = [draw(table) for table in retailers.tables(told)]
    return "\n\n".join([*drawn, *map(_wrapped, retailers.notes(told))]) + "\n"


def _bazaar_text(run: RunDirectory) -> str:
    from marketeval.apps.report import bazaars

    told = bazaars.gather(run)
    drawn = [draw(table) for table in bazaars.tables(told)]
    return "\n\n".join([*drawn, *map(_wrapped, bazaars.notes(told))]) + "\n"


def _ecosystem_text(run: RunDirectory) -> str:
    from marketeval.apps.report import ecosystems

    told = ecosystems.gather(run)
    drawn = [draw(table) for table in ecosystems.tables(told)]
    return "\n\n".join([*drawn, *map(_wrapped, ecosystems.notes(told))]) + "\n"


def tables_text(facts: Facts) -> str:
    """As `terminal_tables`, of what is already gathered."""
    notes = [interval_note(facts), phase_warning(facts)]
    if any(agent.privileged for agent in facts.agents):
        notes.append(PRIVILEGED)
    if facts.main_phases != facts.phases:
        notes.append(f"First and last of {len(facts.phases)} phases; the report has them all.")
    parts = [draw(phase_table(facts, facts.main_phases)), "", *map(_wrapped, filter(None, notes))]
    last = facts.main_phases[-1]
    ranks = rank_table(facts, [last])
    ranks = replace(ranks, groups=[ranks.groups[0], (last.title, ranks.groups[1][1])])
    parts += ["", draw(ranks), "", _wrapped(f"{correlations(facts, last)}.")]
    if facts.failures:
        parts += ["", draw(failure_table(facts))]
    for control in facts.controls:
        story = map(_wrapped, hhi_story(facts, control))
        parts += ["", draw(effect_table(facts, control)), "", *story]
    return "\n".join(parts) + "\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def draw(table: Table) -> str:
    """A table as lines of text, columns aligned."""
    texts = [
        [f"{cell.text} {cell.tag}".rstrip() for cell in row] for row in [*_head(table), *table.rows]
    ]
    count = len(table.columns)
    widths = [max((len(row[i]) for row in texts), default=0) for i in range(count)]
    lines = [_wrapped(table.caption), ""]
    if table.groups:
        lines.append(_group_line(table, widths))
    for place, row in enumerate(texts):
        cells = [
            one.rjust(width) if table.numeric(i) else one.ljust(width)
            for i, (one, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
        if place == 0:
            lines.append("  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _head(table: Table) -> list[list[Cell]]:
    return [[Cell(table.title(place)) for place in range(len(table.columns))]]


def _group_line(table: Table, widths: list[int]) -> str:
    line, at = "", 0
    for title, span in table.groups:
        room = sum(widths[at : at + span]) + 2 * (span - 1)
        if len(title) > room:  # the last column of the group gives way
            widths[at + span - 1] += len(title) - room
            room = len(title)
        line += title.ljust(room + 2)
        at += span
    return line.rstrip()
