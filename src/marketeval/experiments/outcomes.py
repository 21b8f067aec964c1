"""Tables of recorded answers: read, checked, and laid out for recorded agents.

A table has a row per answer: `item_id, model, score` and, optionally, `grade` (correct, incorrect,
not_attempted), `cost_usd`, `latency_s`, `topic`, `answer` and `sample` (several answers of a model
to an item). Several tables may split items or models between them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from marketeval.actions.information import AnswerTable
from marketeval.core.errors import DataError, near_miss
from marketeval.events.information import GRADES, NOT_ATTEMPTED, UNGRADED
from marketeval.experiments.pool import Pool, read_csv

NEEDED = ("item_id", "model", "score")
OPTIONAL = ("grade", "cost_usd", "latency_s", "topic", "answer", "sample")
Missing = Literal["fail", "skip", "zero"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticScore:
    """One system on the static benchmark: each item asked once, samples averaged."""

    items: int
    correct: float
    attempted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Recorded answers of all models to all items, in the data's own order."""

    items: Sequence[str]
    topics: NDArray[np.int64]
    topic_names: Sequence[str]
    tables: Mapping[str, AnswerTable]
    static: Mapping[str, StaticScore]
    columns: frozenset[str]
    hashes: Mapping[str, str]


def read_outcomes(
    paths: Sequence[Path], *, missing: Missing = "fail", items: Pool | None = None
) -> Outcomes:
    """Read and check tables of recorded answers (CSV or Parquet).

    `missing` says what an item that a model never answered is: an error, an interaction without
    an outcome, or a score of 0. `items` are the questions to ask, in their order; without
    them, all items of the tables.

    Raises
    ------
    DataError : naming the file, the column and the first offending row
    """
    tables = [_read(path) for path in paths]
    columns = frozenset.intersection(*(frozenset(table.columns) for table in tables))
    for path, table in zip(paths, tables, strict=True):
        lost = sorted((set(table.columns) - columns) & {"grade", "cost_usd", "latency_s", "topic"})
        if lost:
            raise DataError(
                f"{path.name} has the columns {', '.join(lost)}, other outcome tables have not; "
                "give all tables the same columns"
            )
    data = pl.concat([table.select(sorted(columns)) for table in tables])
    data = _checked(data, ", ".join(path.name for path in paths))
    pool = data["item_id"].unique(maintain_order=True)
    if items is not None:
        pool = _known_items(items, pool)
        order = pl.DataFrame({"item_id": pool, "_order": np.arange(pool.len())})
        data = data.join(order, on="item_id").sort("_order", maintain_order=True).drop("_order")
    models = data["model"].unique(maintain_order=True)
    topics, names = _topics(data, pool)
    by_model = {str(key[0]): part for key, part in data.group_by("model", maintain_order=True)}
    _complain_of_gaps(by_model, pool, missing)
    laid_out = {model: _lay_out(by_model[model], pool, missing) for model in models}
    return Outcomes(
        items=pool.to_list(),
        topics=topics,
        topic_names=names,
        tables=laid_out,
        static={model: _static(table) for model, table in laid_out.items()},
        columns=columns,
        hashes={str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths},
    )


def _read(path: Path) -> pl.DataFrame:
    if not path.is_file():
        raise DataError(f"no outcome table at {path}; expected a CSV or Parquet file")
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            table = pl.read_parquet(path)
        else:
            table = read_csv(path)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} is not a readable table: {reason}") from None
    again = [name for name in table.columns if name.endswith("_duplicated_0")]
    if again:
        raise DataError(f"{path} has the column '{again[0][:-13]}' twice")
    for name in NEEDED:
        if name not in table.columns:
            near = near_miss(name, table.columns)
            raise DataError(
                f"{path} has no column '{name}'"
                + (f"; did you mean '{near}'?" if near else ";")
                + f" expected {', '.join(NEEDED)} (optional: {', '.join(OPTIONAL)}); "
                f"found {', '.join(table.columns):.200}"
            )
    if table.is_empty():
        raise DataError(f"{path} has no rows; expected a row per item and model")
    kept = [name for name in (*NEEDED, *OPTIONAL) if name in table.columns]
    numbers = ("score", "cost_usd", "latency_s")
    try:
        return table.select(
            _numbers(path, table, name) if name in numbers else table[name].cast(pl.String)
            for name in kept
        )
    except pl.exceptions.PolarsError as error:
        raise DataError(
            f"{path} has a column of a wrong type: {str(error).splitlines()[0]}"
        ) from None


