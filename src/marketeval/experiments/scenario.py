"""A scenario: who competes in which market, with which controls, and what is measured.

A YAML file becomes a tree, overrides change the tree, and only then is it checked, so that a
file, `--set` and a control are read by the same rules.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from marketeval.core.errors import (
    DataError,
    MarketevalError,
    ScenarioError,
    UnknownNameError,
    UsageError,
    near_miss,
)
from marketeval.markets.information.scenario import Information, Step
from marketeval.metrics.base import parse_metric

Tree = dict[str, Any]  # any: what YAML can hold
Spec = TypeVar("Spec", bound=BaseModel)


class Seat(BaseModel):
    """Who fills a seat: the agent's short text, the label shown, when it enters, its options."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: str = "recorded"
    label: str = ""
    enters: Step = 0
    options: dict[str, Any] = {}  # any: each maker of agents knows its own


class Entries(BaseModel):
    """Entry steps from a table with the columns `model` and `date` (or `step`).

    The earliest date is step 0; each later one comes `every` steps after the one before; equal
    dates enter together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    every: int = Field(default=20, ge=1)


class Phase(BaseModel):
    """A stretch of steps [start, stop) that tables compare."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    start: Step
    stop: int = Field(ge=1)

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.start >= self.stop:
            raise ScenarioError(f"phase '{self.name}': start {self.start} is not below stop {self.stop}")
        return self


class Scenario(BaseModel):
    """One market, its seats, its controls and its metrics, with every default filled in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str = ""
    description: str = ""
    family: Literal["information"] = "information"
    seats: dict[str, Seat] = {}
    market: Information = Information()
    outcomes: tuple[str, ...] = ()
    missing: Literal["fail", "skip", "zero"] = "fail"
    items: str = ""
    entries: Entries | None = None
    phases: tuple[Phase, ...] = ()
    controls: dict[str, dict[str, Any]] = {}  # any: overrides, by key
    metrics: tuple[str, ...] = ()
    seeds: str = "1-10"

    @field_validator("seats", mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:  # any: whatever the YAML held
        if not isinstance(data, Mapping):
            return data
        return {
            name: {"agent": seat} if isinstance(seat, str) else seat for name, seat in data.items()
        }

    @field_validator("metrics")
    @classmethod
    def _known_metrics(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(parse_metric(text)) for text in texts)

    @field_validator("seeds", mode="before")
    @classmethod
    def _readable_seeds(cls, text: object) -> str:
        parse_seeds(str(text))
        return str(text)


def shipped() -> list[str]:
    """The names of the scenarios that come with the package."""
    folder = resources.files("marketeval") / "scenarios"
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in folder.iterdir()
        if entry.name.endswith(".yaml")
    )


def read_tree(name: str) -> Tree:
    """The tree of a shipped scenario or of a YAML file; paths in it are made absolute."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml", ".json") or path.exists():
        if not path.is_file():
            raise DataError(f"no scenario file at {path}; expected a YAML file")
        tree = parse_yaml(path.read_text(encoding="utf-8", errors="replace"), str(path))
        tree.setdefault("name", path.stem)
        _make_absolute(tree, path.resolve().parent)
        return tree
    if name not in shipped():
        raise UnknownNameError("scenario", name, shipped(), hint=" (or give a YAML file)")
    text = (resources.files("marketeval") / "scenarios" / f"{name}.yaml").read_text("utf-8")
    return {"name": name, **parse_yaml(text, name)}


def parse_yaml(text: str, source: str) -> Tree:
    """A YAML mapping; a key given twice is an error, not a choice of the last."""
    try:
        tree = yaml.load(text, Loader=_UniqueKeys)
    except yaml.YAMLError as error:
        raise DataError(f"{source} is not readable YAML: {' '.join(str(error).split())}") from None
    if not isinstance(tree, dict):
        raise DataError(f"{source}: expected a mapping of keys, got {type(tree).__name__}")
    return tree


def check(tree: Tree) -> Scenario:
    """The scenario a tree describes; every key known, every value in range."""
    return validated(Scenario, tree)


def validated(model: type[Spec], tree: Any) -> Spec:  # any: the caller's data
    """A checked model, or a ScenarioError of one line that says where and what was expected."""
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise ScenarioError(_one_line(error, model)) from None


def override(tree: Tree, key: str, value: Any) -> None:  # any: a value from YAML
    """Set `key` in place: dotted as in the file, or a leaf's own name where only one has it.

    A value of None removes a seat or segment, or sets a value back to its default.
    """
    parts = key.split(".")
    if parts[0] not in Scenario.model_fields:
        parts = list(_full_path(parts))
    at: Any = tree  # any: descends through the tree
    while True:
        head, parts = _longest_known(at, parts)
        if not parts:
            break
        child = at.get(head)
        if isinstance(child, str) and at is tree.get("seats"):
            child = at[head] = {"agent": child}
        if isinstance(child, list):
            child = at[head] = {one.get("name", str(i)): one for i, one in enumerate(child)}
        if not isinstance(child, dict):
            child = at[head] = {}
        at = child
    if value is None:
        at.pop(head, None)
    else:
        at[head] = value


