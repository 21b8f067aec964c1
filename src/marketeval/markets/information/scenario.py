"""The information-access market as a frozen specification: what a scenario file may say.

Defaults are those of the marketplace paper's experiment (section 2.1.1) and its package.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from marketeval.choice.preference import KINDS
from marketeval.choice.rules import RULES
from marketeval.core.errors import ScenarioError, UnknownNameError
from marketeval.core.spec import Spec

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Step = Annotated[int, Field(ge=0)]

JUDGE = "judge"  # the seat that grades answers in words


class Choice(Spec):
    """How users choose. `epsilon`, `temperature` and `exploration` belong to one rule each;
    `parameter` is the rule's own one under a name that rules from elsewhere have too."""

    rule: str = "epsilon_greedy"
    epsilon: Share | None = None
    temperature: Positive | None = None
    exploration: NotNegative | None = None
    parameter: Finite | None = None
    inertia: Share = 0.0
    portfolio: Count = 1
    popularity: NotNegative = 0.0

    @property
    def theta(self) -> float:
        """The value of the rule's own parameter."""
        rule = RULES[self.rule]
        given = getattr(self, rule.PARAMETER, self.parameter) if rule.PARAMETER else None
        given = self.parameter if given is None else given
        return float(rule.DEFAULT if given is None else given)

    @model_validator(mode="after")
    def _only_own_parameters(self) -> Self:
        own = RULES[self.rule].PARAMETER
        if own and getattr(self, own, None) is not None and self.parameter is not None:
            raise ScenarioError(f"expected {own} or parameter, which are the same, got both")
        for name in ("epsilon", "temperature", "exploration", *([] if own else ["parameter"])):
            if name != own and getattr(self, name) is not None:
                takes = f"takes {own}" if own else "takes no parameter"
                raise ScenarioError(f"choice rule '{self.rule}' {takes}; got {name}")
        low, high = RULES[self.rule].RANGE
        if not low <= self.theta <= high:
            raise ScenarioError(f"{own} is from {low:g} to {high:g}, got {self.theta:g}")
        return self


class Learning(Spec):
    """What users learn, per user or per user and topic; see `choice.preference`."""

    kind: str = "drift"
    rate: Share = 0.1
    floor: Share = 0.01
    prior: Finite = 0.0
    forgetting: Share = 0.0
    per: Literal["user", "topic"] = "user"


class Utility(Spec):
    """The weights of quality, cost (per dollar), latency (per second) and trust."""

    quality: Finite = 1.0
    cost: Finite = 0.0
    latency: Finite = 0.0
    trust: Finite = 0.0


class Outside(Spec):
    """A user leaves for good after `patience` interactions in a row with the running utility
    below `utility`; `rate` is the weight of the newest interaction in it."""

    utility: Finite
    patience: Count = 5
    rate: Annotated[float, Field(gt=0, le=1)] = 0.2


class Segment(Spec):
    """A kind of user. What is left out is as in the market.

    With an `agent`, its users are asked whom they choose: that seat, which then is no competitor,
    answers for them, and `choice` stands in where it gives no valid answer.
    """

    name: str
    weight: Positive = 1.0
    activity: Positive = 1.0
    choice: Choice | None = None
    learning: Learning | None = None
    utility: Utility | None = None
    outside: Outside | None = None
    preferences: dict[str, Positive] = {}
    agent: str = ""


class Users(Spec):
    """How many users there are, how many interact per step, and whether new ones arrive."""

    population: Count = 10
    per_step: Count = 5
    replacement: bool = True
    arrivals: NotNegative = 0.0

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if not self.replacement and self.per_step > self.population:
            raise ScenarioError(
                f"users.per_step is {self.per_step} and users are drawn without replacement, but "
                f"there are {self.population}; lower per_step or set users.replacement: true"
            )
        return self


class Intervention(Spec):
    """A change of the market at the start of a step.

    price, latency: the recorded cost or latency times `factor`. quality: with `change` below 0 a
    correct answer turns wrong with that probability, above 0 a wrong one correct. outage: lasts
    `steps`; the agent fails whoever asks it (`mode: fails`) or cannot be chosen (`hidden`).
    """

    step: Step
    agent: str
    kind: Literal["entry", "exit", "price", "latency", "quality", "outage"]
    factor: NotNegative | None = None
    change: Annotated[float, Field(ge=-1, le=1)] | None = None
    steps: Count | None = None
    mode: Literal["fails", "hidden"] = "fails"

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        needs = {"price": "factor", "latency": "factor", "quality": "change", "outage": "steps"}
        needed = needs.get(self.kind)
        for name in ("factor", "change", "steps"):
            given = getattr(self, name) is not None
            if given != (name == needed):
                verb = "needs" if name == needed else "does not take"
                raise ScenarioError(f"an intervention of kind '{self.kind}' {verb} '{name}'")
        return self


