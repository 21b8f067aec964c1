"""The report: one HTML file that opens without a network, and its pictures as PNG files."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from marketeval import __version__
from marketeval.apps.report import tables
from marketeval.apps.report.facts import Control, Facts, gather
from marketeval.apps.report.tables import Table
from marketeval.apps.report.words import (
    PRIVILEGED,
    count,
    hhi_story,
    interval_note,
    phase_warning,
    seed_text,
)
from marketeval.core.errors import UsageError
from marketeval.experiments.run_directory import whole

if TYPE_CHECKING:
    from marketeval.apps.report import bazaars
    from marketeval.apps.report.charts import Picture
    from marketeval.experiments.run_directory import Manifest, RunDirectory

LONG = 24  # letters of a cell that may be cut off on the screen


def write_report(runs: Sequence[RunDirectory], target: Path | None = None) -> Path:
    """Write the report of one or several runs and return its path.

    `target` is RUN/report.html of the first run unless it is given; the pictures go to the folder
    `pictures` beside it. Each file appears whole or not at all.

    Raises UsageError if no run is given, or altair and vl-convert are not installed.
    """
    try:
        from marketeval.apps.report.charts import pictures
        from marketeval.apps.report.drawing import draw, png
    except ImportError as error:
        if error.name not in ("altair", "vl_convert"):
            raise
        raise UsageError(
            "a report needs altair and vl-convert-python; install them with "
            "pip install 'marketeval[report]'"
        ) from error

    if not runs:
        raise UsageError("expected at least one run directory to report on")
    target = target or runs[0].path / "report.html"
    sections, told, traded = [], [], []
    for place, run in enumerate(runs):
        if run.manifest.family == "supply_chain":
            sections.append(_retail_section(run, target, place, len(runs)))
            continue
        if run.manifest.family == "two_sided":
            traded.append(_bazaar(run))
            sections.append(_bazaar_section(run, traded[-1], target, place, len(runs)))
            continue
        if run.manifest.family == "coupled":
            sections.append(_ecosystem_section(run, target, f"{place + 1}-" * (len(runs) > 1)))
            continue
        facts = gather(run)
        drawn = []
        for picture in pictures(facts):
            svg = draw(picture)
            name = f"{picture.name}.png" if len(runs) == 1 else f"{place + 1}-{picture.name}.png"
            _replace(target.parent / "pictures" / _safe(name), png(svg))
            drawn.append((picture, svg))
        sections.append(_section(facts, drawn, f"run{place + 1}"))
        told.append((run_name(run, runs), facts))
    opening = [] if len(told) < 2 else [_comparison(told)]
    opening += [] if len(traded) < 2 else [_bazaar_comparison(traded, target)]
    first = runs[0].manifest
    title = first.title or first.name if len(runs) == 1 else "Runs side by side"
    _replace(target, _document(title, [*opening, *sections]).encode("utf-8"))
    return target


def _opening(manifest: Manifest) -> list[str]:
    """A run's title, description and, if it did not finish, why."""
    parts = [f"<h1>{escape(manifest.title or manifest.name)}</h1>"]
    if manifest.description:
        parts.append(f'<p class="lead">{escape(manifest.description)}</p>')
    if manifest.status != "finished":
        parts.append(_note(f"This run is {manifest.status}: {manifest.reason}", "warning"))
    return parts


def _terms(entries: Sequence[tuple[str, str]]) -> str:
    """What a run is, as names and values in HTML."""
    return f"<dl>{''.join(f'<dt>{a}</dt><dd>{b}</dd>' for a, b in entries)}</dl>"


def _retail_section(run: RunDirectory, target: Path, place: int, runs: int) -> str:
    """The section of a supply-chain run; its pictures are written beside the page."""
    from marketeval.apps.report import retail_charts, retailers

    told = retailers.gather(run)
    manifest = run.manifest
    parts = _opening(manifest)
    entries = [
        ("Scenario", f"<code>{escape(manifest.name)}</code>"),
        ("Seeds", escape(seed_text(run.seeds()))),
        ("Steps", f"{told.horizon:,}"),
        ("Retailers", f"{len(told.shops):,}"),
        ("Embedder", escape(told.embedder)),
        ("Controls", escape(", ".join(told.effects) or "none")),
        ("Version", f"marketeval {escape(manifest.version)}"),
        ("Log digest", f"<code>{escape(manifest.log_digest or 'not finished')}</code>"),
        ("Again", f"<code>marketeval run scenario.yaml --seeds {escape(manifest.seeds)}</code>"),
    ]
    parts.append(_terms(entries))
    for table in retailers.tables(told):
        parts += [
            _heading(_RETAIL_TITLES.get(table.name, "Against the control")),
            table_html(table),
        ]
    parts += [_note(text) for text in retailers.notes(told)]
    parts.append(_heading("Pictures"))
    beginning = "" if runs == 1 else f"{place + 1}-"
    for number, picture in enumerate(retail_charts.pictures(told)):
        parts.append(_drawn(picture, target, beginning, f"run{place + 1}-{number}"))
    return f'<section class="run">{"".join(parts)}</section>'


