"""Agents by their short text: `bernoulli:0.6`, `recorded:table.csv#gpt-4o`, `python:mine:Agent`.

The part before the first colon names the maker; it gets the rest, the seat's options and the
recorded answers at hand. Packages outside add makers through the entry point group
`marketeval.agents`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from marketeval.actions.information import AnswerTable
from marketeval.agents.bernoulli import Bernoulli
from marketeval.agents.options import number, only_options
from marketeval.agents.recorded import Recorded
from marketeval.core.errors import ScenarioError, UnknownNameError
from marketeval.core.market import Agent
from marketeval.core.registry import Registry

if TYPE_CHECKING:
    from marketeval.llm.calls import Calls


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a maker is told: which seat, the text after the name, the options, the tables, and the
    calls of the run, through which models are asked."""

    seat: str
    argument: str
    options: Mapping[str, Any]  # any: whatever the scenario's YAML held
    text: str = ""  # the whole name
    tables: Mapping[str, AnswerTable] = field(default_factory=dict)
    run: Calls | None = None

    @cached_property
    def calls(self) -> Calls:
        """What models are asked through: the calls of the run, else some that nobody records."""
        from marketeval.llm.calls import Calls

        return self.run or Calls()


Maker = Callable[[Order], Agent]
FIXED = {"immediate", "deterministic", "privileged"}  # what a scenario may not change

AGENTS: Registry[Maker] = Registry(
    "agent",
    {
        "bernoulli": "marketeval.agents.registry:bernoulli",
        "recorded": "marketeval.agents.registry:recorded",
        "python": "marketeval.agents.registry:python",
        "openai": "marketeval.agents.models:model",
        "openrouter": "marketeval.agents.models:model",
        "http": "marketeval.agents.models:model",
        "https": "marketeval.agents.models:model",
        "local": "marketeval.agents.models:model",
        "judge": "marketeval.agents.models:judge",
        "remote": "marketeval.agents.models:remote",
        "person": "marketeval.agents.models:person",
        "heuristic": "marketeval.agents.registry:heuristic",
        "embedder": "marketeval.agents.embedder:make",
        "run": "marketeval.agents.retriever:run",
        "bm25": "marketeval.agents.retriever:bm25",
        "dense": "marketeval.agents.retriever:dense",
        "search": "marketeval.agents.retriever:endpoint",
        "extractive": "marketeval.agents.extractive:make",
    },
)


def make_agent(
    text: str,
    *,
    seat: str,
    options: Mapping[str, Any] | None = None,  # any: as in Order
    tables: Mapping[str, AnswerTable] | None = None,
    calls: Calls | None = None,
) -> Agent:
    """The agent that a short text names, ready to fill a seat.

    `calls` is what the run's models are asked through; without it, calls are not recorded.
    """
    name, _, argument = text.partition(":")
    if not argument and "#" in name:
        name, _, argument = name.partition("#")
        argument = f"#{argument}"
    if name not in AGENTS:
        raise UnknownNameError(f"agent of seat '{seat}'", name, AGENTS)
    return AGENTS[name](
        Order(
            seat=seat,
            argument=argument,
            options=options or {},
            text=text,
            tables=tables or {},
            run=calls,
        )
    )


def bernoulli(order: Order) -> Agent:
    """`bernoulli:RATE`: right with that probability; options fixed, cost_usd, latency_s."""
    known = ("fixed", "cost_usd", "latency_s")
    only_options(order.seat, order.options, known)
    rate = number(order.argument, f"seat '{order.seat}': expected bernoulli:RATE", 0.0, 1.0)
    cost, latency = (
        None
        if order.options.get(name) is None
        else number(order.options[name], f"seat '{order.seat}', option {name}", 0.0, 1e12)
        for name in ("cost_usd", "latency_s")
    )
    fixed = order.options.get("fixed", False)
    if not isinstance(fixed, bool):
        raise ScenarioError(f"seat '{order.seat}', option fixed: expected true or false")
    return Bernoulli(rate=rate, fixed=fixed, cost_usd=cost, latency_s=latency)


def recorded(order: Order) -> Agent:
    """`recorded`, `recorded#MODEL` or `recorded:FILE#MODEL`: the answers in a table of outcomes."""
    only_options(order.seat, order.options, ())
    model = order.argument.partition("#")[2] or order.seat
    if not order.tables:
        raise ScenarioError(
            f"seat '{order.seat}' needs recorded answers: give a table with --outcomes FILE, or "
            f"another agent with --seat {order.seat}=AGENT"
        )
    if model not in order.tables:
        raise UnknownNameError(
            f"model of seat '{order.seat}'",
            model,
            order.tables,
            hint=f" (name one with --seat {order.seat}=recorded#MODEL)",
        )
    return Recorded(order.tables[model])


def python(order: Order) -> Agent:
    """`python:package.module:Class`: an agent of the caller's own, made with the seat's options."""
    module, _, name = order.argument.rpartition(":")
    if not module:
        raise ScenarioError(
            f"seat '{order.seat}': expected python:package.module:Class, "
            f"got python:{order.argument}"
        )
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())  # the caller's own file is found wherever it is run from
    try:
        made = getattr(importlib.import_module(module), name)(**order.options)
    except Exception as error:  # whatever code outside this package does
        raise ScenarioError(
            f"seat '{order.seat}': python:{order.argument}: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(made, Agent):
        raise ScenarioError(
            f"seat '{order.seat}': {name} is no agent; expected an async method act(request) and "
            "the attributes immediate, deterministic and privileged"
        )
    return made


HEURISTICS: Registry[Callable[..., Agent]] = Registry(
    "heuristic",
    {
        path.stem.rstrip("_").replace("_", "-"): f"marketeval.agents.heuristic.{path.stem}:Agent"
        for path in sorted((Path(__file__).parent / "heuristic").glob("*.py"))
        if path.stem not in ("__init__", "base")
    },
)


def heuristic(order: Order) -> Agent:
    """`heuristic:NAME`: a scripted agent of the zoo; options are its own fields."""
    made = HEURISTICS[order.argument]
    known = {one.name for one in fields(cast(Any, made))} - FIXED  # any: each is a dataclass
    only_options(order.seat, order.options, tuple(sorted(known)))
    for name, value in order.options.items():
        wanted = type(next(o.default for o in fields(cast(Any, made)) if o.name == name))
        if not isinstance(value, wanted) and not (wanted is float and type(value) is int):
            raise ScenarioError(
                f"seat '{order.seat}', option {name}: expected {wanted.__name__}, got {value!r}"
            )
    return made(**order.options)
