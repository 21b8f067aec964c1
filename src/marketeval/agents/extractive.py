"""A generator without a model: it quotes the sentences of its context nearest to the question."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from marketeval.actions.information import Answers
from marketeval.agents.options import number
from marketeval.agents.registry import Order
from marketeval.core.errors import UnknownNameError
from marketeval.core.market import Request

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Extractive:
    """Ranks the documents of its context by the words they share with the question.

    Each shared word counts once, divided by the number of documents of the context that have it;
    equal documents stay in the order of the context. It cites all of them in that order, and its
    answer is the best sentence of each of the first `quotes`.
    """

    quotes: int = 2
    rerank: bool = True
    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False

    async def act(self, request: Request) -> Answers:
        """The answers to a batch; without context there is nothing to quote."""
        answers = [
            self._answer(question, context)
            for question, context in zip(
                request.batch["asked"], request.batch["context"], strict=True
            )
        ]
        return Answers(
            score=np.full(len(answers), np.nan),
            text=[text for text, _ in answers],
            cited=[cited for _, cited in answers],
        )

    def _answer(self, question: str, context: list[str]) -> tuple[str, list[int]]:
        asked = set(_WORD.findall(question.lower()))
        held = [set(_WORD.findall(text.lower())) & asked for text in context]
        spread = {word: sum(word in one for one in held) for word in asked}
        worth = [sum(1.0 / spread[word] for word in sorted(one)) for one in held]
        order = sorted(range(len(context)), key=lambda one: (-worth[one], one))
        if not self.rerank:
            order = list(range(len(context)))
        quoted = [self._best_sentence(context[one], asked) for one in order[: self.quotes]]
        return " ".join(quoted), order

    @staticmethod
    def _best_sentence(text: str, asked: set[str]) -> str:
        sentences = _SENTENCE.split(text.strip())
        return max(sentences, key=lambda one: len(asked & set(_WORD.findall(one.lower()))))


def make(order: Order) -> Extractive:
    """`extractive`; options `quotes`, `rerank`."""
    for name in order.options:
        if name not in ("quotes", "rerank"):
            raise UnknownNameError(f"option of seat '{order.seat}'", name, ("quotes", "rerank"))
    quotes = number(order.options.get("quotes", 2), f"seat '{order.seat}', option quotes", 0, 100)
    return Extractive(quotes=int(quotes), rerank=bool(order.options.get("rerank", True)))
