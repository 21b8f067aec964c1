"""TREC files and corpora, read with the line number of whatever is wrong in them."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from marketeval.core.errors import DataError

_DOC = re.compile(r"<DOC>(.*?)</DOC>", re.DOTALL)
_DOCNO = re.compile(r"<DOCNO>\s*(.*?)\s*</DOCNO>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True)
class Ranking:
    """A topic's documents, best first, with the scores that the system reports."""

    documents: tuple[str, ...]
    scores: tuple[float, ...]


EMPTY = Ranking((), ())


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Judgments: topic, iteration, document, grade on each line."""
    found: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        parts = line.split()
        if len(parts) != 4:
            raise DataError(
                f"{path}, line {number}: expected 4 columns (topic 0 document grade), got "
                f"{len(parts)}"
            )
        topic, _, document, grade = parts
        try:
            value = int(grade)
        except ValueError:
            raise DataError(
                f"{path}, line {number}: expected a whole number as grade, got '{grade:.40}'"
            ) from None
        of_topic = found.setdefault(topic, {})
        if document in of_topic:
            raise DataError(
                f"{path}, line {number}: document '{document}' is judged twice for topic '{topic}'"
            )
        of_topic[document] = value
    if not found:
        raise DataError(f"{path}: expected judgments, found none")
    return found


def read_run(path: Path) -> dict[str, Ranking]:
    """A run: topic, Q0, document, rank, score, tag on each line.

    As trec_eval does, documents are ordered by score, equal scores by the larger document id; the
    rank column is not read.
    """
    rows: dict[str, list[tuple[float, str]]] = {}
    seen: set[tuple[str, str]] = set()
    for number, line in _lines(path):
        parts = line.split()
        if len(parts) != 6:
            raise DataError(
                f"{path}, line {number}: expected 6 columns (topic Q0 document rank score tag), "
                f"got {len(parts)}"
            )
        topic, document, text = parts[0], parts[2], parts[4]
        try:
            score = float(text)
        except ValueError:
            score = float("nan")
        if not -1e300 < score < 1e300:
            raise DataError(f"{path}, line {number}: expected a number as score, got '{text:.40}'")
        if (topic, document) in seen:
            raise DataError(
                f"{path}, line {number}: document '{document}' stands twice for topic '{topic}'"
            )
        seen.add((topic, document))
        rows.setdefault(topic, []).append((score, document))
    if not rows:
        raise DataError(f"{path}: expected a run, found no line")
    found = {}
    for topic, ranked in rows.items():
        ranked.sort(reverse=True)
        found[topic] = Ranking(tuple(d for _, d in ranked), tuple(s for s, _ in ranked))
    return found


def read_questions(path: Path) -> list[dict[str, str]]:
    """A CSV of questions: an id (query_id, item_id or qid), a text, and any labels."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None
    named = next((one for one in ("query_id", "item_id", "qid") if rows and one in rows[0]), "")
    if not named:
        raise DataError(f"{path}: expected a CSV with the columns query_id and text")
    seen: set[str] = set()
    for place, row in enumerate(rows):
        if None in row or None in row.values() or not row[named]:
            raise DataError(f"{path}, row {place + 1}: expected a value in each column")
        if row[named] in seen:
            raise DataError(f"{path}, row {place + 1}: the id '{row[named]}' stands twice")
        seen.add(row[named])
    return [
        {
            **{key: value for key, value in row.items() if key != named},
            "id": row[named],
            "text": row.get("text") or row.get("question") or "",
        }
        for row in rows
    ]


def read_corpus(path: Path) -> dict[str, str]:
    """Documents by id, from JSONL (id, text), CSV (doc_id, text) or TREC-style text (<DOC>)."""
    if path.suffix.lower() == ".jsonl":
        pairs = _jsonl(path)
    elif path.suffix.lower() == ".csv":
        pairs = _csv(path)
    else:
        pairs = _trec_text(path)
    found: dict[str, str] = {}
    for where, name, text in pairs:
        if name in found:
            raise DataError(f"{path}, {where}: document '{name}' stands twice")
        found[name] = text
    if not any(text.strip() for text in found.values()):
        raise DataError(f"{path}: the corpus is empty; expected at least one document with text")
    return found


def content_hash(texts: Mapping[str, str]) -> str:
    """SHA-256 over ids and texts in order: what an index of a corpus is keyed by."""
    total = hashlib.sha256()
    for name, text in texts.items():
        total.update(f"{len(name)}:{name}{len(text)}:{text}".encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def _jsonl(path: Path) -> Iterator[tuple[str, str, str]]:
    for number, line in _lines(path):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            raise DataError(f"{path}, line {number}: expected a JSON object with a text")
        named = next((row[key] for key in ("id", "doc_id", "docno", "_id") if key in row), None)
        yield f"line {number}", str(number if named is None else named), row["text"]


def _csv(path: Path) -> Iterator[tuple[str, str, str]]:
    csv.field_size_limit(1 << 27)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file), 1):
                name = row.get("doc_id") or row.get("id") or row.get("docno")
                if not name or row.get("text") is None:
                    raise DataError(
                        f"{path}, row {number}: expected the columns doc_id and text with values"
                    )
                yield f"row {number}", name, row["text"]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None


def _trec_text(path: Path) -> Iterator[tuple[str, str, str]]:
    text = "\n".join(line for _, line in _lines(path))
    for number, found in enumerate(_DOC.finditer(text), 1):
        name = _DOCNO.search(found[1])
        if name is None:
            raise DataError(f"{path}, document {number}: expected a <DOCNO>")
        body = found[1].replace(name[0], " ")
        yield f"document {number}", name[1], " ".join(_TAG.sub(" ", body).split())


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except UnicodeDecodeError:
        raise DataError(f"{path}: expected text in UTF-8") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
