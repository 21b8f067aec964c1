"""What questions are to be made of: documents, a taxonomy of questions, and a plan drawn from both.

All draws are keyed by (seed, number of the question): planning more questions leaves the first
ones as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from marketeval.core.errors import DataError, UnknownNameError
from marketeval.core.spec import Spec, validated
from marketeval.core.streams import Streams
from marketeval.experiments.pool import read_csv
from marketeval.experiments.scenario import parse_yaml

WINDOW = 12_000  # characters of a document that the model is shown; of a longer one, a part
COLUMNS = (
    "item_id", "question", "answer", "topic", "document_ids", "span_start", "span_end", "quote",
)  # fmt: skip


class Category(Spec):
    """One category of a dimension: how often, and how the model is told."""

    weight: float = Field(gt=0, allow_inf_nan=False)
    told: str


class Taxonomy(Spec):
    """The dimensions of questions, each with its categories, and the topics."""

    name: str
    dimensions: dict[str, dict[str, Category]] = Field(min_length=1)
    topics: tuple[str, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Document:
    """A text to ask about; `topic` is "" where the data have none."""

    id: str
    text: str
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one question is made of: a document, the part shown, a category per dimension."""

    number: int
    document: Document
    start: int
    categories: Mapping[str, str]

    @property
    def item(self) -> str:
        """The id of the question; it stays the same whatever becomes of the others."""
        return f"q{self.number + 1}"

    @property
    def shown(self) -> str:
        """The part of the document that the model is shown."""
        return self.document.text[self.start : self.start + WINDOW]


def read_documents(path: Path) -> list[Document]:
    """Documents from a JSONL or CSV file with `id`, `text` and, if known, `topic`.

    Raises
    ------
    DataError : naming the file and the first offending row
    """
    if not path.is_file():
        raise DataError(f"no documents at {path}; expected a JSONL or CSV file with id and text")
    rows = _csv_rows(path) if path.suffix.lower() == ".csv" else _json_rows(path)
    documents: dict[str, Document] = {}
    for place, row in rows:
        where = f"{path}, {place}"
        for name in ("id", "text"):
            if not isinstance(row.get(name), (str, int)) or not str(row[name]).strip():
                raise DataError(f"{where}: expected a text in '{name}', got {row.get(name)!r:.40}")
        one = Document(str(row["id"]), str(row["text"]), str(row.get("topic") or ""))
        if one.id in documents:
            raise DataError(f"{where}: the id '{one.id}' stands twice")
        documents[one.id] = one
    if not documents:
        raise DataError(f"{path} has no documents; expected one per line")
    return list(documents.values())


def read_taxonomy(name: str) -> Taxonomy:
    """A shipped taxonomy by name, or one's own by the path of a YAML file.

    Raises
    ------
    UnknownNameError, DataError, ScenarioError : there is none, or it is not as it should be
    """
    folder = files("marketeval.experiments") / "taxonomies"
    known = sorted(one.name.removesuffix(".yaml") for one in folder.iterdir())
    if name in known:
        text, source = (folder / f"{name}.yaml").read_text("utf-8"), name
    elif name.endswith((".yaml", ".yml")):
        if not Path(name).is_file():
            raise DataError(f"no taxonomy at {name}")
        text, source = Path(name).read_text("utf-8", "replace"), name
    else:
        raise UnknownNameError("taxonomy", name, known, hint=" (or give a YAML file)")
    taxonomy = validated(Taxonomy, {"name": Path(source).stem, **parse_yaml(text, source)})
    for dimension in taxonomy.dimensions:
        if dimension in COLUMNS:
            raise DataError(f"{source}: a dimension cannot be called '{dimension}', as a column is")
        if not taxonomy.dimensions[dimension]:
            raise DataError(f"{source}: the dimension '{dimension}' has no categories")
    return taxonomy


def plan(documents: Sequence[Document], taxonomy: Taxonomy, *, count: int, seed: int) -> list[Plan]:
    """What each question is to be made of.

    Documents come in random order, each once before any comes again; categories by their weights.
    """
    streams, numbers = Streams(seed), np.arange(count)
    orders = [
        streams["documents"].permutation(turn, len(documents))
        for turn in range(-(-count // len(documents)))
    ]
    chosen = [documents[place] for place in np.concatenate(orders)[:count]]
    u = streams["window"].uniform_at(0, numbers)
    starts = [
        int(u[number] * (max(len(one.text) - WINDOW, 0) + 1)) for number, one in enumerate(chosen)
    ]
    drawn: dict[str, list[str]] = {}
    for dimension, categories in taxonomy.dimensions.items():
        weights = np.cumsum([one.weight for one in categories.values()])
        u = streams[f"dimension/{dimension}"].uniform_at(0, numbers)
        places = np.searchsorted(weights, u * weights[-1], side="right")
        names = list(categories)
        drawn[dimension] = [names[min(int(place), len(names) - 1)] for place in places]
    return [
        Plan(number, one, starts[number], {name: drawn[name][number] for name in drawn})
        for number, one in enumerate(chosen)
    ]


Rows = list[tuple[str, dict[str, Any]]]  # any: what the file held


def _csv_rows(path: Path) -> Rows:
    try:
        table = read_csv(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is not a readable CSV: {str(error).splitlines()[0]}") from None
    for name in ("id", "text"):
        if name not in table.columns:
            raise DataError(
                f"{path}: expected the columns id and text, found {', '.join(table.columns):.200}"
            )
    return [(f"row {row}", one) for row, one in enumerate(table.iter_rows(named=True), 1)]


def _json_rows(path: Path) -> Rows:
    rows = []
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not readable as UTF-8: {error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number} is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number}: expected an object with id and text")
        rows.append((f"line {number}", row))
    return rows
