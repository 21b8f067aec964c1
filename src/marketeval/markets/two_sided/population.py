"""Who is in a two-sided market: populations from the reference's YAML folders and from our files.

A folder holds `businesses/*.yaml` and `customers/*.yaml`, read in order of file name; a file of
ours holds the same in one JSON document. What cannot be traded with is refused, with its file.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from marketeval.actions.two_sided import Business, Customer
from marketeval.core.errors import DataError, UnknownNameError

Tree = Mapping[str, Any]  # any: what YAML or JSON can hold
RESERVED = {  # names of seats
    "customers": "all customers",
    "businesses": "all businesses",
    "embedder": "what turns texts into vectors",
}
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, kw_only=True)
class Population:
    """Customers and businesses in the order of the data; `source` says where they come from."""

    customers: Sequence[Customer]
    businesses: Sequence[Business]
    source: str
    published: Tree | None = None

    @cached_property
    def digest(self) -> str:
        """A digest of the content, whatever the form it was read from."""
        text = json.dumps(document(self), sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()

    def first(self, customers: int | None, businesses: int | None) -> Population:
        """The first so many of each, in the order of the data."""
        return replace(
            self, customers=self.customers[:customers], businesses=self.businesses[:businesses]
        )


def shipped() -> list[str]:
    """The names of the populations that come with the package."""
    folder = resources.files("marketeval.markets.two_sided") / "populations"
    return sorted(
        one.name.removesuffix(".json.gz")
        for one in folder.iterdir()
        if one.name.endswith(".json.gz")
    )


def read_population(name: str) -> Population:
    """A shipped population, a folder of the reference's form, or a JSON file of ours."""
    path = Path(name)
    if path.is_dir():
        return _read_folder(path)
    if path.is_file():
        raw = path.read_bytes()
        return _from_json(gzip.decompress(raw) if name.endswith(".gz") else raw, name)
    if name not in shipped():
        hint = " (or give a folder with businesses/ and customers/)"
        raise UnknownNameError("population", name, shipped(), hint=hint)
    folder = resources.files("marketeval.markets.two_sided") / "populations"
    return _from_json(gzip.decompress((folder / f"{name}.json.gz").read_bytes()), name)


def write_population(population: Population, path: Path) -> None:
    """Write a population as one file: JSON, packed where the name ends in .gz."""
    text = json.dumps(document(population), ensure_ascii=False, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(text, 9, mtime=0) if path.suffix == ".gz" else text)


def document(population: Population) -> dict[str, Any]:  # any: JSON
    """A population as plain JSON values."""
    tree: dict[str, Any] = {  # any: JSON
        "customers": [
            {
                "id": one.id,
                "name": one.name,
                "request": one.request,
                "menu_features": dict(one.menu_features),
                "amenity_features": list(one.amenity_features),
            }
            for one in population.customers
        ],
        "businesses": [
            {
                "id": one.id,
                "name": one.name,
                "description": one.description,
                "rating": one.rating,
                "progenitor_customer": one.progenitor_customer,
                "menu_features": dict(one.menu_features),
                "amenity_features": dict(one.amenity_features),
                "min_price_factor": one.min_price_factor,
            }
            for one in population.businesses
        ],
    }
    if population.published is not None:
        tree["baseline_utilities"] = population.published
    return tree


def _read_folder(folder: Path) -> Population:
    sides = {}
    for side in ("businesses", "customers"):
        files = sorted(one for one in (folder / side).glob("*") if one.suffix in (".yaml", ".yml"))
        if not files:
            raise DataError(f"{folder}: expected YAML files in {side}/, found none")
        sides[side] = [(str(file), _read_yaml(file)) for file in files]
    baselines = folder / "baseline_utilities.json"
    published = _read_json(baselines.read_bytes(), str(baselines)) if baselines.is_file() else None
    return _checked(sides["customers"], sides["businesses"], str(folder), published)


def _read_yaml(file: Path) -> Tree:
    try:
        tree = yaml.load(file.read_bytes(), Loader=_Loader)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise DataError(f"{file}{line}: not readable YAML: {what}") from None
    if not isinstance(tree, Mapping):
        found = "nothing" if tree is None else type(tree).__name__
        raise DataError(f"{file}, line 1: expected a mapping of keys, got {found}")
    return tree


def _read_json(text: bytes, source: str) -> Any:  # any: what JSON can hold
    try:
        return json.loads(text)
    except ValueError as error:
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise DataError(f"{source}{line}: not readable JSON: {error}") from None


