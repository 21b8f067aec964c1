"""Retrievers: recorded TREC runs, BM25, dense vectors, and an endpoint.

    run:FILE                a six-column run file
    bm25:CORPUS             BM25 (bm25s) over a corpus
    dense:CORPUS#EMBEDDER   cosine of an embedder's vectors (lexical, use, or an endpoint)
    search:URL              POST {"query", "k"} as JSON, answered by {"documents": [{"id", "score",
                            "text"}]}

A CORPUS is a JSONL, CSV or TREC-style file, or several joined by `+`. Indexes are kept under the
hash of the corpus's content and of what they were made with, so that a changed corpus is never
answered from an old index.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.coupled import Found
from marketeval.agents.registry import Order
from marketeval.core.errors import DataError, ScenarioError, UnknownNameError, UsageError
from marketeval.core.market import Action, Failure, Request
from marketeval.llm.embedding import Embedder, make_embedder
from marketeval.mechanisms.trec import EMPTY, Ranking, content_hash, read_corpus, read_run

Floats = NDArray[np.float64]
CACHE = "MARKETEVAL_CACHE"
_WORD = re.compile(r"[^\W_]+")
# words that say nothing of what a text is about
_STOP = frozenset(
    (
        "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "has", "have", "in",
        "into", "is", "it", "its", "of", "on", "or", "that", "the", "their", "these", "this",
        "to", "was", "were", "which", "with",
    )
)  # fmt: skip


@dataclass(frozen=True)
class RunRetriever:
    """Answers from a recorded run, by the question's id; other queries it cannot be asked.

    `inflate` multiplies the scores it reports and changes nothing else: a retriever that lies.
    """

    rankings: Mapping[str, Ranking]
    collections: Mapping[str, str]
    inflate: float = 1.0
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False
    takes_words: bool = False
    shelf: Mapping[str, str] = field(default_factory=dict)

    def rank_all(self, ids: Sequence[str], texts: Sequence[str], depth: int) -> Found:
        """The recorded rankings; empty where the run has no line for a question."""
        found = [self.rankings.get(one, EMPTY) for one in ids]
        return Found(
            documents=[one.documents[:depth] for one in found],
            scores=[tuple(self.inflate * s for s in one.scores[:depth]) for one in found],
        )

    async def act(self, request: Request) -> Found:
        """As `rank_all`, for the questions of a batch."""
        batch = request.batch
        return self.rank_all(batch["item"], batch["query"], batch["depth"])


@dataclass(frozen=True)
class CorpusRetriever:
    """Ranks the documents of a corpus for any words.

    `search` maps queries and a depth to (places, scores), each of shape (queries, depth).
    """

    names: Sequence[str]
    shelf: Mapping[str, str]
    collections: Mapping[str, str]
    search: Callable[[Sequence[str], int], tuple[NDArray[np.int64], Floats]]
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False
    takes_words: bool = True

    def rank_all(self, ids: Sequence[str], texts: Sequence[str], depth: int) -> Found:
        """The rankings of questions by their words; documents that share nothing are left out."""
        places, scores = self.search(texts, min(depth, len(self.names)))
        return Found(
            documents=[
                tuple(self.names[p] for p, s in zip(row, worth, strict=True) if s > 0)
                for row, worth in zip(places.tolist(), scores.tolist(), strict=True)
            ],
            scores=[tuple(s for s in worth if s > 0) for worth in scores.tolist()],
        )

    async def act(self, request: Request) -> Found:
        """As `rank_all`, for the queries of a batch."""
        return self.rank_all(request.batch["item"], request.batch["query"], request.batch["depth"])


@dataclass(frozen=True, kw_only=True)
class SearchEndpoint:
    """A retriever behind HTTP; what it does not answer is a failure with the reason."""

    url: str
    timeout_s: float = 30.0
    attempts: int = 3
    immediate: bool = False
    deterministic: bool = False
    privileged: bool = False

    async def act(self, request: Request) -> Action:
        """One call per query, all at once."""
        depth = request.batch["depth"]
        found = await asyncio.gather(
            *(asyncio.to_thread(self._post, query, depth) for query in request.batch["query"])
        )
        if all(isinstance(one, str) for one in found) and found:
            return Failure(str(found[0]))
        rows = [[] if isinstance(one, str) else one for one in found]
        return Found(
            documents=[[str(doc["id"]) for doc in row] for row in rows],
            scores=[[float(doc.get("score", 0.0)) for doc in row] for row in rows],
            texts=[[str(doc.get("text", "")) for doc in row] for row in rows],
            reason=[one if isinstance(one, str) else "" for one in found],
        )

    def _post(self, query: str, depth: int) -> list[dict[str, Any]] | str:  # any: JSON
        """The documents, or why there are none."""
        body = json.dumps({"query": query, "k": depth}).encode()
        asked = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        reason = ""
        for _ in range(self.attempts):
            try:
                with urllib.request.urlopen(asked, timeout=self.timeout_s) as answer:
                    documents = json.load(answer)["documents"]
                if not all(isinstance(one, dict) and "id" in one for one in documents):
                    return f"{self.url}: expected documents with an id, got {documents!r:.60}"
                for one in documents:
                    float(one.get("score", 0.0))
                return list(documents)
            except urllib.error.HTTPError as error:
                reason = f"{self.url}: HTTP {error.code}"
                if error.code < 500:
                    break
            except (OSError, ValueError, KeyError, TypeError) as error:
                reason = f"{self.url}: {type(error).__name__}: {error}"
        return reason


def run(order: Order) -> RunRetriever:
    """`run:FILE`; option `inflate`."""
    inflate = _number(order, "inflate", 1.0)
    if not order.argument:
        raise ScenarioError(f"seat '{order.seat}': expected run:FILE, a TREC run of six columns")
    path = Path(order.argument)
    rankings = read_run(path)
    return RunRetriever(rankings, {str(path): _file_hash(path)}, inflate)


def bm25(order: Order) -> CorpusRetriever:
    """`bm25:CORPUS`; options `k1`, `b`."""
    k1, b = _number(order, "k1", 1.2, others=("b",)), _number(order, "b", 0.75, others=("k1",))
    try:
        import bm25s
    except ImportError:
        raise UsageError(
            f"seat '{order.seat}': BM25 needs bm25s; install it with pip install 'marketeval[ir]'"
        ) from None
    shelf, files = _corpus(order)
    key = f"bm25s {version('bm25s')} k1={k1} b={b} {content_hash(shelf)}"
    folder = index_folder(key)
    names = list(shelf)
    model: Any  # any: bm25s publishes no types
    if (folder / "done").is_file():
        model = bm25s.BM25.load(str(folder))
    else:
        model = bm25s.BM25(k1=k1, b=b, method="lucene")
        model.index([words(text) for text in shelf.values()], show_progress=False)
        _keep(folder, lambda: model.save(str(folder)))

    def search(texts: Sequence[str], depth: int) -> tuple[NDArray[np.int64], Floats]:
        asked = [[word for word in words(text) if word in model.vocab_dict] for text in texts]
        places, scores = np.zeros((len(texts), depth), np.int64), np.zeros((len(texts), depth))
        some = [row for row, of in enumerate(asked) if of]
        if some:
            found = model.retrieve(
                [asked[row] for row in some], k=depth, show_progress=False, n_threads=1
            )
            places[some], scores[some] = found.documents, found.scores
        return _ordered(places, scores)

    return CorpusRetriever(names, shelf, files, search)


def dense(order: Order) -> CorpusRetriever:
    """`dense:CORPUS#EMBEDDER`, by default the lexical embedder."""
    _known(order, ())
    embedder = make_embedder(order.argument.partition("#")[2])
    shelf, files = _corpus(order)
    vectors = _vectors(embedder, shelf)

    def search(texts: Sequence[str], depth: int) -> tuple[NDArray[np.int64], Floats]:
        asked = embedder.embed(list(texts))
        similar = asked @ vectors.T
        places = np.argsort(-similar, axis=1, kind="stable")[:, :depth]
        return places, np.take_along_axis(similar, places, axis=1)

    return CorpusRetriever(
        list(shelf), shelf, files, search,
        immediate=embedder.local, deterministic=embedder.local,
    )  # fmt: skip


def endpoint(order: Order) -> SearchEndpoint:
    """`search:URL`; option `timeout_s`."""
    if not order.argument.startswith(("http://", "https://")):
        raise ScenarioError(
            f"seat '{order.seat}': expected search:http://HOST/PATH, got search:{order.argument}"
        )
    return SearchEndpoint(url=order.argument, timeout_s=_number(order, "timeout_s", 30.0))


def words(text: str) -> list[str]:
    """The words of a text that are indexed: lower case, plural s off, no function words."""
    found = (word for word in _WORD.findall(text.lower()) if word not in _STOP)
    return [word[:-1] if len(word) > 3 and word[-1] == "s" != word[-2] else word for word in found]


def index_folder(key: str) -> Path:
    """Where an index is kept: under MARKETEVAL_CACHE, or the user's cache."""
    base = os.environ.get(CACHE) or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "marketeval"
    )
    return Path(base) / "indexes" / hashlib.sha256(key.encode()).hexdigest()[:32]