def _known_items(pool: Pool, known: pl.Series) -> pl.Series:
    """The ids of a question file, each with recorded answers."""
    ids = pl.Series("item_id", pool.items, pl.String)
    lost = ids.filter(~ids.is_in(known.implode()))
    if lost.len():
        raise DataError(
            f"{pool.name}: {lost.len()} of {ids.len()} items are in no outcome table, the first "
            f"'{lost[0]}'"
        )
    return ids


def _numbers(path: Path, table: pl.DataFrame, name: str) -> pl.Series:
    values = table[name]
    if not (values.dtype.is_numeric() or values.dtype in (pl.String, pl.Boolean, pl.Null)):
        raise DataError(f"{path}: expected numbers in '{name}', got values of type {values.dtype}")
    numbers = values.cast(pl.Float64, strict=False)
    wrong = (numbers.is_null() & values.is_not_null()).arg_true()
    if values.dtype == pl.String:
        wrong = (numbers.is_null() & values.is_not_null() & (values != "")).arg_true()
    if wrong.len():
        raise DataError(
            f"{path}, row {wrong[0] + 2}: expected a number in '{name}', got {values[wrong[0]]!r}"
        )
    return numbers


def _checked(data: pl.DataFrame, source: str) -> pl.DataFrame:
    """The rows with grades as codes; refuses what no market could use."""
    for name in ("item_id", "model"):
        empty = data[name].is_null() | (data[name] == "")
        if empty.any():
            raise DataError(f"{source}: {empty.sum()} rows have no '{name}'")
    score = data["score"]
    undefined = score.is_null() | score.is_nan()
    if undefined.any():
        first = data.row(int(undefined.arg_true()[0]), named=True)
        raise DataError(
            f"{source}: {undefined.sum()} scores are NaN or empty, the first for item "
            f"'{first['item_id']}' and model '{first['model']}'; expected numbers from 0 to 1; "
            "leave such rows out and say with --missing what a missing answer is"
        )
    outside = ~score.is_between(0, 1)
    if outside.any():
        first = data.row(int(outside.arg_true()[0]), named=True)
        raise DataError(
            f"{source}: {outside.sum()} scores are outside 0 to 1, the first {first['score']} for "
            f"item '{first['item_id']}' and model '{first['model']}'"
        )
    key = [name for name in ("item_id", "model", "sample") if name in data.columns]
    twice = data.select(key).is_duplicated()
    if twice.any():
        first = data.filter(twice).row(0, named=True)
        raise DataError(
            f"{source}: {twice.sum()} rows share their {' and '.join(key)}, the first for item "
            f"'{first['item_id']}' and model '{first['model']}'; expected one row each "
            "(repeated answers need a column 'sample')"
        )
    for name in ("cost_usd", "latency_s"):
        if name in data.columns:
            bad = data[name].is_nan() | (data[name] < 0) | data[name].is_infinite()
            if bad.any():
                raise DataError(f"{source}: {bad.sum()} values of '{name}' are negative or NaN")
    if "grade" in data.columns:
        known = dict(zip(GRADES, range(len(GRADES)), strict=True))
        grades = data["grade"].fill_null("none")
        unknown = grades.filter(~grades.is_in(list(known)))
        if unknown.len():
            raise DataError(
                f"{source}: unknown grade '{unknown[0]}' in {unknown.len()} rows; "
                f"known: {', '.join(GRADES[:3])}"
            )
        data = data.with_columns(grades.replace_strict(known, return_dtype=pl.Int8).alias("grade"))
    return data


