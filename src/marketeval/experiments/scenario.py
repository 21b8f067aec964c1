"""A scenario: who competes in which market, with which controls, and what is measured.

A YAML file becomes a tree, overrides change the tree, and only then is it checked, so that a
file, `--set` and a control are read by the same rules.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

import yaml
from pydantic import (
    BaseModel,
    Field,
    create_model,
    field_validator,
    model_validator,
)

from marketeval.core.errors import (
    DataError,
    ScenarioError,
    UnknownNameError,
    UsageError,
)
from marketeval.core.spec import Spec, fields_at, models_in, validated
from marketeval.experiments.families import FAMILIES
from marketeval.metrics.base import parse_metric

Tree = dict[str, Any]  # any: what YAML can hold
Step = Annotated[int, Field(ge=0)]


class Seat(Spec):
    """Who fills a seat: the agent's short text, the label shown, when it enters, its options."""

    agent: str = "recorded"
    label: str = ""
    enters: Step = 0
    options: dict[str, Any] = {}  # any: each maker of agents knows its own


class Entries(Spec):
    """Entry steps from a table with the columns `model` and `date` (or `step`).

    The earliest date is step 0; each later one comes `every` steps after the one before (20, or
    as many as fit the horizon); equal dates enter together.
    """

    file: str
    every: int | None = Field(default=None, ge=1)


class Phase(Spec):
    """A stretch of steps [start, stop) that tables compare."""

    name: str
    start: Step
    stop: int = Field(ge=1)

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.start >= self.stop:
            raise ScenarioError(
                f"phase '{self.name}': start {self.start} is not below stop {self.stop}"
            )
        return self


class Endpoint(Spec):
    """What an endpoint bears; see `llm.limits.Limits`."""

    concurrency: int = Field(default=32, ge=1)
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    attempts: int = Field(default=6, ge=1)
    backoff_s: float = Field(default=1.0, gt=0)
    longest_wait_s: float = Field(default=60.0, gt=0)
    failures_in_a_row: int = Field(default=20, ge=1)


