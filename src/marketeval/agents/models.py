"""Makers of the seats that ask somebody: chat models, judges, decision endpoints, people.

openai:MODEL, openrouter:MODEL, http://HOST/v1#MODEL, local:smollm2    a seat behind a model
judge:exact, judge:match, judge:f1, judge:number                      a judge by rule
judge:three-way, judge:ten, judge:reference-free                      a judge behind `model`
judge:panel                                                           several, under `judges`
remote:http://HOST, person
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from marketeval.agents.chat import OPTIONS, chat, pool_size
from marketeval.agents.judge import FORMS, RULES, LLMJudge, Panel, RuleJudge
from marketeval.agents.llm_generator import RECORDED, LLMGenerator
from marketeval.agents.llm_seat import LLMSeat
from marketeval.agents.llm_user import LLMUser
from marketeval.agents.model_seat import ModelSeat
from marketeval.agents.options import number, only_options
from marketeval.agents.person import Person
from marketeval.agents.registry import Order, make_agent
from marketeval.agents.remote import remote_agent
from marketeval.agents.wording import prompt
from marketeval.core.errors import ScenarioError, UnknownNameError
from marketeval.core.market import Agent

JUDGES = (*RULES, *FORMS, "panel")


def model(order: Order) -> Agent:
    """A chat model; options as `agents.chat`, and prompt, context_prompt, samples, latency_s
    (`recorded`, or declared seconds), max_length and max_items of what it decides, and
    privileged."""
    known = (
        *OPTIONS, "prompt", "context_prompt", "samples", "latency_s", "privileged", "max_length",
        "max_items",
    )  # fmt: skip
    only_options(order.seat, order.options, known)
    line = chat(order.text, seat=order.seat, options=order.options, calls=order.calls)
    told = order.options.get("privileged", False) is True
    generator = LLMGenerator(
        chat=line,
        plain=prompt(str(order.options.get("prompt", "answer-v1")), places=("question",)),
        from_context=prompt(
            str(order.options.get("context_prompt", "answer-from-context-v1")),
            places=("question", "context"),
        ),
        samples=pool_size(order.seat, order.options),
        latency_s=_latency(order),
    )
    return ModelSeat(
        chat=line,
        generator=generator,
        user=LLMUser(chat=line),
        player=LLMSeat(
            chat=line, max_length=_bound(order, "max_length"), max_items=_bound(order, "max_items")
        ),
        privileged=told,
    )


def judge(order: Order) -> Agent:
    """`judge:KIND`; a model's judge takes model, prompt, samples and the options of a chat."""
    kind, options = order.argument, order.options
    if kind in RULES:
        only_options(order.seat, options, ())
        return RuleJudge(rule=RULES[kind])
    if kind == "panel":
        only_options(order.seat, options, ("judges",))
        return _panel(order)
    if kind not in FORMS:
        raise UnknownNameError("judge", kind, JUDGES)
    only_options(order.seat, options, (*OPTIONS, "model", "prompt", "samples"))
    name = options.get("model")
    if not isinstance(name, str):
        raise ScenarioError(f"seat '{order.seat}': judge:{kind} needs the option model, such as "
                            "openai:MODEL or http://HOST/v1#MODEL")  # fmt: skip
    form = FORMS[kind]
    settings = {"temperature": 0.0, **options}
    return LLMJudge(
        chat=chat(name, seat=order.seat, options=settings, calls=order.calls, max_tokens=64),
        form=form,
        prompt=prompt(str(options.get("prompt", form.prompt)), places=form.places),
        samples=pool_size(order.seat, options),
    )


def remote(order: Order) -> Agent:
    """`remote:http://HOST`; options timeout_s and privileged."""
    only_options(order.seat, order.options, ("timeout_s", "privileged"))
    where = f"seat '{order.seat}', option timeout_s"
    return remote_agent(
        order.argument,
        timeout_s=number(order.options.get("timeout_s", 60.0), where, 0.001, 1e5),
        privileged=order.options.get("privileged", False) is True,
    )


def person(order: Order) -> Agent:
    """`person`: somebody at the terminal."""
    only_options(order.seat, order.options, ())
    return Person()


def _bound(order: Order, name: str) -> int | None:
    """An option that is a whole number from 1, or None where it is not given."""
    value = order.options.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ScenarioError(
            f"seat '{order.seat}', option {name}: expected a whole number from 1, got {value!r}"
        )
    return value


def _latency(order: Order) -> float | Literal["recorded"] | None:
    given = order.options.get("latency_s")
    if given is None or given == RECORDED:
        return RECORDED if given else None
    where = f"seat '{order.seat}', option latency_s ('recorded' or seconds)"
    return number(given, where, 0.0, 1e12)


def _panel(order: Order) -> Panel:
    """`judges`: a mapping from names to `agent` and `options`, as seats are (any: YAML)."""
    given = order.options.get("judges")
    if not isinstance(given, Mapping):
        raise ScenarioError(f"seat '{order.seat}': judge:panel needs the option judges, a mapping")
    made = {}
    for name, one in given.items():
        entry: dict[str, Any] = {"agent": one} if isinstance(one, str) else dict(one)
        made[str(name)] = make_agent(
            str(entry.get("agent", "")),
            seat=f"{order.seat}/{name}",
            options=entry.get("options") or {},
            calls=order.calls,
        )
    return Panel(judges=made)
