"""Coupled markets as a frozen specification: populations, edges, prices, capacities.

What stands at a population beside its members holds for each of them; a member's own value wins.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from marketeval.choice.preference import KINDS
from marketeval.choice.rules import BUILT_IN, RULES
from marketeval.core.errors import ScenarioError, UnknownNameError
from marketeval.core.spec import Spec
from marketeval.mechanisms.governance import Governance, governance, parse_edge

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Finite = Annotated[float, Field(ge=-1e9, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**7)]
ByTopic = Share | dict[str, Share]

LINUCB, UNIFORM = "linucb", "uniform"
POLICIES = (*BUILT_IN, LINUCB, UNIFORM)
LEARNS = {
    "epsilon_greedy": "mean", "proportional": "drift", "logit": "mean", "ucb1": "mean",
    "thompson": "beta", LINUCB: "mean", UNIFORM: "mean",
}  # fmt: skip


class Choosing(Spec):
    """How an agent selects and what it learns from the credit it gets.

    `parameter` is the policy's own (epsilon, temperature, UCB's exploration, LinUCB's alpha); `per`
    topic keeps a worth for each topic; `cost` weighs a dollar of the chooser's own spending;
    `exclusive` names the only targets it serves (vertical integration; none named is open).
    """

    policy: str = "epsilon_greedy"
    parameter: NotNegative | None = None
    learning: str | None = None
    rate: Share = 0.1
    floor: NotNegative = 0.01
    forgetting: Share = 0.0
    prior: Finite = 0.0
    per: Literal["all", "topic"] = "all"
    cost: NotNegative = 0.0
    exclusive: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        if self.policy not in POLICIES:
            raise UnknownNameError("policy", self.policy, POLICIES)
        if self.kind not in KINDS:
            raise UnknownNameError("kind of learning", self.kind, KINDS)
        if self.policy in BUILT_IN and self.kind not in RULES[self.policy].LEARNING:
            raise ScenarioError(
                f"policy '{self.policy}' cannot be paired with learning '{self.kind}'; valid: "
                f"{', '.join(RULES[self.policy].LEARNING)}"
            )
        low, high = (0.0, 1e9) if self.policy not in BUILT_IN else RULES[self.policy].RANGE
        if not low <= self.theta <= high:
            raise ScenarioError(
                f"policy '{self.policy}' takes a parameter from {low:g} to {high:g}, got "
                f"{self.theta:g}"
            )
        if self.policy == "logit" and self.theta == 0:
            raise ScenarioError("policy 'logit' takes a temperature above 0")
        return self

    @property
    def kind(self) -> str:
        """The kind of learning."""
        return self.learning or LEARNS[self.policy]

    @property
    def theta(self) -> float:
        """The policy's parameter."""
        if self.parameter is not None:
            return self.parameter
        return float(RULES[self.policy].DEFAULT) if self.policy in BUILT_IN else 1.0


class Behaviour(Spec):
    """Effects of section 4.1.2 of the paper, all off by default.

    popularity      bandwagon: adds this times a target's share so far (H. Leibenstein, Quarterly
                    Journal of Economics 64, 1950)
    exposure        mere exposure: adds this times ln(1 + times this user chose it) (R. B. Zajonc,
                    Current Directions in Psychological Science 10, 2001)
    framing         adds a constant to a target as it is presented (T. E. Nelson, Z. M. Oxley,
                    R. A. Clawson, Political Behavior 19, 1997)
    network         network externality: utility grows by this times the provider's share so far
                    (M. L. Katz, C. Shapiro, American Economic Review 75, 1985)
    switching_cost  what a user must gain by leaving the target of last time (P. Klemperer,
                    Quarterly Journal of Economics 102, 1987)
    """

    popularity: Finite = 0.0
    exposure: Finite = 0.0
    framing: dict[str, Finite] = {}
    network: Finite = 0.0
    switching_cost: NotNegative = 0.0


class Weights(Spec):
    """utility = quality Q - cost C - latency L; Q in [0, 1], C in dollars, L in seconds."""

    quality: Finite = 1.0
    cost: NotNegative = 0.0
    latency: NotNegative = 0.0


class Price(Spec):
    """Dollars per query, and per token of what is handed over."""

    query: NotNegative = 0.0
    token: NotNegative = 0.0


class Strategy(Spec):
    """How a generator retrieves.

    none       not at all
    naive      one target, once
    aggregate  `retrievers` targets at once
    agentic    up to `rounds` rounds, each with a new query, until `calls` calls were made, `enough`
               documents are there, or nothing new came

    `documents` limits what one retriever hands over, `total` the whole context; `router_top_k` is
    how many retrievers a router is asked for.
    """

    kind: Literal["none", "naive", "aggregate", "agentic"] = "naive"
    retrievers: Count = 1
    router_top_k: Count = 1
    documents: Count = 10
    total: Count | None = None
    rounds: Count = 2
    calls: Count | None = None
    enough: Count | None = None

    @property
    def breadth(self) -> int:
        """Targets per round."""
        return self.retrievers if self.kind in ("aggregate", "agentic") else 1

    @property
    def most_rounds(self) -> int:
        """Rounds at most."""
        return {"none": 0, "agentic": self.rounds}.get(self.kind, 1)


