"""Small random information-access markets, and ways to look into them while they are played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
from hypothesis import strategies as st

from marketeval.actions.information import Answers, AnswerTable
from marketeval.agents.bernoulli import Bernoulli
from marketeval.agents.recorded import Recorded
from marketeval.core.drive import lockstep
from marketeval.core.log import EventLog
from marketeval.markets.information import market as market_module
from marketeval.markets.information.market import Generator, InformationMarket, Questions
from marketeval.markets.information.population import Population
from marketeval.markets.information.scenario import Information

NAMES = ("gemini", "qwen3", "kimi", "gptoss", "deepseek", "llama", "grok", "aya", "zephyr")
PAIRS = [
    *[("epsilon_greedy", kind) for kind in ("drift", "exponential", "mean", "beta")],
    *[("logit", kind) for kind in ("drift", "exponential", "mean", "beta")],
    ("proportional", "drift"),
    ("proportional", "beta"),
    ("ucb1", "mean"),
    ("thompson", "beta"),
]


@dataclass(frozen=True)
class Flaky:
    """A coin that breaks down at every third step, and gives nonsense at every fifth."""

    immediate: bool = True
    deterministic: bool = True
    privileged: bool = False

    async def act(self, request):
        if request.step % 3 == 2:
            raise TimeoutError("too slow")
        slots = request.batch["slot"]
        if request.step % 5 == 4:
            return Answers(score=np.full(slots.size, 1.5))
        return Answers(score=np.round(request.draws["outcome"].uniform_at(request.step, slots), 1))


@dataclass(frozen=True)
class World:
    """A market with its agents, ready to be played."""

    spec: Information
    generators: Sequence[Generator]
    questions: Questions
    agents: Mapping[str, Any]

    @property
    def market(self) -> InformationMarket:
        return InformationMarket(
            spec=self.spec, generators=self.generators, questions=self.questions
        )

    def play(self, seed: int = 1, **options: Any) -> EventLog:
        log = EventLog(InformationMarket.events)
        lockstep(options.pop("market", self.market), self.agents, seed=seed, log=log, **options)
        return log

    def with_spec(self, **changes: Any) -> World:
        return replace(self, spec=self.spec.model_copy(update=changes))


def a_world(
    rates: Mapping[str, float],
    *,
    enters: Mapping[str, int] | None = None,
    agents: Mapping[str, Any] | None = None,
    pool: int = 20,
    topics: int = 1,
    **spec: Any,
) -> World:
    """A world of Bernoulli agents, in configuration order."""
    return World(
        spec=Information.model_validate(spec),
        generators=[
            Generator(seat=seat, label=seat, enters=(enters or {}).get(seat, 0)) for seat in rates
        ],
        questions=Questions(
            items=[f"q{number}" for number in range(pool)],
            topics=np.arange(pool) % topics,
            topic_names=[f"t{number}" for number in range(topics)],
        ),
        agents={**{seat: Bernoulli(rate) for seat, rate in rates.items()}, **(agents or {})},
    )


def interactions(log: EventLog) -> pl.DataFrame:
    """All interactions with the seats' names."""
    names = log.scan("generator").select("agent", "seat")
    return log.scan("interaction").join(names, on="agent", maintain_order="left").collect()


def asked(log: EventLog) -> pl.DataFrame:
    """Step, slot, user and question of everybody who came, served or not."""
    columns = ["step", "slot", "user", "question"]
    both = [log.scan(kind).select(columns) for kind in ("interaction", "unserved")]
    return pl.concat(both).sort("step", "slot").collect()


@contextmanager
def watched() -> Iterator[list[Population]]:
    """The populations made inside; each notes its state at every wave in `waves`."""
    made: list[Population] = []

    class Watched(Population):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.waves: list[dict[str, Any]] = []
            made.append(self)

        def choose(self, users, rows, slots, forced, **options):  # type: ignore[no-untyped-def]
            found = super().choose(users, rows, slots, forced, **options)
            self.waves.append(
                {
                    "step": options["step"],
                    "slots": slots.copy(),
                    "rows": rows.copy(),
                    "users": users.copy(),
                    "first": self.first.copy(),
                    "second": self.second.copy(),
                    "shares": options["shares"].copy(),
                    "chosen": found[0].copy(),
                }
            )
            return found

    with mock.patch.object(market_module, "Population", Watched):
        yield made