def _topics(data: pl.DataFrame, items: pl.Series) -> tuple[NDArray[np.int64], list[str]]:
    if "topic" not in data.columns:
        return np.zeros(items.len(), np.int64), ["all"]
    pairs = data.select("item_id", pl.col("topic").fill_null("none")).unique(maintain_order=True)
    twice = pairs.filter(pairs["item_id"].is_duplicated())
    if not twice.is_empty():
        item = twice["item_id"][0]
        raise DataError(
            f"item '{item}' has several topics: {', '.join(twice.filter(item_id=item)['topic'])}"
        )
    names = sorted(pairs["topic"].unique())
    if len(names) > 2**15:
        raise DataError(f"expected at most {2**15:,} topics, got {len(names):,}")
    codes = {name: code for code, name in enumerate(names)}
    return pairs["topic"].replace_strict(codes, return_dtype=pl.Int64).to_numpy(), names


def _complain_of_gaps(
    by_model: Mapping[str, pl.DataFrame], items: pl.Series, missing: Missing
) -> None:
    if missing != "fail":
        return
    gaps = {}
    for model, rows in by_model.items():
        answered = rows["item_id"].unique()
        if answered.len() < items.len():
            gaps[model] = items.filter(~items.is_in(answered.implode())).to_list()
    if gaps:
        listed = "; ".join(
            f"{model}: {len(lost)} of {items.len()} (first '{lost[0]}')"
            for model, lost in list(gaps.items())[:5]
        )
        more = f"; and {len(gaps) - 5} more models" if len(gaps) > 5 else ""
        raise DataError(
            f"{len(gaps)} of {len(by_model)} models have no answer to some items: {listed}{more}; "
            "use --missing skip (no outcome), --missing zero (score 0), or complete the table"
        )


def _lay_out(rows: pl.DataFrame, items: pl.Series, missing: Missing) -> AnswerTable:
    """One model's rows in item order, with a row for each item that it never answered."""
    place = pl.DataFrame({"item_id": items, "_place": np.arange(items.len())})
    key = ["_place", *(["sample"] if "sample" in rows.columns else [])]
    rows = place.join(rows, on="item_id", how="left", maintain_order="left").sort(
        key, maintain_order=True
    )
    lost = rows["score"].is_null().to_numpy()
    score = rows["score"].fill_null(np.nan).to_numpy().copy()
    if missing == "zero":
        score[lost] = 0.0
    counts = np.bincount(rows["_place"].to_numpy(), minlength=items.len())

    def optional(name: str) -> NDArray[np.float64] | None:
        if name not in rows.columns:
            return None
        values = rows[name].fill_null(np.nan).to_numpy().copy()
        if missing == "zero":
            values[lost] = 0.0
        return values

    grade = None
    if "grade" in rows.columns:
        unanswered = NOT_ATTEMPTED if missing == "zero" else UNGRADED
        grade = rows["grade"].fill_null(unanswered).to_numpy().astype(np.int8)
    text = tuple(rows["answer"].fill_null("").to_list()) if "answer" in rows.columns else None
    return AnswerTable(
        starts=np.concatenate([[0], np.cumsum(counts)]),
        score=score,
        grade=grade,
        cost_usd=optional("cost_usd"),
        latency_s=optional("latency_s"),
        text=text,
    )


def _static(table: AnswerTable) -> StaticScore:
    """Correct and attempted over the items with an outcome, samples of an item averaged."""
    counts = np.diff(table.starts)
    item = np.repeat(np.arange(counts.size), counts)
    there = ~np.isnan(table.score)
    answered = np.bincount(item[there], minlength=counts.size)
    asked = answered > 0

    def summed(values: NDArray[np.float64]) -> float:
        totals = np.bincount(item[there], weights=values[there], minlength=counts.size)
        return float((totals[asked] / answered[asked]).sum())

    attempted = np.ones(table.score.size)
    if table.grade is not None:
        attempted = (table.grade != NOT_ATTEMPTED).astype(np.float64)
    return StaticScore(
        items=int(asked.sum()), correct=summed(table.score), attempted=summed(attempted)
    )
