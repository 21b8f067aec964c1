"""What a metric is: a small frozen value, computed from the event log alone, with a text form.

To add a metric, write a class marked `@metric` in the theme's file of this folder (or in a new
file of it); `METRICS` finds it by its source text, so that listing names imports nothing. Packages
outside register theirs by an entry point in the group `marketeval.metrics`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, dataclass_transform

from marketeval.core.errors import MarketevalError, UnknownNameError, UsageError
from marketeval.core.registry import Registry
from marketeval.metrics.text import read_arguments

if TYPE_CHECKING:
    import polars as pl

    from marketeval.core.log import EventKind, LogReader

    METRICS: Registry[type[Metric]]
    TIDY: pl.Schema

C = TypeVar("C", bound=type)


class Metric(Protocol):
    """A number, or a series of numbers, that a log implies. `str` gives the text form."""

    def compute(self, log: LogReader, /) -> pl.DataFrame:
        """The rows of `TIDY`, ordered by seed, then step, then the order of the agents."""
        ...


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def metric(cls: C) -> C:
    """Mark a class as a metric: a frozen dataclass whose parameters are given by name."""
    return cast(C, dataclass(frozen=True, kw_only=True)(cls))  # cast: it is the same class


def parse_metric(text: str) -> Metric:
    """The metric that a text names: `HHI`, `HHI(window=10)`, `Retention(10, phase=before)`.

    >>> str(parse_metric("HHI( window = 10, mode=tumbling )"))
    'HHI(window=10, mode=tumbling)'

    Raises UnknownNameError for a name, UsageError for parameters that cannot be.
    """
    found = re.fullmatch(r"\s*([^\s()]+)\s*(?:\((.*)\))?\s*", text, re.DOTALL)
    if found is None:
        raise UsageError(f"expected a metric such as HHI or HHI(window=10), got '{text}'")
    name, arguments = found.groups()
    cls = _registry()[name]
    given = read_arguments(cls, name, arguments or "")
    parameters = fields(cast(Any, cls))  # any: `@metric` made it a dataclass
    lacking = [one.name for one in parameters if _has_no_default(one) and one.name not in given]
    if lacking:
        raise UsageError(f"{name}: {lacking[0]} is missing; give it as in {name}({lacking[0]}=...)")
    return cls(**given)


def _has_no_default(one: Field[Any]) -> bool:  # any: of whatever type
    return one.default is MISSING and one.default_factory is MISSING


def evaluate(log: LogReader, metrics: Sequence[Metric]) -> pl.DataFrame:
    """The tidy table of several metrics of one log, one below the other; repeats count once."""
    import polars as pl

    from marketeval.metrics.passes import remember_passes
    from marketeval.metrics.tables import Remembering

    shared = log if isinstance(log, Remembering) else Remembering(log)
    asked = list(dict.fromkeys(metrics))
    remember_passes(shared, asked)
    frames = [_computed(one, shared) for one in asked]
    return pl.concat(frames) if frames else pl.DataFrame(schema=_tidy())


def _computed(one: Metric, log: LogReader) -> pl.DataFrame:
    try:
        return one.compute(log)
    except UnknownNameError as error:  # a metric of another market family
        raise UsageError(f"{one} cannot be computed from this log: {error}") from None


def foreign_event(one: Metric, kinds: Sequence[EventKind]) -> str:
    """The event that keeps a metric from being computed where only these are written; '' if none.

    It is tried on a log without rows; what else may be wrong with it hangs on the rows.
    """
    from marketeval.metrics.tables import Remembering

    log = _Rowless(kinds)
    try:
        one.compute(Remembering(log))
    except MarketevalError:
        return log.foreign
    except Exception:
        return ""
    return ""


class _Rowless:
    """A log without rows, which notes the last event that was asked for and that it has not."""

    def __init__(self, kinds: Sequence[EventKind]) -> None:
        from marketeval.core.log import EventLog

        self._log = EventLog(kinds)
        self.foreign = ""

    def scan(self, kind: str) -> pl.LazyFrame:
        """As the log's own."""
        if kind not in self._log.kinds:
            self.foreign = kind
        return self._log.scan(kind)

    def seeds(self) -> list[int]:
        """None."""
        return []


def describe(name: str) -> str:
    """The first line of a metric's description."""
    return (_registry()[name].__doc__ or "").strip().partition("\n")[0]


@cache
def _registry() -> Registry[type[Metric]]:
    places = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        for name in re.findall(r"^@metric\nclass (\w+)", path.read_text("utf-8"), re.MULTILINE):
            places[name] = f"{__package__}.{path.stem}:{name}"
    return Registry("metric", places)


@cache
def _tidy() -> pl.Schema:
    import polars as pl

    return pl.Schema(
        {
            "seed": pl.Int64(),
            "metric": pl.String(),
            "window": pl.String(),
            "step": pl.Int64(),
            "subject": pl.String(),
            "value": pl.Float64(),
            "note": pl.String(),
        }
    )


def __getattr__(name: str) -> object:
    """`METRICS` and `TIDY` are made when first asked for, so that importing this stays cheap."""
    if name == "METRICS":
        return _registry()
    if name == "TIDY":
        return _tidy()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
