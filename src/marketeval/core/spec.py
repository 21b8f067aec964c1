"""What a specification is, and how it says what is wrong with a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from marketeval.core.errors import MarketevalError, ScenarioError, near_miss

Model = TypeVar("Model", bound=BaseModel)
ALTERNATIVE = re.compile(r"^(constrained-)?(bool|int|float|str)$|\[")  # of a union


class Spec(BaseModel):
    """Base of all that a scenario may say: frozen, unknown keys are errors, numbers are finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _truth_is_no_number(cls, data: Any) -> Any:  # any: the caller's data
        for name in _numbers(cls) & data.keys() if isinstance(data, Mapping) else ():
            if (found := _truth_in(data[name])) is not None:
                raise ScenarioError(f"expected a number as '{name}', got {found}")
        return data


def validated(model: type[Model], tree: Any) -> Model:  # any: the caller's data
    """A checked model, or a ScenarioError of one line that says where and what was expected."""
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        raise ScenarioError(_one_line(error, model, tree)) from None


def fields_at(model: type[BaseModel], where: Sequence[str | int]) -> list[str]:
    """The keys that are known at a place; where several models may stand there, those of all."""
    here = [model]
    for part in where:
        tagged = [one for one in here if part in _tags(one)]
        holding = [one for one in here if part in one.model_fields]
        if holding:
            here = [one for m in holding for one in models_in(m.model_fields[str(part)].annotation)]
        elif tagged:
            here = tagged
        # else a key of a mapping or a place in a list
    return sorted({name for one in here for name in one.model_fields})


def models_in(annotation: Any) -> list[type[BaseModel]]:  # any: a type expression
    """The models that a type expression speaks of, in its containers too."""
    return [one for one in _leaves(annotation) if _is_model(one)]


def _one_line(error: ValidationError, model: type[BaseModel], tree: Any) -> str:
    problems = [(_place(one, tree), one) for one in error.errors()]
    first = problems[0][0]
    where, problem = max(  # of the alternatives at the first place, the one that got furthest
        (one for one in problems if one[0][: len(first)] == first), key=lambda one: len(one[0])
    )
    place, context = ".".join(where), problem.get("ctx", {})
    said = f"{place}: " if place else ""
    if isinstance(context.get("error"), MarketevalError):
        return f"{said}{context['error']}"
    if problem["type"] == "union_tag_invalid":
        key = context["discriminator"].strip("'")
        return f"{place}.{key}: expected {context['expected_tags']}, got '{context['tag']}'"
    if problem["type"] == "extra_forbidden":
        known = fields_at(model, problem["loc"][:-1])
        near = near_miss(where[-1], known)
        guess = f"; did you mean '{near}'?" if near else ";"
        inside = f" in {'.'.join(where[:-1])}" if where[:-1] else ""
        return f"unknown key '{where[-1]}'{inside}{guess} known: {', '.join(known)}"
    got = repr(problem["input"])
    return f"{said}{problem['msg'][0].lower()}{problem['msg'][1:]}, got {got:.80}"


def _place(problem: ErrorDetails, tree: Any) -> list[str]:  # any: the caller's data
    """Where something is for the caller: without the names that checking gives to alternatives.

    Such a name is not a key of the data there, but may be the value that told which one it is. Any
    other part that is not there was taken over from elsewhere.
    """
    place: list[str] = []
    for part in problem["loc"]:
        try:
            tree = tree[part]
        except (LookupError, TypeError):
            told = tree.values() if isinstance(tree, Mapping) else ()
            if part in told or ALTERNATIVE.search(str(part)):
                continue
            tree = None
        place.append(str(part))
    return place


@cache
def _numbers(model: type[BaseModel]) -> frozenset[str]:
    """The fields of a model that hold numbers, and neither truth values nor models."""
    kinds = {name: set(_leaves(info.annotation)) for name, info in model.model_fields.items()}
    return frozenset(
        name
        for name, some in kinds.items()
        if some & {int, float} and bool not in some and not any(map(_is_model, some))
    )


def _truth_in(value: Any) -> bool | None:  # any: YAML's values
    """A truth value in a value or in its containers."""
    if isinstance(value, bool):
        return value
    inner = value.values() if isinstance(value, dict) else value
    several = inner if isinstance(value, (dict, list, tuple)) else ()
    return next((one for one in map(_truth_in, several) if one is not None), None)


def _leaves(annotation: Any) -> Iterator[Any]:  # any: a type expression
    """The types in a type expression, without the containers and notes around them."""
    parts = get_args(annotation)
    if not parts or get_origin(annotation) is Literal:
        yield annotation
        return
    noted = hasattr(annotation, "__metadata__")
    for part in parts[:1] if noted else parts:
        yield from _leaves(part)


def _tags(model: type[BaseModel]) -> frozenset[object]:
    """What tells a model from its alternatives."""
    kinds = [info.annotation for info in model.model_fields.values() if info.is_required()]
    return frozenset(tag for one in kinds if get_origin(one) is Literal for tag in get_args(one))


def _is_model(kind: Any) -> bool:  # any: a leaf of a type expression
    return isinstance(kind, type) and issubclass(kind, BaseModel)
