"""The governance graph: which stakeholder may select which (marketplace paper, Eq. 1-3).

Nodes are stakeholder populations with a role, an edge is the right to select, call or route to. The
graph is a DAG; an interaction is sampled along it in topological order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from marketeval.core.errors import ScenarioError, UnknownNameError

Role = Literal["user", "router", "generator", "retriever"]
ROLES: tuple[Role, ...] = ("user", "router", "generator", "retriever")
SELECTS: Mapping[str, tuple[str, ...]] = {
    "user": ("router", "generator", "retriever"),
    "router": ("generator", "retriever"),
    "generator": ("router", "retriever"),
    "retriever": (),
}


@dataclass(frozen=True)
class Governance:
    """A checked graph. `members` are a population's agents; an edge may name either.

    Parameters
    ----------
    roles : role of each population
    members : agents of each population (of users, the population itself)
    edges : (source, target) as the scenario names them
    order : the populations in topological order
    """

    roles: Mapping[str, Role]
    members: Mapping[str, tuple[str, ...]]
    edges: tuple[tuple[str, str], ...]
    order: tuple[str, ...]

    @cached_property
    def population_of(self) -> Mapping[str, str]:
        """The population of each agent."""
        return {one: name for name, members in self.members.items() for one in members}

    def agents(self, name: str) -> tuple[str, ...]:
        """The agents that an end of an edge stands for."""
        return self.members.get(name, (name,))

    @cached_property
    def targets(self) -> Mapping[str, tuple[str, ...]]:
        """Whom each agent may select, in the order of the edges; of users, the population."""
        found: dict[str, dict[str, None]] = {one: {} for one in self.population_of}
        for source, target in self.edges:
            for one in self.agents(source):
                found[one].update(dict.fromkeys(self.agents(target)))
        return {one: tuple(targets) for one, targets in found.items()}

    @cached_property
    def adjacency(self) -> NDArray[np.int8]:
        """W of Eq. 2 over populations, in topological order; W[x, y] = 1 if x may select y."""
        place = {name: number for number, name in enumerate(self.order)}
        matrix = np.zeros((len(place), len(place)), np.int8)
        for source, target in self.edges:
            x, y = (self._population(one) for one in (source, target))
            matrix[place[x], place[y]] = 1
        return matrix

    def _population(self, name: str) -> str:
        return name if name in self.members else self.population_of[name]


def parse_edge(text: object) -> tuple[str, str]:
    """`users -> generators`, or a pair of names."""
    if isinstance(text, str):
        parts = [one.strip() for one in text.split("->")]
    elif isinstance(text, (list, tuple)) and all(isinstance(one, str) for one in text):
        parts = [str(one) for one in text]
    else:
        parts = []
    if len(parts) != 2 or not all(parts):
        raise ScenarioError(f"expected an edge such as 'users -> generators', got {text!r:.60}")
    return parts[0], parts[1]


def governance(
    roles: Mapping[str, Role],
    members: Mapping[str, Sequence[str]],
    edges: Sequence[tuple[str, str]],
) -> Governance:
    """The graph, checked: known ends, roles that may trade, no cycle, nothing left dangling.

    Raises ScenarioError or UnknownNameError with what was expected and what came.
    """
    owner: dict[str, str] = {}
    for population, agents in members.items():
        for one in agents:
            if one in owner:
                raise ScenarioError(
                    f"agent '{one}' stands in the populations '{owner[one]}' and '{population}'; "
                    "expected names of their own"
                )
            owner[one] = population
    for name in owner:
        if name in members and owner[name] != name:
            raise ScenarioError(f"'{name}' names both a population and an agent of another")
    for edge in edges:
        for end in edge:
            if end not in members and end not in owner:
                hint = f" (in the edge '{edge[0]} -> {edge[1]}')"
                raise UnknownNameError("agent or population", end, {**owner, **roles}, hint=hint)
    if len(set(edges)) < len(edges):
        twice = next(one for one in edges if edges.count(one) > 1)
        raise ScenarioError(f"the edge '{twice[0]} -> {twice[1]}' stands twice")
    between = [(a if a in members else owner[a], b if b in members else owner[b]) for a, b in edges]
    order = _topological(tuple(roles), between)
    for (source, target), (x, y) in zip(edges, between, strict=True):
        allowed = SELECTS[roles[x]]
        if roles[y] not in allowed:
            may = f"may select a {' or '.join(allowed)}" if allowed else "selects nobody"
            raise ScenarioError(
                f"edge '{source} -> {target}': a {roles[x]} {may}, not a {roles[y]}"
            )
    graph = Governance(
        dict(roles), {name: tuple(agents) for name, agents in members.items()},
        tuple(edges), order,
    )  # fmt: skip
    _check_no_dangling(graph)
    return graph


def _topological(populations: Sequence[str], edges: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Kahn's order, earliest in the scenario first; a cycle is named."""
    left, order = list(populations), []
    while left:
        free = [one for one in left if not any(b == one and a in left for a, b in edges)]
        if not free:
            raise ScenarioError(
                f"the governance graph has a cycle: {' -> '.join(_cycle(left, edges))}; an "
                "interaction could go round for ever, so take one of these edges out"
            )
        order.append(free[0])
        left.remove(free[0])
    return tuple(order)


def _cycle(left: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[str]:
    """One cycle among populations that all have a predecessor, walked backwards."""
    path = [left[0]]
    while True:
        before = next(a for a, b in edges if b == path[-1] and a in left)
        if before in path:
            return [before, *reversed(path[path.index(before) :])]
        path.append(before)


def _check_no_dangling(graph: Governance) -> None:
    reached = {target for targets in graph.targets.values() for target in targets}
    for agent, population in graph.population_of.items():
        role = graph.roles[population]
        if role == "user" and not graph.targets[agent]:
            raise ScenarioError(
                f"population '{agent}': no edge leads from it, so its users can choose nobody"
            )
        if role == "router" and not graph.targets[agent]:
            raise ScenarioError(f"router '{agent}': no edge leads from it, so it can route nowhere")
        if role != "user" and agent not in reached:
            raise ScenarioError(
                f"{role} '{agent}': no edge leads to it, so nobody can ever select it"
            )
        if role == "generator":
            for router in graph.targets[agent]:
                for target in graph.targets[router]:
                    if graph.roles[graph.population_of[target]] != "retriever":
                        raise ScenarioError(
                            f"generator '{agent}' -> router '{router}' -> '{target}': a generator "
                            "may be routed to retrievers only"
                        )
    if not any(role == "user" for role in graph.roles.values()):
        raise ScenarioError("the governance graph has no population of role user")
