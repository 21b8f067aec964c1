"""A file of questions: which are asked, in which order, and in which words."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import polars as pl

from marketeval.core.errors import DataError

IDS, TEXTS, GOLDS = ("item_id", "qid"), ("question", "problem"), ("answer", "gold")
SHIPPED = "shipped:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Questions in their order; `texts`, `golds` and `topics` are None where the file has none."""

    items: Sequence[str]
    texts: Sequence[str] | None
    golds: Sequence[Sequence[str]] | None
    topics: Sequence[str] | None
    name: str
    hash: str


def read_pool(name: str) -> Pool:
    """Read a CSV with item_id (or qid) and, optionally, question (problem), answer (gold), topic.

    An answer may list several accepted ones, separated by `|`. `shipped:NAME` is a file that comes
    with the package.

    Raises
    ------
    DataError : naming the file and what is wrong with it
    """
    path = shipped_file(name) if name.startswith(SHIPPED) else Path(name)
    try:
        table = read_csv(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is not a readable CSV: {str(error).splitlines()[0]}") from None
    ids = _column(table, IDS)
    if ids is None:
        found = ", ".join(table.columns)
        raise DataError(f"{path}: expected a column item_id or qid, found {found:.200}")
    if not ids.len():
        raise DataError(f"{path} has no rows; expected a row per question")
    if ids.is_duplicated().any() or ids.is_null().any():
        raise DataError(f"{path}: expected each item once, and none empty, in '{ids.name}'")
    texts, golds = _column(table, TEXTS), _column(table, GOLDS)
    if texts is not None and texts.is_null().any():
        raise DataError(f"{path}: {texts.null_count()} questions are empty in '{texts.name}'")
    return Pool(
        items=ids.to_list(),
        texts=None if texts is None else texts.to_list(),
        golds=None
        if golds is None
        else [
            tuple(part.strip() for part in (one or "").split("|") if part.strip()) for one in golds
        ],
        topics=table["topic"].fill_null("none").to_list() if "topic" in table.columns else None,
        name=str(path),
        hash=hashlib.sha256(path.read_bytes()).hexdigest(),
    )


def read_csv(path: Path) -> pl.DataFrame:
    """A CSV as text, its blank lines left out."""
    table = pl.read_csv(path, infer_schema=False)
    return table.filter(~pl.all_horizontal(pl.all().is_null()))


def shipped_file(name: str) -> Path:
    path = Path(str(resources.files("marketeval") / "scenarios" / name.removeprefix(SHIPPED)))
    if not path.is_file():
        raise DataError(f"no questions '{name}' come with the package")
    return path


def _column(table: pl.DataFrame, names: Sequence[str]) -> pl.Series | None:
    name = next((one for one in names if one in table.columns), None)
    return None if name is None else table[name]