def _from_json(text: bytes, source: str) -> Population:
    tree = _read_json(text, source)
    if not isinstance(tree, dict) or not {"customers", "businesses"} <= set(tree):
        raise DataError(f"{source}: expected the keys customers and businesses")
    customers = [(f"{source}: customer {n + 1}", one) for n, one in enumerate(tree["customers"])]
    businesses = [(f"{source}: business {n + 1}", one) for n, one in enumerate(tree["businesses"])]
    return _checked(customers, businesses, source, tree.get("baseline_utilities"))


def _checked(
    customers: Sequence[tuple[str, Tree]],
    businesses: Sequence[tuple[str, Tree]],
    source: str,
    published: Tree | None,
) -> Population:
    made = Population(
        customers=[_customer(at, one) for at, one in customers],
        businesses=[_business(at, one) for at, one in businesses],
        source=source,
        published=published,
    )
    ids = [one.id for one in made.customers] + [one.id for one in made.businesses]
    first: dict[str, str] = {}
    for (at, _), id_ in zip((*customers, *businesses), ids, strict=True):
        if not id_ or id_ in RESERVED:
            raise DataError(
                f"{_line(at, 'id')}: the id '{id_}' cannot be given to an agent; it stands for "
                f"{RESERVED.get(id_, 'nobody')}"
            )
        if id_ in first:
            raise DataError(f"{_line(at, 'id')}: the id '{id_}' is taken by {first[id_]}")
        first[id_] = at
    return made


def _customer(at: str, tree: Tree) -> Customer:
    amenities = _get(at, tree, "amenity_features", list)
    made = Customer(
        id=_text(at, tree, "id"),
        name=_text(at, tree, "name"),
        request=_text(at, tree, "request"),
        menu_features=_prices(at, tree),
        amenity_features=tuple(str(one) for one in amenities),
    )
    if not made.menu_features:
        where = _line(at, "menu_features")
        raise DataError(f"{where}: customer '{made.id}' wants nothing: menu_features is empty")
    return made


def _business(at: str, tree: Tree) -> Business:
    made = Business(
        id=_text(at, tree, "id"),
        name=_text(at, tree, "name"),
        description=_text(at, tree, "description"),
        rating=_number(at, "rating", _get(at, tree, "rating", None), low=-math.inf),
        menu_features=_prices(at, tree),
        amenity_features=_truths(at, _get(at, tree, "amenity_features", Mapping)),
        min_price_factor=_number(
            at, "min_price_factor", _get(at, tree, "min_price_factor", None), high=1.0
        ),
        progenitor_customer=_text(at, tree, "progenitor_customer"),
    )
    if not made.menu_features:
        where = _line(at, "menu_features")
        raise DataError(f"{where}: business '{made.id}' has no menu: menu_features is empty")
    return made


def _get(at: str, tree: Tree, key: str, kind: Any) -> Any:  # any: parsed YAML
    if not isinstance(tree, Mapping) or key not in tree:
        raise DataError(f"{at}: the key '{key}' is missing")
    value = tree[key]
    if kind is not None and not isinstance(value, kind):
        wanted = {list: "a list", str: "text", Mapping: "a mapping"}[kind]
        raise DataError(f"{_line(at, key)}: {key} should be {wanted}, got {value!r:.60}")
    return value


def _text(at: str, tree: Tree, key: str) -> str:
    return str(_get(at, tree, key, str))


def _prices(at: str, tree: Tree) -> dict[str, float]:
    menu = _get(at, tree, "menu_features", Mapping)
    return {str(item): _number(at, str(item), price) for item, price in menu.items()}


def _number(at: str, key: str, value: object, *, low: float = 0.0, high: float = math.inf) -> float:
    if (
        type(value) not in (int, float)
        or not low <= value <= high  # type: ignore[operator]
        or math.isinf(value)  # type: ignore[arg-type]
    ):
        least = "" if low < 0 else f" of at least {low:g}"
        most = "" if math.isinf(high) else f" and at most {high:g}"
        raise DataError(
            f"{_line(at, key)}: {key}: expected a number{least}{most}, got {value!r:.60}"
        )
    return float(value)  # type: ignore[arg-type]  # its type is int or float, as just checked


def _truths(at: str, tree: Tree) -> dict[str, bool]:
    for name, there in tree.items():
        if not isinstance(there, bool):
            raise DataError(
                f"{_line(at, str(name))}: {name}: expected true or false, got {there!r}"
            )
    return {str(name): there for name, there in tree.items()}


def _line(at: str, key: str) -> str:
    """The file with the line of a key, where it is a file that holds the key."""
    path = Path(at)
    if not path.is_file():
        return at
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        if line.strip().strip("'\"").startswith((f"{key}:", f"{key}'", f'{key}"')):
            return f"{at}, line {number}"
    return at


Transform = Callable[[Population], Population]
