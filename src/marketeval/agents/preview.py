"""What a seat's model would be sent for a request, without calling anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from marketeval.actions.information import Choice
from marketeval.agents import llm_seat, llm_user
from marketeval.agents.chat import Chat
from marketeval.agents.judge import LLMJudge, Panel
from marketeval.agents.model_seat import ModelSeat
from marketeval.agents.wording import Prompt
from marketeval.core.market import Agent, Request
from marketeval.llm.client import Message
from marketeval.llm.structured import strict


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """One call that would be made: by whom, to which model, the messages, the schema if any.

    `prompt` is the name and hash of the prompt where it is data of ours.
    """

    seat: str
    model: str
    messages: tuple[Message, ...]
    schema: dict[str, Any] | None = None  # any: a JSON schema
    prompt: str = ""


def previews(agent: Agent, request: Request) -> Iterator[Preview]:
    """The calls that an agent would make for a request; none where it asks no model."""
    batch = request.batch
    if isinstance(agent, Panel):
        for one in agent.judges.values():
            yield from previews(one, request)
    elif isinstance(agent, LLMJudge):
        for question, text, golds in zip(batch["asked"], batch["text"], batch["gold"], strict=True):
            told = agent.messages(question, text, golds)
            yield _preview(agent.chat, told, prompt=f"{agent.prompt.name} {agent.prompt.hash}")
    elif isinstance(agent, ModelSeat) and request.decision == "answer":
        generator = agent.generator
        asked = generator.questions(request)
        contexts = batch.get("context") or [()] * len(asked)
        for question, context in zip(asked, contexts, strict=True):
            used = generator.from_context if context else generator.plain
            told = generator.messages(question, context)
            yield _preview(agent.chat, told, prompt=f"{used.name} {used.hash}")
    elif isinstance(agent, ModelSeat) and request.action is Choice:
        for row in range(len(batch["slot"])):
            told = llm_user.messages(request, row)
            yield _preview(agent.chat, told, schema=strict(llm_user.schema(request, row)))
    elif isinstance(agent, ModelSeat):
        schema = strict(llm_seat.schema(request))
        yield _preview(agent.chat, llm_seat.messages(request), schema=schema)


def prompts_of(agent: Agent) -> Iterator[Prompt]:
    """The prompts that are data, of a seat that answers or grades; for the run's manifest."""
    if isinstance(agent, Panel):
        for one in agent.judges.values():
            yield from prompts_of(one)
    elif isinstance(agent, LLMJudge):
        yield agent.prompt
    elif isinstance(agent, ModelSeat):
        yield agent.generator.plain
        yield agent.generator.from_context


def _preview(
    chat: Chat,
    messages: list[Message],
    *,
    schema: dict[str, Any] | None = None,  # any: a JSON schema
    prompt: str = "",
) -> Preview:
    system = chat.parameters.system
    own = [Message("system", system)] if system else []
    return Preview(
        seat=chat.seat,
        model=f"{chat.model.endpoint}#{chat.model.name}",
        messages=(*own, *messages),
        schema=schema,
        prompt=prompt,
    )
