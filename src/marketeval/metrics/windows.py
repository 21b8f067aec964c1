"""Which steps a metric covers: a range of the episode, and windows within it.

Steps are counted from 0 and ranges are half open, so 0-100 is the first hundred steps. Where the
paper writes t = 1-100 this package says 0-100.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from marketeval.core.errors import UnknownNameError, UsageError
from marketeval.metrics.tables import horizon, phases
from marketeval.metrics.text import text_form

if TYPE_CHECKING:
    from marketeval.core.log import LogReader

Integers = NDArray[np.int64]
Mode = Literal["sliding", "tumbling", "cumulative"]


@dataclass(frozen=True, slots=True)
class Span:
    """A range of steps [start, stop) and its name in tables."""

    start: int
    stop: int
    label: str

    def pooled(self) -> Windows:
        """The whole range as one window."""
        return Windows(np.array([self.start]), np.array([self.stop]), self.label, series=False)

    def sliding(self, width: int) -> Windows:
        """Every full window of `width` steps, one step apart; none if the range is shorter."""
        first = np.arange(self.start, self.stop - width + 1)
        return Windows(first, first + width, self._named(f"sliding {width}"))

    def tumbling(self, width: int) -> Windows:
        """Windows of `width` steps side by side; the last may be shorter."""
        first = np.arange(self.start, self.stop, width)
        return Windows(
            first, np.minimum(first + width, self.stop), self._named(f"tumbling {width}")
        )

    def cumulative(self) -> Windows:
        """From the start of the range to each of its steps."""
        stop = np.arange(self.start + 1, self.stop + 1)
        return Windows(np.full_like(stop, self.start), stop, self._named("cumulative"))

    def _named(self, shape: str) -> str:
        return shape if self.label == "all" else f"{self.label} {shape}"


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows [first, stop) in order; `series` says whether tables show their last step."""

    first: Integers
    stop: Integers
    label: str
    series: bool = True


@dataclass(frozen=True, kw_only=True)
class Ranged:
    """A metric over a range of steps: a `phase` of the log, or from `start` to `stop`.

    `stop` is the step after the last; the default is the whole log. A phase that goes past the
    end of the log ends with the log.
    """

    phase: str | None = None
    start: int | None = None
    stop: int | None = None

    def __post_init__(self) -> None:
        if self.phase is not None and (self.start is not None or self.stop is not None):
            raise UsageError(f"{self}: give either phase or start and stop")
        if self.start is not None and self.start < 0:
            raise UsageError(f"{self}: start takes a step from 0, got {self.start}")
        if self.stop is not None and self.stop <= (self.start or 0):
            raise UsageError(
                f"{self}: stop is the step after the last; expected more than "
                f"start={self.start or 0}, got {self.stop}"
            )

    def __str__(self) -> str:
        return text_form(self)

    def span(self, log: LogReader) -> Span:
        """The steps of this log that the metric covers."""
        end = horizon(log)
        if self.phase is not None:
            known = phases(log)
            if self.phase not in known:
                raise UnknownNameError("phase", self.phase, known)
            start, stop = known[self.phase]
            return Span(min(start, end), min(stop, end), self.phase)
        if self.start is None and self.stop is None:
            return Span(0, end, "all")
        start, stop = self.start or 0, end if self.stop is None else self.stop
        if stop > end or start >= end:
            raise UsageError(f"{self}: the log has {end} steps; expected a range within 0-{end}")
        return Span(start, stop, f"{start}-{stop}")


@dataclass(frozen=True, kw_only=True)
class Windowed(Ranged):
    """A metric that may be a series: `window` steps at a time, or cumulative.

    `mode` is sliding (the default once `window` is given: full windows, one step apart), tumbling
    (side by side, the last may be short) or cumulative (from the start of the range to each
    step). With neither, the value is pooled over the whole range.
    """

    window: int | None = None
    mode: Mode | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self, "window", self.window, 1)
        if self.mode not in (None, "sliding", "tumbling", "cumulative"):
            raise UsageError(f"{self}: mode takes sliding, tumbling or cumulative")
        if self.mode in ("sliding", "tumbling") and self.window is None:
            raise UsageError(f"{self}: mode={self.mode} needs a window, such as window=10")
        if self.mode == "cumulative" and self.window is not None:
            raise UsageError(f"{self}: mode=cumulative takes no window")
        if self.mode == "sliding":  # the default; one value has one text
            object.__setattr__(self, "mode", None)

    def windows(self, log: LogReader) -> Windows:
        """The windows of this log that the metric covers."""
        span = self.span(log)
        if self.mode == "cumulative":
            return span.cumulative()
        if self.window is None:
            return span.pooled()
        return span.tumbling(self.window) if self.mode else span.sliding(self.window)


def at_least(metric: object, name: str, value: int | None, least: int) -> None:
    """Refuse a parameter that is given and too small."""
    if value is not None and value < least:
        raise UsageError(f"{metric}: {name} takes a whole number from {least}, got {value}")