class ModelPrice(Spec):
    """Dollars per million tokens of a model."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class Scenario(Spec):
    """One market, its seats, its controls and its metrics, with every default filled in."""

    name: str
    title: str = ""
    description: str = ""
    family: str = "information"
    seats: dict[str, Seat] = {}
    market: Any  # any: the family's specification, see `scenario_of`
    outcomes: tuple[str, ...] = ()
    missing: Literal["fail", "skip", "zero"] = "fail"
    items: str = ""
    static: bool | Literal["fresh"] = False
    endpoints: dict[str, Endpoint] = {}
    prices: dict[str, ModelPrice] = {}
    entries: Entries | None = None
    phases: tuple[Phase, ...] = ()
    controls: dict[str, dict[str, Any]] = {}  # any: overrides, by key
    metrics: tuple[str, ...] = ()
    seeds: str = "1-10"

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        return folder_name("a scenario's name", name)

    @field_validator("controls")
    @classmethod
    def _name_folders(cls, controls: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for name in controls:
            folder_name("a control's name", name)
        return controls

    @field_validator("phases")
    @classmethod
    def _named_apart(cls, phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
        names = [one.name for one in phases]
        if len(set(names)) < len(names):
            raise ScenarioError(f"phases need names of their own, got {names}")
        return phases

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
        for text in texts:
            if text.count("(") != text.count(")"):
                raise ScenarioError(
                    f"expected a metric such as HHI(window=10), got '{text}'; in a list of YAML a "
                    "metric with several parameters needs quotes"
                )
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
    if os.path.isfile(name):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from None
        tree = parse_yaml(text, str(path))
        tree.setdefault("name", path.stem)
        make_absolute(tree, path.resolve().parent)
        return tree
    if name in shipped():
        text = (resources.files("marketeval") / "scenarios" / f"{name}.yaml").read_text("utf-8")
        return {"name": name, **parse_yaml(text, name)}
    if path.suffix in (".yaml", ".yml", ".json") or os.path.exists(name):
        raise DataError(f"no scenario file at {path}; expected a YAML file")
    raise UnknownNameError("scenario", name, shipped(), hint=" (or give a YAML file)")


def parse_yaml(text: str, source: str) -> Tree:
    """A YAML mapping; a key given twice is an error, not a choice of the last."""
    try:
        tree = copy.deepcopy(_loaded(text))
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that is none
        raise DataError(f"{source} is not readable YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise DataError(f"{source} is not readable YAML: nested too deeply") from None
    if not isinstance(tree, dict):
        got = "an empty file" if tree is None else type(tree).__name__
        raise DataError(f"{source}: expected a mapping of keys, got {got}")
    return tree


@lru_cache(maxsize=2)  # a run comes back to what it was given and to what it wrote
def _loaded(text: str) -> Any:  # any: whatever YAML can hold
    return yaml.load(text, Loader=_UniqueKeys)


def check(tree: Tree) -> Scenario:
    """The scenario a tree describes; every key known, every value in range."""
    return validated(scenario_of(tree), tree)


def scenario_of(tree: Mapping[str, Any]) -> type[Scenario]:  # any: as in Tree
    """The model of a scenario whose market is of the family that the tree names."""
    family = tree.get("family", "information")
    if not isinstance(family, str) or family not in FAMILIES:
        raise UnknownNameError("market family", str(family), FAMILIES)
    return _scenario_of(family)


@cache
def _scenario_of(family: str) -> type[Scenario]:
    spec = FAMILIES[family].Spec
    return create_model("Scenario", __base__=Scenario, market=(spec, spec()))


def override(tree: Tree, key: str, value: Any) -> None:  # any: a value from YAML
    """Set `key` in place: dotted as in the file, or a leaf's own name where only one has it.

    In a list an entry is meant by its `name`, or by its place from 0. A value of None removes a
    seat or segment, or sets a value back to its default.
    """
    _change(scenario_of(tree), tree, full_key(tree, key).split("."), value, ())


def full_key(tree: Tree, key: str) -> str:
    """A key with all that stands above it, given its last parts where only one ends so."""
    parts, model = key.split("."), scenario_of(tree)
    return key if parts[0] in model.model_fields else ".".join(_full_path(model, parts))


def fill_seat(tree: Tree, seat: str, agent: str) -> None:
    """Put an agent into a seat, in place; a seat that is not there yet is added."""
    _change(scenario_of(tree), tree, ["seats", seat, "agent"], agent, ())


def parse_value(text: str) -> Any:  # any: what YAML can hold
    """The value of `--set key=value`: YAML, so numbers, truth values, lists and null."""
    try:
        return yaml.load(text, Loader=_UniqueKeys)
    except (yaml.YAMLError, ValueError, RecursionError):
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
        if not _is_count(first) or (dash and not _is_count(last)):
            raise UsageError(f"expected seeds like 1-10 or 1,4,7-9, got '{text:.80}'")
        if len(first) > 19 or len(last) > 19 or int(last or first) >= 2**63:
            raise UsageError(f"expected seeds below 2**63, got '{text:.80}'")
        if dash and int(last) < int(first):
            raise UsageError(f"expected seeds from low to high, like 1-10, got '{text}'")
        if dash and int(last) - int(first) >= 10_000_000:
            raise UsageError(f"expected at most 10 million seeds, got '{text}'")
        seeds.update(range(int(first), int(last or first) + 1))
    return sorted(seeds)


def folder_name(what: str, name: str) -> str:
    """The name, if a folder can be called so."""
    if not name.strip() or name.startswith(".") or any(c in "/\\" or ord(c) < 32 for c in name):
        raise ScenarioError(
            f"expected {what} that can name a folder (no '/', no leading dot, not empty), "
            f"got {name!r}"
        )
    if len(name.encode("utf-8", "replace")) > 200:
        raise ScenarioError(f"expected {what} of at most 200 bytes, got {name!r:.60}...")
    return name


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit()


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a key given twice, and an anchor that holds itself."""

    def construct_document(self, node: yaml.Node) -> Any:  # any: what YAML can hold
        return self.construct_object(node, deep=True)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' stands twice", node.start_mark
                )
        return cast(dict[Any, Any], super().construct_mapping(node, deep))  # any: YAML's keys


def make_absolute(tree: Tree, folder: Path) -> None:
    """Make the paths in a tree absolute, in place; relative ones start at `folder`."""
    if isinstance(tree.get("outcomes"), str):
        tree["outcomes"] = [tree["outcomes"]]
    if isinstance(tree.get("outcomes"), list):
        tree["outcomes"] = [_absolute(str(one), folder) for one in tree["outcomes"]]
    if isinstance(tree.get("items"), str) and tree["items"] and ":" not in tree["items"][2:]:
        tree["items"] = _absolute(tree["items"], folder)
    market = tree.get("market")
    if isinstance(market, dict) and tree.get("family") == "coupled":
        market["folder"] = _absolute(str(market.get("folder") or ""), folder)
    if isinstance(tree.get("entries"), dict) and "file" in tree["entries"]:
        tree["entries"]["file"] = _absolute(str(tree["entries"]["file"]), folder)
    if isinstance(tree.get("seats"), dict):
        tree["seats"] = {name: _placed(seat, folder) for name, seat in tree["seats"].items()}


def _placed(seat: Any, folder: Path) -> Any:  # any: whatever the YAML held
    """A seat, in either form, with the path of its own table made absolute."""
    if isinstance(seat, dict):
        return {**seat, "agent": _placed(seat["agent"], folder)} if "agent" in seat else seat
    if not isinstance(seat, str) or not recorded_file(seat):
        return seat
    file, mark, model = seat.removeprefix("recorded:").partition("#")
    return f"recorded:{_absolute(file, folder)}{mark}{model}"


