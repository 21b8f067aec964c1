"""A seat behind a chat model: apart from its maker, since many ask whether a seat is one where no
model is, and what a model needs takes long to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from marketeval.actions.information import Choice
from marketeval.core.market import Action, Request

if TYPE_CHECKING:
    from marketeval.agents.chat import Chat
    from marketeval.agents.llm_generator import LLMGenerator
    from marketeval.agents.llm_seat import LLMSeat
    from marketeval.agents.llm_user import LLMUser


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSeat:
    """A model in any seat: it answers questions in words, chooses as a user whom to ask, and
    decides whatever else in JSON."""

    chat: Chat
    generator: LLMGenerator
    user: LLMUser
    player: LLMSeat
    immediate: bool = False
    deterministic: bool = False
    privileged: bool = False
    keeps_its_calls: bool = True

    async def act(self, request: Request) -> Action:
        """As a generator where the decision is `answer`, as a user where a `Choice` is asked for,
        else as a player."""
        if request.decision == "answer":
            return await self.generator.act(request)
        if request.action is Choice:
            return await self.user.act(request)
        return await self.player.act(request)
