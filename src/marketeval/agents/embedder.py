"""The seat that turns texts into vectors: an embedder behind the agents' contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from marketeval.actions.common import Vectors
from marketeval.agents.registry import Order
from marketeval.core.errors import RunError, UsageError
from marketeval.core.market import Request

if TYPE_CHECKING:
    from marketeval.llm.embedding import Embedder


@dataclass(frozen=True, slots=True)
class EmbedderSeat:
    """Answers `embed` requests. A local embedder needs no recording and no event loop."""

    embedder: Embedder
    privileged: bool = False

    @property
    def immediate(self) -> bool:
        """Whether it answers without waiting."""
        return self.embedder.local

    @property
    def deterministic(self) -> bool:
        """Whether its answers need not be recorded."""
        return self.embedder.local

    def check(self) -> None:
        """Whether it is there, where it is behind an endpoint; UsageError if it is not."""
        if not self.embedder.local:
            try:
                self.embedder.embed(["ready"])
            except RunError as error:
                raise UsageError(f"no embedder at {self.embedder.name}: {error}") from None

    async def act(self, request: Request) -> Vectors:
        """The vectors of the batch's texts."""
        texts = list(request.batch["text"])
        if self.embedder.local:
            values = self.embedder.embed(texts)
        else:
            import asyncio

            values = await asyncio.to_thread(self.embedder.embed, texts)
        return Vectors(values=values, embedder=self.embedder.name, sha256=self.embedder.sha256)


def make(order: Order) -> EmbedderSeat:
    """`embedder:lexical`, `embedder:use` or `embedder:http://HOST/v1#MODEL`."""
    from marketeval.llm.embedding import make_embedder

    return EmbedderSeat(make_embedder(order.argument))