class Adaptation(Spec):
    """A lever that an agent sets anew `every` steps, from its own feedback alone.

    `bandit` policies are those of choosers; `best_response` takes the option whose last try paid
    most, each tried once first. `goal` is what is fed back, per step: profit or revenue in dollars
    over `scale`, the number of calls over `scale`, or the mean credit of the period.
    """

    lever: Literal["price", "depth", "focus"]
    options: tuple[float | str, ...] = Field(min_length=2)
    policy: Literal["epsilon_greedy", "ucb1", "logit", "best_response"] = "ucb1"
    parameter: NotNegative | None = None
    every: Count = 20
    goal: Literal["profit", "revenue", "traffic", "utility"] = "profit"
    scale: Annotated[float, Field(gt=0, le=1e9)] = 1.0

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for one in self.options:
            words = self.lever == "focus"
            if isinstance(one, str) != words or (not words and not 0 <= float(one) <= 1e9):
                what = "topic names" if words else "numbers from 0"
                raise ScenarioError(f"a lever '{self.lever}' has {what} as options, got {one!r}")
            if self.lever == "depth" and (float(one) < 1 or float(one) % 1):
                raise ScenarioError(f"a depth is a whole number from 1, got {one!r}")
        return self


class Service(Spec):
    """What anybody who is called has: price, running cost, latency, capacity, a promise.

    Capacity is in calls per step. Latency is latency_s + per_call_s (calls of the step - 1) +
    waiting. Whoever answers later than `promise_s` pays `penalty` dollars back.
    """

    label: str = ""
    price: Price = Price()
    cost: NotNegative = 0.0
    latency_s: NotNegative = 0.0
    per_call_s: NotNegative = 0.0
    capacity: Count | None = None
    overflow: Literal["reject", "queue", "degrade"] = "reject"
    patience: Annotated[int, Field(ge=0, le=10**6)] = 3
    promise_s: NotNegative | None = None
    penalty: NotNegative = 0.0
    budget: NotNegative | None = None
    exit_below: Share = 0.0
    exit_window: Count = 100


class Router(Spec):
    """Mediates; takes `fee` dollars from whoever is routed."""

    label: str = ""
    choose: Choosing = Choosing()
    fee: NotNegative = 0.0


class Generator(Service):
    """Answers. Without a seat of its own its answer is a declared response to the evidence e:

        q = closed_book + (ceiling - closed_book) e

    (each a number, or one per topic), wrong altogether at the rate `errors`; with `draw` it is
    right with probability q and wrong otherwise. `tokens` is the length of its answers, for prices;
    `profile` are words that a personalising retriever adds to its queries.
    """

    choose: Choosing = Choosing()
    strategy: Strategy = Strategy()
    closed_book: ByTopic = 0.0
    ceiling: ByTopic = 1.0
    errors: Share = 0.0
    draw: bool = False
    tokens: Count = 200
    profile: str = ""
    adapt: Adaptation | None = None


class Retriever(Service):
    """Supplies evidence: documents by its seat, or a declared worth (`evidence`, one or per topic).

    `topics` are those it serves (none named: all); `focus_gain` is how much nearer to 1 its
    declared evidence comes on the topic it focuses on, and how much it loses on others; `owns` are
    files that no other retriever may use; `personal` adds the caller's profile to the query;
    `noise` is the probability that a word of a query is lost on the way. `tokens` is the length of
    a document, for prices.
    """

    evidence: ByTopic | None = None
    topics: tuple[str, ...] = ()
    focus_gain: Share = 0.0
    owns: tuple[str, ...] = ()
    personal: bool = False
    noise: Share = 0.0
    tokens: Count = 100
    adapt: Adaptation | None = None


class Users(Spec):
    """A population of users: how many, how they choose, what they weigh, what they can spend."""

    role: Literal["user"]
    count: Count = 10
    choose: Choosing = Choosing()
    utility: Weights = Weights()
    budget: NotNegative | None = None
    documents: Count = 10
    behaviour: Behaviour = Behaviour()


class Routers(Spec):
    """A population of routers."""

    role: Literal["router"]
    members: dict[str, Router]


class Generators(Spec):
    """A population of generators."""

    role: Literal["generator"]
    members: dict[str, Generator]


class Retrievers(Spec):
    """A population of retrievers."""

    role: Literal["retriever"]
    members: dict[str, Retriever]


Population = Annotated[Users | Routers | Generators | Retrievers, Field(discriminator="role")]


class Drift(Spec):
    """From this step on the demand has these weights; between two such steps it moves evenly."""

    step: Annotated[int, Field(ge=0)]
    weights: dict[str, NotNegative]