def _vectors(embedder: Embedder, shelf: Mapping[str, str]) -> Floats:
    key = f"dense {embedder.name} {embedder.sha256} {content_hash(shelf)}"
    folder = index_folder(key)
    if (folder / "done").is_file():
        kept: Floats = np.load(folder / "vectors.npy")
        return kept
    embed: Callable[[Sequence[str]], Floats] = getattr(embedder, "embed_corpus", embedder.embed)
    vectors = embed(list(shelf.values()))
    _keep(folder, lambda: np.save(folder / "vectors.npy", vectors))
    return vectors


def _keep(folder: Path, save: Callable[[], object]) -> None:
    """Keep an index where that is possible; a cache that cannot be written is no error."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save()
        (folder / "done").touch()
    except OSError:
        return


def _ordered(places: NDArray[np.int64], scores: Floats) -> tuple[NDArray[np.int64], Floats]:
    """By score, equal scores by the order of the corpus."""
    order = np.lexsort((places, -scores), axis=1)
    return np.take_along_axis(places, order, 1), np.take_along_axis(scores, order, 1)


def _corpus(order: Order) -> tuple[dict[str, str], dict[str, str]]:
    """The documents of all files of a seat, and the hash of each file."""
    shelf: dict[str, str] = {}
    files: dict[str, str] = {}
    argument = order.argument.partition("#")[0]
    if not argument:
        raise ScenarioError(f"seat '{order.seat}': expected a corpus, such as bm25:docs.jsonl")
    for name in argument.split("+"):
        path = Path(name)
        documents = read_corpus(path)
        twice = next((one for one in documents if one in shelf), None)
        if twice is not None:
            raise DataError(f"{path}: document '{twice}' stands in another file of this seat too")
        shelf |= documents
        files[str(path)] = _file_hash(path)
    return shelf, files


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _number(order: Order, name: str, default: float, others: tuple[str, ...] = ()) -> float:
    _known(order, (name, *others))
    value = order.options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e12:
        raise ScenarioError(f"seat '{order.seat}', option {name}: expected a number from 0")
    return float(value)


def _known(order: Order, known: tuple[str, ...]) -> None:
    for name in order.options:
        if name not in known:
            raise UnknownNameError(f"option of seat '{order.seat}'", name, known)