def _absolute(path: str, folder: Path) -> str:
    return os.path.normpath(folder / path)  # one spelling, so that a table given twice shows


def recorded_file(agent: str) -> str:
    """The table that `recorded:FILE#MODEL` names; '' if it names none."""
    kind, _, rest = agent.partition(":")
    return rest.partition("#")[0] if kind == "recorded" else ""


def _change(
    model: type[Scenario], at: Any, parts: Sequence[str], value: Any, above: tuple[str, ...]
) -> None:
    """Set (or with None remove) what stands under `parts` in the container `at`, whose own place
    is `above`. Any: YAML's values."""
    head, rest = _seat_of(at, parts) if above == ("seats",) else _longest_known(at, parts)
    child = at.get(head)
    if not rest:
        if value is not None:
            at[head] = value
        elif head in at:
            del at[head]
        elif above == ("seats",):
            raise UnknownNameError("seat", head, map(str, at))
        else:
            _known_key(model, head, above)
        return
    here = (*above, head)
    if above == ("seats",):
        if isinstance(child, str):
            child = {"agent": child}
        if child is None and rest != ["agent"]:
            raise UnknownNameError("seat", head, map(str, at))
    if isinstance(child, (list, tuple)):
        named = {_name_in(child, place): one for place, one in enumerate(child)}
        if _longest_known(named, rest)[0] not in named:
            raise UnknownNameError(f"entry of {'.'.join(here)}", ".".join(rest), named)
        _change(model, named, rest, value, here)
        at[head] = list(named.values())
        return
    if not isinstance(child, dict):
        child = {}
    at[head] = child
    _change(model, child, rest, value, here)


def _seat_of(seats: Mapping[str, Any], parts: Sequence[str]) -> tuple[str, list[str]]:
    """The seat that a path names, which may be a new one with dots in its name, and the rest."""
    head, rest = _longest_known(seats, parts)
    if head in seats or len(parts) == 1:
        return head, rest
    if parts[-1] in Seat.model_fields:
        return ".".join(parts[:-1]), [parts[-1]]
    return ".".join(parts), []


def _name_in(entries: Sequence[Any], place: int) -> str:
    """What an entry of a list is called: its name if no other has it, else its place."""
    names = [one.get("name") if isinstance(one, dict) else None for one in entries]
    own = names[place]
    return own if isinstance(own, str) and names.count(own) == 1 else str(place)


def _known_key(model: type[Scenario], name: str, above: Sequence[str]) -> None:
    known = fields_at(model, above)
    if known and name not in known:
        raise UnknownNameError(
            "key", ".".join((*above, name)), (".".join((*above, k)) for k in known)
        )


def _longest_known(at: Mapping[str, Any], parts: Sequence[str]) -> tuple[str, list[str]]:
    """The longest run of parts that is a key here (a model's name may hold dots), and the rest."""
    for length in range(len(parts), 0, -1):
        head = ".".join(parts[:length])
        if head in at:
            return head, list(parts[length:])
    return parts[0], list(parts[1:])


def _full_path(model: type[Scenario], end: Sequence[str]) -> tuple[str, ...]:
    """The path of the one value of the market whose path ends like this."""
    (spec,) = models_in(model.model_fields["market"].annotation)  # `scenario_of` gave it one
    leaves = _leaves(spec, ("market",), optional=len(end) > 1)
    paths = [path for path in leaves if path[-len(end) :] == tuple(end)]
    name = ".".join(end)
    if len(paths) == 1:
        return paths[0]
    if not paths and name in spec.model_fields:  # a part of the market as a whole
        return "market", name
    if paths:
        raise UsageError(
            f"'{name}' is ambiguous: {', '.join('.'.join(path) for path in paths)}; name it in full"
        )
    known = {".".join(path[-len(end) :]) for path in leaves} | set(model.model_fields)
    raise UnknownNameError("key", name, known)


def _leaves(
    model: type[BaseModel], above: tuple[str, ...], *, optional: bool
) -> list[tuple[str, ...]]:
    """The paths of a model's values; if `optional`, also inside parts that may be left out."""
    found: list[tuple[str, ...]] = []
    for name, info in model.model_fields.items():
        inner = info.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found += _leaves(inner, (*above, name), optional=optional)
            continue
        found.append((*above, name))
        some = [one for one in getattr(inner, "__args__", ()) if one is not type(None)]
        deeper = some[0] if optional and len(some) == 1 else None
        if isinstance(deeper, type) and issubclass(deeper, BaseModel):
            found += _leaves(deeper, (*above, name), optional=True)
    return found