class Information(Spec):
    """One information-access market: users who choose among generators, step after step.

    `signals` maps grades to the quality signal; without grades it is 2q - 1. `stagger` is the
    block size of asynchronous interaction where users share state. `draws: mersenne` takes users,
    questions and exploration from the stream of the reference package (docs/compatibility.md).

    `on_missing` says what an interaction without an outcome teaches: nothing (skip), as much as an
    answer of that score would, or that the run has to stop.
    """

    horizon: Count = 200
    users: Users = Users()
    choice: Choice = Choice()
    learning: Learning = Learning()
    utility: Utility = Utility()
    outside: Outside | None = None
    signals: dict[Literal["correct", "incorrect", "not_attempted"], Finite] = {
        "correct": 1.0,
        "incorrect": -1.0,
        "not_attempted": -1.0,
    }
    ties: Literal["configuration", "random"] = "configuration"
    timing: Literal["synchronous", "asynchronous"] = "synchronous"
    stagger: Count | None = None
    segments: tuple[Segment, ...] = ()
    interventions: tuple[Intervention, ...] = ()
    questions: Count = 500
    draws: Literal["keyed", "mersenne"] = "keyed"
    on_missing: Literal["skip", "stop"] | Share = "skip"

    def kinds_of_user(self) -> tuple[Segment, ...]:
        """The segments with everything filled in; one if the scenario names none."""
        return tuple(
            one.model_copy(
                update={
                    "choice": one.choice or self.choice,
                    "learning": one.learning or self.learning,
                    "utility": one.utility or self.utility,
                    "outside": one.outside or self.outside,
                }
            )
            for one in self.segments or (Segment(name="users"),)
        )

    @property
    def user_seats(self) -> tuple[str, ...]:
        """The seats that choose for users, and so do not compete for them."""
        return tuple(dict.fromkeys(one.agent for one in self.segments if one.agent))

    @model_validator(mode="before")
    @classmethod
    def _segments_inherit(cls, data: Any) -> Any:  # any: whatever the YAML held
        if not isinstance(data, dict) or not isinstance(data.get("segments"), (list, tuple)):
            return data
        merged = []
        for one in data["segments"]:
            if isinstance(one, dict):
                one = dict(one)
                for part in ("choice", "learning", "utility", "outside"):
                    whole, own = data.get(part), one.get(part)
                    if isinstance(whole, dict) and isinstance(own, dict):
                        one[part] = _inherit(part, whole, own)
            merged.append(one)
        return {**data, "segments": merged}

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        names = [one.name for one in self.segments]
        if len(set(names)) < len(names):
            raise ScenarioError(f"segments need names of their own, got {names}")
        _check_user_seats(self)
        kinds = {one.learning.per for one in self.kinds_of_user() if one.learning}
        if len(kinds) > 1:
            raise ScenarioError("learning.per must be the same in all segments")
        for one in self.kinds_of_user():
            assert one.choice is not None  # filled in by kinds_of_user
            assert one.learning is not None
            check_pair(one.choice.rule, one.learning.kind)
            if self.draws == "mersenne":
                _check_mersenne(self, one)
        if self.stagger is not None and self.timing == "synchronous":
            raise ScenarioError("market.stagger needs market.timing: asynchronous")
        for change in self.interventions:
            if change.step >= self.horizon:
                raise ScenarioError(
                    f"the {change.kind} of '{change.agent}' is set for step {change.step}, past "
                    f"the horizon: expected a step from 0 to {self.horizon - 1}"
                )
        return self


def check_pair(rule: str, learning: str) -> None:
    """Refuse a choice rule that cannot read what the kind of learning keeps."""
    if learning not in KINDS:
        raise UnknownNameError("kind of learning", learning, KINDS)
    readable = RULES[rule].LEARNING
    if learning not in readable:
        raise ScenarioError(
            f"choice rule '{rule}' cannot be paired with learning '{learning}'; "
            f"valid for '{rule}': {', '.join(readable)}"
        )


def _inherit(part: str, whole: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """A segment's own values over the market's; another rule drops the market's parameter."""
    base = dict(whole)
    if part == "choice" and own.get("rule", base.get("rule")) != base.get("rule"):
        for name in ("epsilon", "temperature", "exploration", "parameter"):
            base.pop(name, None)
    return {**base, **own}


def _check_user_seats(spec: Information) -> None:
    """A seat that chooses for users does nothing else."""
    if JUDGE in spec.user_seats:
        raise ScenarioError(f"the seat '{JUDGE}' grades answers, so it cannot be a segment's agent")
    for change in spec.interventions:
        if change.agent in spec.user_seats:
            raise ScenarioError(
                f"'{change.agent}' chooses for users, so the {change.kind} at step {change.step} "
                "cannot be: interventions are for generators"
            )
    for segment in spec.segments:
        for name in segment.preferences:
            if name in spec.user_seats:
                raise ScenarioError(
                    f"'{name}' chooses for users, so nobody can prefer it (segment "
                    f"'{segment.name}')"
                )


def _check_mersenne(spec: Information, segment: Segment) -> None:
    choice = segment.choice
    assert choice is not None  # filled in by kinds_of_user
    unsupported = {
        f"choice.rule {choice.rule}": choice.rule != "epsilon_greedy",
        "inertia": choice.inertia > 0,
        "popularity": choice.popularity > 0,
        "an epsilon of a segment's own": choice.theta != spec.choice.theta,
        "activity of a segment's own": segment.activity != spec.kinds_of_user()[0].activity,
        "learning.per topic": segment.learning is not None and segment.learning.per == "topic",
        "users.replacement false": not spec.users.replacement,
        "users.arrivals": spec.users.arrivals > 0,
        "asynchronous timing": spec.timing != "synchronous",
        "an outside option": segment.outside is not None,
        "users that are agents": bool(segment.agent),
        "entries as interventions (use enters)": any(
            one.kind == "entry" for one in spec.interventions
        ),
        "keyed ties": spec.ties != "configuration",
    }
    used = [name for name, is_used in unsupported.items() if is_used]
    if used:
        raise ScenarioError(
            f"draws: mersenne follows the reference package, which has no {', '.join(used)}; "
            "use draws: keyed"
        )