@st.composite
def worlds(
    draw: Any,
    *,
    plain: bool = False,
    timing: str | None = None,
    popularity: bool = True,
    pairs: Sequence[tuple[str, str]] = tuple(PAIRS),
) -> World:
    """Worlds of 2 to 9 agents; `plain` ones have no interventions, exits, inertia or leavers."""
    seats = draw(st.permutations(NAMES))[: draw(st.integers(2, 9))]
    population, horizon = draw(st.integers(1, 12)), draw(st.integers(1, 25))
    replacement = draw(st.booleans())
    topics, pool = draw(st.integers(1, 3)), draw(st.integers(1, 12))
    per = draw(st.sampled_from(["user", "topic"]))

    def character() -> dict[str, Any]:
        rule, kind = draw(st.sampled_from(list(pairs)))
        minds = draw(st.booleans())
        return {
            "choice": {
                "rule": rule,
                "inertia": 0.0 if plain else draw(st.sampled_from([0.0, 0.3])),
                "portfolio": draw(st.sampled_from([1, 1, 2, 5])),
                "popularity": draw(st.sampled_from([0.0, 0.5])) if popularity else 0.0,
            },
            "learning": {
                "kind": kind,
                "per": per,
                "rate": draw(st.sampled_from([0.1, 0.5])),
                "forgetting": draw(st.sampled_from([0.0, 0.0, 0.05])),
            },
            "utility": {
                "cost": 5.0 * minds,
                "latency": 0.1 * minds,
                "trust": draw(st.sampled_from([0.0, 0.5])),
            },
        }

    timing = timing or draw(st.sampled_from(["synchronous", "asynchronous"]))
    spec: dict[str, Any] = {
        "horizon": horizon,
        "users": {
            "population": population,
            "per_step": draw(st.integers(1, 8 if replacement else min(8, population))),
            "replacement": replacement,
            "arrivals": 0.0 if plain else draw(st.sampled_from([0.0, 0.0, 0.4, 1.5])),
        },
        **character(),
        "ties": draw(st.sampled_from(["configuration", "random"])),
        "on_missing": draw(st.sampled_from(["skip", "skip", 0.0, 0.5])),
        "timing": timing,
        "stagger": draw(st.sampled_from([None, 1, 3])) if timing == "asynchronous" else None,
    }
    if draw(st.booleans()):
        spec["segments"] = [
            {
                "name": f"segment{number}",
                "weight": draw(st.sampled_from([1.0, 2.5])),
                "activity": draw(st.sampled_from([1.0, 3.0])),
                "preferences": draw(st.sampled_from([{}, {seats[0]: 2.0, seats[1]: 1.0}])),
                **character(),
            }
            for number in range(draw(st.integers(1, 3)))
        ]
    if not plain and draw(st.booleans()):
        spec["outside"] = {"utility": 0.4, "patience": draw(st.integers(1, 3)), "rate": 0.5}
    if not plain:
        spec["interventions"] = [
            draw(_interventions(seats, horizon)) for _ in range(draw(st.integers(0, 5)))
        ]
    enters = {seat: draw(st.integers(0, horizon - 1)) for seat in seats[2:] if draw(st.booleans())}
    kinds = ["coin", "fixed", "table"] + ([] if plain else ["flaky"])
    agents = {
        seat: _agent(draw(st.sampled_from(kinds)), draw(st.integers(0, 1000)), pool)
        for seat in seats
    }
    world = a_world(
        dict.fromkeys(seats, 0.5), enters=enters, agents=agents, pool=pool, topics=topics, **spec
    )
    return world


@st.composite
def _interventions(draw: Any, seats: Sequence[str], horizon: int) -> dict[str, Any]:
    kind = draw(st.sampled_from(["entry", "exit", "price", "latency", "quality", "outage"]))
    change: dict[str, Any] = {
        "kind": kind,
        "agent": draw(st.sampled_from(list(seats))),
        "step": draw(st.integers(0, horizon - 1)),
    }
    if kind in ("price", "latency"):
        change["factor"] = draw(st.sampled_from([0.0, 0.5, 3.0]))
    elif kind == "quality":
        change["change"] = draw(st.sampled_from([-1.0, -0.3, 0.4]))
    elif kind == "outage":
        change["steps"] = draw(st.integers(1, 5))
        change["mode"] = draw(st.sampled_from(["fails", "hidden"]))
    return change


def _agent(kind: str, number: int, pool: int) -> Any:
    if kind == "flaky":
        return Flaky()
    if kind != "table":
        rate = (number % 11) / 10
        return Bernoulli(rate, fixed=kind == "fixed", cost_usd=rate / 50, latency_s=1.0 + rate)
    numbers = np.random.default_rng(number)
    samples = numbers.integers(1, 4, size=pool)
    rows = int(samples.sum())
    grade = numbers.integers(0, 3, size=rows).astype(np.int8)
    score = (grade == 1).astype(float)
    score[numbers.random(rows) < 0.1] = np.nan
    return Recorded(
        AnswerTable(
            starts=np.concatenate([[0], np.cumsum(samples)]),
            score=score,
            grade=grade,
            cost_usd=numbers.random(rows) / 50,
            latency_s=numbers.random(rows) * 5,
        )
    )