def parse_value(text: str) -> Any:  # any: what YAML can hold
    """The value of `--set key=value`: YAML, so numbers, truth values, lists and null."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def with_overrides(tree: Tree, changes: Mapping[str, Any]) -> Tree:  # any: values from YAML
    """A copy of the tree with the changes made in order."""
    changed = copy.deepcopy(tree)
    for key, value in changes.items():
        override(changed, key, copy.deepcopy(value))
    return changed


def parse_seeds(text: str) -> list[int]:
    """`1-10`, `3`, `1,4,7-9`: the seeds, ascending, each once."""
    seeds: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()) or (dash and int(last) < int(first)):
            raise UsageError(f"expected seeds like 1-10 or 1,4,7-9, got '{text}'")
        if int(last or first) >= 2**63:
            raise UsageError(f"expected seeds below 2**63, got '{text}'")
        if dash and int(last) - int(first) >= 10_000_000:
            raise UsageError(f"expected at most 10 million seeds, got '{text}'")
        seeds.update(range(int(first), int(last or first) + 1))
    return sorted(seeds)


class _UniqueKeys(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' stands twice", node.start_mark
                )
        return cast(dict[Any, Any], super().construct_mapping(node, deep))  # any: YAML's keys


def _make_absolute(tree: Tree, folder: Path) -> None:
    if isinstance(tree.get("outcomes"), str):
        tree["outcomes"] = [tree["outcomes"]]
    if isinstance(tree.get("outcomes"), list):
        tree["outcomes"] = [str(folder / str(one)) for one in tree["outcomes"]]
    if isinstance(tree.get("items"), str) and tree["items"]:
        tree["items"] = str(folder / tree["items"])
    if isinstance(tree.get("entries"), dict) and "file" in tree["entries"]:
        tree["entries"]["file"] = str(folder / str(tree["entries"]["file"]))


def _longest_known(at: Mapping[str, Any], parts: Sequence[str]) -> tuple[str, list[str]]:
    """The longest run of parts that is a key here (a model's name may hold dots), and the rest."""
    for length in range(len(parts), 0, -1):
        head = ".".join(parts[:length])
        if head in at:
            return head, list(parts[length:])
    return parts[0], list(parts[1:])


def _full_path(end: Sequence[str]) -> tuple[str, ...]:
    """The path of the one value of the market whose path ends like this."""
    leaves = _leaves(Information, ("market",))
    paths = [path for path in leaves if path[-len(end) :] == tuple(end)]
    name = ".".join(end)
    if len(paths) == 1:
        return paths[0]
    if paths:
        raise UsageError(
            f"'{name}' is ambiguous: {', '.join('.'.join(path) for path in paths)}; name it in full"
        )
    known = {".".join(path[-len(end) :]) for path in leaves} | set(Scenario.model_fields)
    raise UnknownNameError("key", name, known)


def _leaves(model: type[BaseModel], above: tuple[str, ...]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, info in model.model_fields.items():
        inner = info.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found += _leaves(inner, (*above, name))
        else:
            found.append((*above, name))
    return found


def _one_line(error: ValidationError, model: type[BaseModel]) -> str:
    problem = error.errors()[0]
    where = [str(part) for part in problem["loc"]]
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, MarketevalError):
        return f"{'.'.join(where)}: {cause}" if where else str(cause)
    if problem["type"] == "extra_forbidden":
        known = _fields_at(model, where[:-1])
        near = near_miss(where[-1], known)
        guess = f"; did you mean '{near}'?" if near else ";"
        inside = f" in {'.'.join(where[:-1])}" if where[:-1] else ""
        return f"unknown key '{where[-1]}'{inside}{guess} known: {', '.join(known)}"
    got = repr(problem["input"])
    return f"{'.'.join(where)}: {problem['msg'][0].lower()}{problem['msg'][1:]}, got {got:.80}"


def _fields_at(model: type[BaseModel], where: Sequence[str]) -> list[str]:
    """The keys a model knows at a place inside it."""
    here: Any = model  # any: a model, or a container of models
    for part in where:
        if isinstance(here, type) and issubclass(here, BaseModel) and part in here.model_fields:
            here = here.model_fields[part].annotation
        here = _inner_model(here)
        if here is None:
            return []
    return sorted(here.model_fields)


def _inner_model(annotation: Any) -> type[BaseModel] | None:  # any: a type expression
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _inner_model(inner)
        if found is not None:
            return found
    return None
