"""A generator behind a language model: a question in, an answer in words out, to be graded.

The prompt, the pool of samples and so the calls are the same in the static evaluation
(`LLMGenerator.answer`) and in the market (`act`): what one has paid for, the other finds in the
cassette.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from marketeval.actions.information import Answers
from marketeval.agents.chat import Chat, members
from marketeval.agents.wording import Prompt
from marketeval.core.errors import ScenarioError
from marketeval.core.market import Request
from marketeval.llm.calls import Call, all_of
from marketeval.llm.client import CallError, Message

RECORDED: Literal["recorded"] = "recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMGenerator:
    """Answers each question of a batch by one call.

    `samples` is how many answers to a question there may be; which one a user gets is drawn. A
    request whose batch has a column `context` (documents per question) is answered from it.
    `latency_s` is what users feel: None (unknown), a declared number of seconds, or RECORDED: what
    was measured when the call was made. Measured times differ between two runs of the same calls,
    so they enter the log only where asked for; from one cassette they are always the same.
    """

    chat: Chat
    plain: Prompt
    from_context: Prompt
    samples: int = 1
    latency_s: float | Literal["recorded"] | None = None
    immediate: bool = False
    deterministic: bool = False
    privileged: bool = False
    keeps_its_calls: bool = True

    async def act(self, request: Request) -> Answers:
        """The answers of a batch; one that failed for good has no text and a reason."""
        asked = self.questions(request)
        contexts = request.batch.get("context") or [()] * len(asked)
        answers = await all_of(
            self._try(question, sample, context)
            for question, sample, context in zip(
                asked, members(request, self.samples), contexts, strict=True
            )
        )
        calls = [one if isinstance(one, Call) else None for one in answers]
        costs = [one and one.cost_usd for one in calls]
        return Answers(
            score=np.full(len(calls), np.nan),
            text=[one.completion.text if one else "" for one in calls],
            cost_usd=np.array([np.nan if cost is None else cost for cost in costs]),
            latency_s=self._latency(calls),
            reason=["" if isinstance(one, Call) else one for one in answers],
        )

    def questions(self, request: Request) -> Sequence[str]:
        """The questions of a batch in words.

        Raises
        ------
        ScenarioError : the market has none
        """
        asked: Sequence[str] | None = request.batch.get("asked")
        if asked is None:
            raise ScenarioError(
                f"seat '{self.chat.seat}' answers in words, so it needs the questions in words: "
                "give them with their texts"
            )
        return asked

    async def answer(
        self, question: str, *, sample: str = "0", context: Sequence[str] = ()
    ) -> Call:
        """One answer of the pool, as the static evaluation asks for it.

        Raises
        ------
        CallError : it failed for good
        """
        return await self.chat.ask(self.messages(question, context), sample=sample)

    def messages(self, question: str, context: Sequence[str] = ()) -> list[Message]:
        """What the model is sent for a question."""
        if context:
            documents = "\n\n".join(f"[{n}] {text}" for n, text in enumerate(context, 1))
            return [Message("user", self.from_context.fill(question=question, context=documents))]
        return [Message("user", self.plain.fill(question=question))]

    def _latency(self, calls: Sequence[Call | None]) -> NDArray[np.float64] | None:
        if self.latency_s is None:
            return None
        if self.latency_s == RECORDED:
            return np.array([np.nan if one is None else one.latency_s for one in calls])
        return np.array([np.nan if one is None else self.latency_s for one in calls])

    async def _try(self, question: str, sample: str, context: Sequence[str]) -> Call | str:
        """The call, or why it failed for good."""
        try:
            return await self.chat.ask(self.messages(question, context), sample=sample)
        except CallError as error:
            return error.reason
