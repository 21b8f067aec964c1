"""The governance graph of coupled markets, as text and as a picture (marketplace paper, Figure 3).

A node is an agent or a population of users; its size is its share of its population's traffic. An
edge is a right to select; its width is the part of the chooser's selections that took it, and it is
pale where it was never taken. Before a run all are alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from marketeval.core.log import LogReader
    from marketeval.markets.coupled.scenario import Coupled

COLOURS = {"user": "#4b5563", "router": "#b45309", "generator": "#1d4ed8", "retriever": "#047857"}
COLUMN, ROW, MARGIN = 190, 74, 60


@dataclass(frozen=True)
class Node:
    """An agent, or a population of users; `share` is None before a run."""

    name: str
    label: str
    role: str
    population: str
    layer: int
    share: float | None = None
    size: int = 1


@dataclass(frozen=True)
class Drawn:
    """A graph; `preference` of an edge is None before a run."""

    nodes: Sequence[Node]
    edges: Mapping[tuple[str, str], float | None] = field(default_factory=dict)


def of_scenario(spec: Coupled) -> Drawn:
    """The graph as the scenario has it."""
    graph = spec.graph
    layers = _layers({name: graph.targets[name] for name in graph.population_of})
    nodes = [
        Node(
            name, getattr(spec.agents.get(name), "label", "") or name, graph.roles[population],
            population, layers[name],
            size=spec.users[name].count if name in spec.users else 1,
        )
        for population in graph.order
        for name in graph.members[population]
    ]  # fmt: skip
    return Drawn(nodes, {(a, b): None for a, those in graph.targets.items() for b in those})


def of_log(log: LogReader) -> Drawn:
    """The graph as it was used, over all seeds of a log."""
    import polars as pl

    agents = log.scan("agent").sort("agent").collect()
    names = agents["seat"].to_list()
    sizes = dict(log.scan("population").select("population", "size").collect().iter_rows())
    roles = dict(log.scan("population").select("population", "role").collect().iter_rows())
    links = [
        (chooser, names[target])
        for chooser, target in log.scan("admissible").select("chooser", "target")
        .collect().iter_rows()
    ]  # fmt: skip
    segments = dict(log.scan("segment").select("segment", "name").collect().iter_rows())
    of_user = log.scan("user").filter(pl.col("seed").is_null()).select("user", "segment")
    counts = (
        log.scan("choice").join(of_user, on="user", how="left")
        .with_columns(pl.when(pl.col("chooser") < 0).then(pl.col("segment")).otherwise(-1)
                      .alias("by"))
        .group_by("chooser", "by", "agent").len().collect()
    )  # fmt: skip
    taken: dict[tuple[str, str], int] = {}
    for chooser, segment, agent, count in counts.iter_rows():
        source = segments[segment] if chooser < 0 else names[chooser]
        taken[source, names[agent]] = taken.get((source, names[agent]), 0) + count
    out: dict[str, int] = {}
    came: dict[str, int] = {}
    for (source, target), count in taken.items():
        out[source] = out.get(source, 0) + count
        came[target] = came.get(target, 0) + count
    targets: dict[str, list[str]] = {}
    for source, target in links:
        targets.setdefault(source, []).append(target)
    layers = _layers({**dict.fromkeys([*segments.values(), *names], ()), **targets})
    all_users = sum(sizes[name] for name in segments.values())
    nodes = [
        Node(name, name, "user", name, layers[name], sizes[name] / all_users, sizes[name])
        for name in segments.values()
    ]
    order = list(roles)
    of_population: dict[str, int] = {}
    population = dict(zip(names, agents["population"].to_list(), strict=True))
    for name in names:
        of_population[population[name]] = of_population.get(population[name], 0) + came.get(name, 0)
    for name, label in sorted(
        zip(names, agents["label"].to_list(), strict=True),
        key=lambda one: (order.index(population[one[0]]), one[0]),
    ):
        total = of_population[population[name]]
        share = came.get(name, 0) / total if total else 0.0
        nodes.append(
            Node(name, label, roles[population[name]], population[name], layers[name], share)
        )
    edges = {(a, b): (taken.get((a, b), 0) / out[a] if out.get(a) else 0.0) for a, b in links}
    return Drawn(nodes, edges)


def as_text(drawn: Drawn) -> str:
    """One line per node and edge, in topological order."""
    lines = []
    for node in sorted(drawn.nodes, key=lambda one: one.layer):
        told = f"{node.size} users" if node.role == "user" else f"{node.role} of {node.population}"
        share = "" if node.share is None else f", share {100 * node.share:.1f} %"
        lines.append(f"{node.name} ({told}{share})")
        for (source, target), weight in drawn.edges.items():
            if source == node.name:
                part = "" if weight is None else f"  {100 * weight:5.1f} %"
                lines.append(f"  -> {target}{part}")
    return "\n".join(lines)


def as_svg(drawn: Drawn) -> str:
    """The picture, from users on the left to retrievers on the right."""
    columns: dict[int, list[Node]] = {}
    for node in drawn.nodes:
        columns.setdefault(node.layer, []).append(node)
    tallest = max(len(column) for column in columns.values())
    width = 2 * MARGIN + COLUMN * max(columns) + 60
    height = 2 * MARGIN + ROW * (tallest - 1) + 20
    place = {
        node.name: (
            MARGIN + COLUMN * layer,
            MARGIN + ROW * (tallest - len(column)) / 2 + ROW * number,
        )
        for layer, column in columns.items()
        for number, node in enumerate(column)
    }
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" font-family="sans-serif" font-size="12">'
    ]
    for (source, target), weight in drawn.edges.items():
        (x, y), (u, v) = place[source], place[target]
        bend = (u - x) / 2
        thick = 2.0 if weight is None else 1.0 + 8.0 * weight
        pale = 0.15 if weight == 0 else 0.55
        told = "" if weight is None else f": {100 * weight:.1f} %"
        parts.append(
            f'<path d="M{x:g} {y:g} C{x + bend:g} {y:g} {u - bend:g} {v:g} {u:g} {v:g}" '
            f'fill="none" stroke="#6b7280" stroke-width="{thick:.2f}" stroke-opacity="{pale}">'
            f"<title>{escape(source)} to {escape(target)}{told}</title></path>"
        )
    for node in drawn.nodes:
        x, y = place[node.name]
        radius = 12.0 if node.share is None else 5.0 + 20.0 * sqrt(node.share)
        told = "" if node.share is None else f" {100 * node.share:.0f} %"
        parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{radius:.2f}" fill="{COLOURS[node.role]}">'
            f"<title>{escape(node.name)}, {node.role}{told}</title></circle>"
            f'<text x="{x:g}" y="{y + radius + 13:.2f}" text-anchor="middle" fill="#111827">'
            f"{escape(node.label)}{told}</text>"
        )
    return "".join([*parts, "</svg>"])


def _layers(targets: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The longest way to each node from where nothing leads to it."""
    layers = dict.fromkeys(targets, 0)
    for _ in targets:
        for source, those in targets.items():
            for target in those:
                layers[target] = max(layers[target], layers[source] + 1)
    return layers