class Demand(Spec):
    """Which questions are asked.

    `label` is the column of the questions that weights speak of (also their topic); `taxonomy`
    takes the weights of a shipped table; `replacement: false` goes through the pool in random
    order, again and again. `dates` is a column of days: at step t of the horizon only questions
    dated up to that part of the span can be asked.
    """

    label: str = "topic"
    weights: dict[str, NotNegative] = {}
    taxonomy: Literal["", "datamorgana", "tuna"] = ""
    drift: tuple[Drift, ...] = ()
    replacement: bool = True
    dates: str = ""


class Coupled(Spec):
    """Coupled markets: users, generators, retrievers and routers in one governance graph.

    `folder` is where relative paths start. The questions are a CSV (`questions`), or `pool` says
    how many there are of each topic. `qrels` are judgments, by which retrieved documents are worth
    their `measure`. `credit` says what the choosers along a path learn from the answer:

        answer      all of them the user's utility
        gain        those who choose retrievers what retrieval added to the closed book
        split       as answer, with the gain shared out evenly among the retrievers of the answer
        discounted  the user's utility times `discount` to the power of the edges before the choice

    `without` takes agents out, with all their edges, for controls.
    """

    horizon: Annotated[int, Field(ge=1, le=2**31 - 1)] = 200
    per_step: Count = 10
    folder: str = ""
    questions: str = ""
    documents: str = ""
    pool: Annotated[dict[str, Count], Field(min_length=1)] = {"all": 100}
    qrels: str = ""
    measure: str = "nDCG@10"
    demand: Demand = Demand()
    populations: dict[str, Population] = {}
    edges: tuple[tuple[str, str], ...] = ()
    credit: Literal["answer", "gain", "split", "discounted"] = "answer"
    discount: Share = 0.9
    ties: Literal["configuration", "random"] = "random"
    step_s: NotNegative = 1.0
    without: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _members_inherit(cls, data: Any) -> Any:  # any: whatever the YAML held
        if not isinstance(data, Mapping) or not isinstance(data.get("populations"), Mapping):
            return data
        found = {
            name: _filled(str(name), one) if isinstance(one, Mapping) else one
            for name, one in data["populations"].items()
        }
        return {**data, "populations": found}

    @field_validator("edges", mode="before")
    @classmethod
    def _pairs(cls, data: Any) -> Any:  # any: whatever the YAML held
        return [parse_edge(one) for one in data] if isinstance(data, (list, tuple)) else data

    @field_validator("folder")
    @classmethod
    def _absolute(cls, folder: str) -> str:
        return os.path.abspath(folder) if folder else ""

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        if self.populations:
            _ = self.graph
        return self

    @property
    def graph(self) -> Governance:
        """The governance graph, checked, without the agents that are taken out."""
        whole = self._graph(())
        for one in self.without:
            if one not in whole.population_of or whole.roles[whole.population_of[one]] == "user":
                known = [name for name in whole.population_of if name not in self.users]
                raise UnknownNameError("agent in market.without", one, known)
        return self._graph(self.without) if self.without else whole

    def _graph(self, without: tuple[str, ...]) -> Governance:
        members = {
            name: tuple(m for m in one.members if m not in without)
            if not isinstance(one, Users)
            else (name,)
            for name, one in self.populations.items()
        }
        gone = {name for name, those in members.items() if not those}
        if gone and not without:
            raise ScenarioError(f"population '{min(gone)}' has no members")
        return governance(
            {name: one.role for name, one in self.populations.items() if name not in gone},
            {name: those for name, those in members.items() if name not in gone},
            [edge for edge in self.edges if not {*without, *gone} & {*edge}],
        )

    @property
    def users(self) -> dict[str, Users]:
        """The populations of users."""
        return {name: one for name, one in self.populations.items() if isinstance(one, Users)}

    @property
    def agents(self) -> dict[str, Router | Generator | Retriever]:
        """All other agents by name, in configuration order."""
        return {
            name: agent
            for one in self.populations.values()
            if not isinstance(one, Users)
            for name, agent in one.members.items()
            if name not in self.without
        }

    def path(self, name: str) -> str:
        """A path of the scenario, from its folder."""
        return os.path.normpath(os.path.join(self.folder, name))


def _filled(name: str, given: Mapping[str, Any]) -> dict[str, Any]:  # any: whatever the YAML held
    """A population with what it says of all members in each of them."""
    if given.get("role") not in ("router", "generator", "retriever"):
        return dict(given)
    common = {key: value for key, value in given.items() if key not in ("role", "members")}
    members = given.get("members", [name])
    if isinstance(members, (list, tuple)):
        members = {str(one): {} for one in members}
    if not isinstance(members, Mapping):
        return dict(given)
    filled = {
        one: _over(common, own or {}) if isinstance(own or {}, Mapping) else own
        for one, own in members.items()
    }
    return {"role": given["role"], "members": filled}


def _over(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:  # any: as above
    """`own` laid over `common`, mapping into mapping; another policy or lever replaces a whole."""
    merged = dict(common)
    for key, value in own.items():
        below = merged.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping) and key in ("price", "choose"):
            value = _over(below, value)
        merged[key] = value
    return merged