def _bazaar(run: RunDirectory) -> bazaars.Told:
    from marketeval.apps.report import bazaars

    return bazaars.gather(run)


def _bazaar_comparison(told: Sequence[bazaars.Told], target: Path) -> str:
    """The arms of several two-sided runs: a table, and pictures."""
    from marketeval.apps.report import bazaar_arms, bazaar_charts

    found = bazaar_arms.arms(told)
    parts = ["<h1>Arms side by side</h1>", table_html(bazaar_arms.arm_table(found))]
    for number, picture in enumerate(bazaar_charts.arm_pictures(found)):
        parts.append(_drawn(picture, target, "all-", f"all-{number}"))
    return f'<section class="run">{"".join(parts)}</section>'


def _drawn(picture: Picture, target: Path, beginning: str, prefix: str) -> str:
    """A picture in the page, and as a file beside it."""
    from marketeval.apps.report.drawing import draw, png

    svg = draw(picture)
    name = _safe(f"{beginning}{picture.name}.png")
    _replace(target.parent / "pictures" / name, png(svg))
    return _figure(picture, svg, prefix)


def _bazaar_section(
    run: RunDirectory, told: bazaars.Told, target: Path, place: int, runs: int
) -> str:
    """The section of a two-sided run: tables, pictures, and the stories of some customers."""
    from marketeval.apps.report import bazaar_arms, bazaar_charts, bazaars

    manifest = run.manifest
    parts = _opening(manifest)
    entries = [
        ("Scenario", f"<code>{escape(manifest.name)}</code>"),
        ("Seeds", escape(seed_text(run.seeds()))),
        ("Customers", f"{told.customers:,}"),
        ("Businesses", f"{told.businesses:,}"),
        ("Search", escape(told.search)),
        ("Rules", escape(told.rules)),
        ("Controls", escape(", ".join(told.controls) or "none")),
        ("Version", f"marketeval {escape(manifest.version)}"),
        ("Log digest", f"<code>{escape(manifest.log_digest or 'not finished')}</code>"),
    ]
    parts.append(_terms(entries))
    for table in bazaars.tables(told):
        parts += [_heading(_BAZAAR_TITLES[table.name]), table_html(table)]
    found = bazaar_arms.arms([told])
    if len(found) > 1:
        parts += [_heading("Arms"), table_html(bazaar_arms.arm_table(found))]
    parts += [_note(text) for text in bazaars.notes(told)]
    parts.append(_heading("Pictures"))
    beginning = "" if runs == 1 else f"{place + 1}-"
    for number, picture in enumerate(bazaar_charts.pictures(told, found)):
        parts.append(_drawn(picture, target, beginning, f"run{place + 1}-{number}"))
    parts.append(_heading("Conversations"))
    parts += [
        f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"
        for title, text in told.stories
    ]
    parts.append(
        _note("Any customer's story: marketeval conversation RUN --customer ID [--business ID].")
    )
    return f'<section class="run">{"".join(parts)}</section>'


def _ecosystem_section(run: RunDirectory, target: Path, prefix: str) -> str:
    """The section of a run of coupled markets: its graph as it was used, and tables."""
    from marketeval.apps.report import ecosystems
    from marketeval.apps.report.drawing import png
    from marketeval.apps.report.graph import as_svg

    told = ecosystems.gather(run)
    manifest = run.manifest
    parts = _opening(manifest)
    entries = [
        ("Scenario", f"<code>{escape(manifest.name)}</code>"),
        ("Seeds", escape(seed_text(run.seeds()))),
        ("Agents", f"{len(told.agents):,}"),
        ("Controls", escape(", ".join(told.effects) or "none")),
        ("Version", f"marketeval {escape(manifest.version)}"),
        ("Log digest", f"<code>{escape(manifest.log_digest or 'not finished')}</code>"),
        ("Again", f"<code>marketeval run scenario.yaml --seeds {escape(manifest.seeds)}</code>"),
    ]
    parts.append(_terms(entries))
    svg = as_svg(told.graph)
    _replace(target.parent / "pictures" / f"{prefix}graph.png", png(svg))
    parts += [
        _heading("Governance graph"),
        f'<figure class="graph">{svg}</figure>',
        _note(
            "Node size: share of its population's traffic. Width: part of the chooser's choices."
        ),
    ]
    for table in ecosystems.tables(told):
        title = _ECOSYSTEM_TITLES.get(table.name) or f"Population {table.name.partition('-')[2]}"
        parts += [_heading(title), table_html(table)]
    parts += [_note(text) for text in ecosystems.notes(told)]
    return f'<section class="run">{"".join(parts)}</section>'


