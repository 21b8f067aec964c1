"""Configuration files of the published package `marketplace-eval` 0.1.0, read as plain facts.

Nothing is interpreted here: `load_config` says what the file asks for, with the package's own
defaults, and names the parts that need a retriever or a language model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from marketeval.core.errors import DataError

SIMULATION_KEYS = ("horizon", "total_num_users", "users_per_step", "seed")
USERS_KEYS = ("user_data_source", "user_data_type", "taxonomy_base", "profiles")
NODE_TYPES = ("input", "output", "generator", "router", "retriever")


@dataclass(frozen=True, slots=True)
class ReferenceGenerator:
    """A generator node: its id is its identity, the label is for pictures only."""

    id: str
    label: str
    introduce_from: int = 0


@dataclass(frozen=True, slots=True)
class ReferenceProfile:
    """A user written out by hand, with weights in the order of the file, not normalised."""

    id: str
    preferences: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class ReferenceConfig:
    """What one configuration file asks for.

    `generators` are in the file's order, which decides ties. `profiles` is empty when users are
    made automatically; if not, there are as many users as profiles. `questions` is the path as
    written, relative to the working directory, or "" when questions would be generated.
    `needs_retrieval` and `needs_model` name, in words, what cannot be had from recorded outcomes;
    `warnings` what the file says without effect.
    """

    horizon: int
    total_num_users: int
    users_per_step: int
    seed: int | None
    generators: tuple[ReferenceGenerator, ...]
    profiles: tuple[ReferenceProfile, ...]
    questions: str
    needs_retrieval: tuple[str, ...]
    needs_model: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def users(self) -> int:
        """How many users there are: the profiles, if any are given."""
        return len(self.profiles) or self.total_num_users


def load_config(path: str | Path) -> ReferenceConfig:
    """Read a YAML or JSON configuration file of the package, with the package's defaults.

    Unknown keys under `simulation` and `users` are tolerated, as there, and listed in `warnings`.
    Raises DataError, in one line, for a file that is not such a configuration.
    """
    path = Path(path)
    reader = _Reader(path)
    config = reader.mapping(_parse(path), "the file")
    if "graph" not in config:
        keys = ", ".join(map(str, list(config)[:10]))
        raise DataError(
            f"{path} is not a configuration of marketplace-eval: expected 'simulation' and "
            f"'graph', got {keys or 'nothing'}"
        )
    simulation = reader.mapping(config.get("simulation"), "simulation")
    users = reader.mapping(config.get("users"), "users")
    warnings = [
        f"{section}.{key} has no effect in marketplace-eval and is ignored"
        for section, given, known in (
            ("simulation", simulation, SIMULATION_KEYS),
            ("users", users, USERS_KEYS),
        )
        for key in given
        if key not in known
    ]
    nodes = reader.nodes(reader.mapping(config["graph"], "graph").get("nodes"))
    generators = tuple(
        reader.generator(node) for node in nodes if node["type"].lower() == "generator"
    )
    if not generators:
        raise DataError(f"{path}: expected at least one node of type generator, got none")
    if all(one.introduce_from > 0 for one in generators):
        raise DataError(f"{path}: every generator enters late; nobody can be chosen at step 0")
    profiles = reader.profiles(users.get("profiles"), generators, warnings)
    judges = [
        reader.mapping(one, "judges[]") for one in reader.sequence(config.get("judges"), "judges")
    ]
    if len(judges) > 1:
        warnings.append(f"of {len(judges)} judges marketplace-eval uses the last only")
    return ReferenceConfig(
        horizon=reader.count(simulation, "simulation", "horizon", 100),
        total_num_users=reader.count(simulation, "simulation", "total_num_users", 10),
        users_per_step=reader.count(simulation, "simulation", "users_per_step", 1),
        seed=reader.seed(simulation.get("seed")),
        generators=generators,
        profiles=profiles,
        questions=str(users.get("user_data_source") or ""),
        needs_retrieval=_needs_retrieval(nodes),
        needs_model=tuple(_judge(one) for one in judges),
        warnings=tuple(warnings),
    )


def _parse(path: Path) -> Any:  # any: whatever the file holds
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise DataError(f"cannot read {path}: no such file") from error
    except (OSError, UnicodeError) as error:
        raise DataError(f"cannot read {path} as text: {error}") from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())[:160]
        raise DataError(f"{path} is neither YAML nor JSON: {reason}") from error


def _params(node: Mapping[str, Any]) -> Mapping[str, Any]:  # any: the file's own values
    params = node.get("params")
    return params if isinstance(params, dict) else {}


def _needs_retrieval(nodes: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:  # any: as above
    found = [
        f"{node['type'].lower()} {node['id']}"
        for node in nodes
        if node["type"].lower() in ("router", "retriever")
    ]
    for node in nodes:
        if node["type"].lower() == "generator" and "retrieval_strategy" in _params(node):
            strategy = _params(node)["retrieval_strategy"]
            kind = strategy.get("type", "naive") if isinstance(strategy, dict) else "naive"
            found.append(f"retrieval_strategy {kind} of {node['id']}")
    return tuple(found)


def _judge(judge: Mapping[str, Any]) -> str:  # any: as above
    params = _params(judge)
    name, model = judge.get("id", "judge"), params.get("model_id")
    return f"judge {name}" + (f" ({model})" if model else "")


class _Reader:
    """Checks values of one file and says where they stand when they are not as expected."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def refuse(self, place: str, expected: str, got: object) -> DataError:
        return DataError(f"{self.path}: expected {expected} in {place}, got {got!r:.80}")

    def mapping(self, value: Any, place: str) -> dict[Any, Any]:  # any: the file's own values
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.refuse(place, "keys and values", value)
        return value

    def sequence(self, value: Any, place: str) -> list[Any]:  # any: as above
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.refuse(place, "a list", value)
        return value

    def count(self, section: Mapping[str, Any], name: str, key: str, default: int) -> int:
        value = section.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.refuse(f"{name}.{key}", "a whole number from 1", value)
        return value

    def seed(self, value: object) -> int | None:
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise self.refuse("simulation.seed", "a whole number or null", value)
        return value

    def nodes(self, value: Any) -> list[dict[Any, Any]]:  # any: as above
        nodes = [self.mapping(one, "graph.nodes[]") for one in self.sequence(value, "graph.nodes")]
        seen: set[str] = set()
        for place, node in enumerate(nodes):
            where = f"graph.nodes[{place}]"
            if not isinstance(node.get("id"), str):
                raise self.refuse(f"{where}.id", "a text", node.get("id"))
            kind = node.get("type")
            if not isinstance(kind, str) or kind.lower() not in NODE_TYPES:
                raise self.refuse(f"{where}.type", f"one of {', '.join(NODE_TYPES)}", kind)
            if node["id"] in seen:
                raise self.refuse(f"{where}.id", "an id of its own", node["id"])
            seen.add(node["id"])
        return nodes

    def generator(self, node: Mapping[str, Any]) -> ReferenceGenerator:  # any: as above
        step = node.get("introduce_from", 0)
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise self.refuse(f"{node['id']}.introduce_from", "a step from 0", step)
        return ReferenceGenerator(node["id"], str(_params(node).get("name") or node["id"]), step)

    def profiles(
        self,
        value: Any,
        generators: Sequence[ReferenceGenerator],
        warnings: list[str],  # any: as above
    ) -> tuple[ReferenceProfile, ...]:
        found: list[ReferenceProfile] = []
        early = {one.id for one in generators if one.introduce_from == 0}
        known = {one.id for one in generators}
        for place, one in enumerate(self.sequence(value, "users.profiles")):
            where = f"users.profiles[{place}]"
            profile = self.mapping(one, where)
            if not isinstance(profile.get("id"), str):
                raise self.refuse(f"{where}.id", "a text", profile.get("id"))
            given = self.mapping(profile.get("generator_preferences"), where)
            for name, weight in given.items():
                if isinstance(weight, bool) or not isinstance(weight, (int, float)):
                    raise self.refuse(f"{where}.generator_preferences", "numbers", weight)
                if name not in known:
                    warnings.append(f"{where} has a weight for '{name}', which is no generator")
            if not sum(weight for name, weight in given.items() if name in early) > 0:
                raise self.refuse(where, "weights with a positive sum at step 0", given)
            weights = tuple((str(name), float(weight)) for name, weight in given.items())
            found.append(ReferenceProfile(profile["id"], weights))
        return tuple(found)