_ECOSYSTEM_TITLES = {
    "markets": "The markets",
    "lost": "Who lost utility",
    "controls": "Against the controls",
}
_BAZAAR_TITLES = {
    "outcome": "Outcomes",
    "controls": "Against the controls",
    "payments": "Payments received",
    "unmet": "Why needs were not met",
    "bias": "Places and arrivals",
}
_RETAIL_TITLES = {
    "leaderboard": "Leaderboard",
    "conduct": "Conduct",
    "indices": "The market's indices",
    "correlations": "What goes with profit",
}


def run_name(run: RunDirectory, runs: Sequence[RunDirectory]) -> str:
    """The scenario's name, with the folder's where two runs share it."""
    name = run.manifest.name
    shared = sum(one.manifest.name == name for one in runs) > 1
    return f"{name} ({run.path.resolve().name})" if shared else name


def table_html(table: Table) -> str:
    """A table that scrolls by itself where it is longer or wider than the screen."""
    edges, at = set(), 0
    for _, span in table.groups:
        edges.add(at)
        at += span
    edges.discard(0)

    def cell(tag: str, place: int, content: str, more: str = "") -> str:
        names = [
            *(["number"] if table.numeric(place) else []),
            *(["edge"] if place in edges else []),
        ]
        classes = f' class="{" ".join(names)}"' if names else ""
        return f"<{tag}{classes}{more}>{content}</{tag}>"

    lines = ["<thead>"]
    if table.groups:
        row, at = [], 0
        for title, span in table.groups:
            if title:
                edge = "group edge" if at in edges else "group"
                row.append(
                    f'<th class="{edge}" scope="colgroup" colspan="{span}">{escape(title)}</th>'
                )
            else:
                row.append(f'<td colspan="{span}"></td>')
            at += span
        lines.append(f"<tr>{''.join(row)}</tr>")
    titles = (
        cell("th", i, escape(table.title(i)), ' scope="col"') for i in range(len(table.columns))
    )
    lines.append(f"<tr>{''.join(titles)}</tr></thead><tbody>")
    for cells in table.rows:
        row = []
        for place, one in enumerate(cells):
            text = escape(one.text)
            if table.numeric(place):
                text = _minus(text)
            tag = f' <span class="tag">{escape(one.tag)}</span>' if one.tag else ""
            whole = f' title="{escape(one.text)}"' if len(one.text) > LONG else ""
            row.append(cell("td", place, text + tag, whole))
        lines.append(f"<tr>{''.join(row)}</tr>")
    label = escape(table.caption)
    kind = ' class="prose"' if table.name == "undefined" else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table{kind}>'
        f"<caption><span>{label}</span></caption>{''.join(lines)}</tbody></table></div>"
    )


def _section(facts: Facts, drawn: Sequence[tuple[Picture, str]], prefix: str) -> str:
    figures = {
        picture.name: _figure(picture, svg, f"{prefix}-{place}")
        for place, (picture, svg) in enumerate(drawn)
    }
    parts = [_header(facts)]
    parts.append(_heading("Market share before and after" if facts.changes else "Market share"))
    parts.append(_note(interval_note(facts)))
    parts.append(table_html(tables.phase_table(facts)))
    if warning := phase_warning(facts):
        parts.append(_note(warning, "warning"))
    parts.append(figures.get("market-share", _absent("market share over time")))
    parts.append(_heading("Concentration"))
    parts.append(figures.get("hhi", _absent("concentration over time")))
    parts += _effects(facts, figures)
    parts.append(_heading("Static ranking against the market's"))
    parts.append(figures.get("static-rank-market-rank", _absent("the static ranking")))
    if facts.main_phases != facts.phases:
        parts.append(table_html(tables.order_table(facts)))
    parts.append(table_html(tables.rank_table(facts)))
    parts.append(_heading("Retention"))
    parts.append(figures.get("retention", _absent("retention")))
    parts.append(table_html(tables.retention_table(facts)))
    if facts.failures:
        parts.append(_heading("Failures"))
        parts.append(table_html(tables.failure_table(facts)))
    parts += _notes(facts)
    return f'<section class="run">{"".join(parts)}</section>'


def _header(facts: Facts) -> str:
    manifest = facts.run.manifest
    lines = [f"<h1>{escape(manifest.title or manifest.name)}</h1>"]
    if manifest.description:
        lines.append(f'<p class="lead">{escape(manifest.description)}</p>')
    if manifest.status != "finished":
        why = f": {manifest.reason}" if manifest.reason else ""
        text = f"This run is {manifest.status}{why}. What follows is of the finished seeds alone."
        lines.append(_note(text, "warning"))
    entries = [
        ("Scenario", f"<code>{escape(manifest.name)}</code>"),
        ("Seeds", escape(seed_text(facts.seeds))),
        ("Users", f"{facts.users:,}, {facts.users_per_step:,} of them per step"),
        ("Steps", f"{facts.horizon:,}"),
        ("Systems", f"{len(facts.agents):,}"),
        ("Controls", escape(", ".join(one.name for one in facts.controls) or "none")),
        ("Engine", escape(manifest.engine)),
        ("Version", f"marketeval {escape(manifest.version)}"),
        ("Log digest", f"<code>{escape(manifest.log_digest or 'not finished')}</code>"),
        ("Again", f"<code>marketeval run scenario.yaml --seeds {escape(manifest.seeds)}</code>"),
    ]
    if facts.changes:
        entries.insert(5, ("Scheduled", escape("; ".join(facts.schedule()))))
    lines.append(_terms(entries))
    return "".join(lines)


def _effects(facts: Facts, figures: dict[str, str]) -> list[str]:
    parts = [_heading("Effect against control")]
    if not facts.controls:
        parts.append(
            _note(
                "No control was played, so this run shows no effect of anything: what differs "
                "between phases differs for every reason at once. Name a control in the scenario "
                "(the same market without the entry, say) to get paired differences.",
                "warning",
            )
        )
    for control in facts.controls:
        if control.effect.summary.is_empty():
            parts.append(_note(f"The control '{control.name}' has nothing to pair with this run."))
            continue
        parts += [_note(line, "story") for line in hhi_story(facts, control)]
        parts.append(figures.get(_effect_name(control), ""))
        parts.append(table_html(tables.effect_table(facts, control)))
    return parts


def _effect_name(control: Control) -> str:
    return f"effect-{control.name}"


def _notes(facts: Facts) -> list[str]:
    parts = [_heading("Notes")]
    if any(agent.privileged for agent in facts.agents):
        parts.append(_note(PRIVILEGED))
    else:
        parts.append(_note("No system is privileged: none is told what its seat should not know."))
    undefined = tables.undefined_table(facts)
    if undefined.rows:
        many = sum(number for _, _, number in facts.undefined())
        parts.append(_note(f"{count(many, 'value')} undefined, over all seeds and windows:"))
        parts.append(table_html(undefined))
    else:
        parts.append(_note("Every value in this report is defined in every seed."))
    return parts


def _comparison(told: Sequence[tuple[str, Facts]]) -> str:
    return (
        "<h1>Runs side by side</h1>"
        + _note(
            "Runs of different scenarios differ in more than one thing; for effects, see each "
            "run's comparison with its control."
        )
        + table_html(tables.summary_table(told))
    )


def _figure(picture: Picture, svg: str, prefix: str) -> str:
    from marketeval.apps.report.drawing import inline

    agents = escape(json.dumps(picture.agents))
    image = inline(svg, prefix=prefix, label=escape(picture.alt_text))
    return (
        f'<figure data-agents="{agents}"><h3>{escape(picture.title)}</h3>'
        f'<div class="canvas">{image}</div>'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def _document(title: str, parts: Sequence[str]) -> str:
    folder = resources.files("marketeval.apps.report")
    style = (folder / "page.css").read_text("utf-8")
    script = (folder / "page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style></head>\n<body>\n<main>"
        + "\n".join(parts)
        + f"</main>\n<footer>Made by marketeval {escape(__version__)}. Point at a picture for its "
        "values; choose a name in a legend to highlight it. The pictures are beside this file, "
        f"in the folder <code>pictures</code>.</footer>\n<script>{script}</script></body></html>\n"
    )


def _heading(text: str) -> str:
    return f"<h2>{escape(text)}</h2>"


def _note(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def _absent(what: str) -> str:
    return _note(f"There is no picture of {what}: this log has no values for it.")


def _minus(text: str) -> str:
    """A true minus before digits; hyphens elsewhere stay."""
    return "".join(
        "\N{MINUS SIGN}" if c == "-" and text[i + 1 : i + 2].isdigit() and before in "([ " else c
        for i, (c, before) in enumerate(zip(text, " " + text, strict=False))
    )


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)


def _replace(path: Path, content: bytes) -> None:
    """Write a file under its name only once it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as half:
        half.write_bytes(content)
