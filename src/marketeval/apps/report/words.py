"""Numbers and sentences as people read them, the same in the page and in the terminal."""

from __future__ import annotations

from itertools import pairwise

from marketeval.apps.report.facts import Control, Facts, hhi_of
from marketeval.apps.report.numbers import Value

UNDEFINED = "n/a"
PRIVILEGED = "† is told what its seat should not know (privileged): not a fair competitor."
POINTS, PERCENT, PLAIN = (0, 1.0), (1, 100.0), (2, 1.0)
Unit = tuple[int, float]  # decimals and scale


def number(value: float | None, unit: Unit, *, signed: bool = False) -> str:
    """A number in a unit.

    >>> number(0.294, PERCENT), number(2027.4, POINTS), number(0.0074, PERCENT, signed=True)
    ('29.4', '2,027', '+0.7')
    """
    if value is None:
        return UNDEFINED
    digits, scale = unit
    rounded = round(value * scale, digits) + 0.0  # no -0.0
    sign = "+" if signed and rounded > 0 else ""
    return f"{sign}{rounded:,.{digits}f}"


def interval(value: Value, unit: Unit, *, signed: bool = False) -> str:
    """`[28.1, 30.6]`, or nothing where there is no interval."""
    if value.low is None or value.high is None:
        return ""
    low, high = (number(one, unit, signed=signed) for one in (value.low, value.high))
    return f"[{low}, {high}]"


def both(value: Value, unit: Unit, *, signed: bool = False) -> str:
    """`29.4 [28.1, 30.6]`."""
    mean = number(value.mean, unit, signed=signed)
    return f"{mean} {interval(value, unit, signed=signed)}".strip()


def count(many: int, one: str) -> str:
    """`1 seed`, `50 seeds`."""
    return f"{many:,} {one}" if many == 1 else f"{many:,} {one}s"


def seed_text(seeds: list[int]) -> str:
    """`50 seeds (1-50)`."""
    if not seeds:
        return "no finished seed"
    if len(seeds) == 1:
        return f"1 seed ({seeds[0]})"
    dense = seeds[-1] - seeds[0] + 1 == len(seeds)
    between = f"{seeds[0]}-{seeds[-1]}" if dense else f"{seeds[0]} to {seeds[-1]}, with gaps"
    return f"{len(seeds):,} seeds ({between})"


def interval_note(facts: Facts) -> str:
    """What the brackets are."""
    if len(facts.seeds) < 2:
        return "One seed was played, so there are no intervals; another seed may look different."
    return (
        f"Values are means over {len(facts.seeds):,} seeds; brackets hold 95% bootstrap intervals "
        "of the mean."
    )


def phase_warning(facts: Facts) -> str:
    """What the difference between phases may be taken for."""
    if len(facts.phases) < 2:
        return ""
    if facts.controls:
        return (
            "Differences between phases are not effects: time passes and users learn in a control "
            "too. The effect is the paired difference to the control, below."
        )
    return (
        "No control was played, so differences between phases are not effects: between one phase "
        "and the next, time passes and users learn, whatever else happens. Nothing here says what "
        "would have happened without the change."
    )


def hhi_story(facts: Facts, control: Control) -> list[str]:
    """From phase to phase: HHI in the run, in the control, and the effect that remains."""
    lines = []
    phases = facts.main_phases
    for before, after in pairwise(phases):
        run = [facts.numbers.pooled(hhi_of(p)).mean for p in (before, after)]
        other = [control.numbers.pooled(hhi_of(p)).mean for p in (before, after)]
        effect = control.effect.pooled(hhi_of(after))
        if None in (*run, *other) or effect.mean is None:
            continue
        lines.append(
            f"From {before.name} to {after.name}, HHI went {_went(run)} in the run and "
            f"{_went(other)} in the control '{control.name}', over the same steps. The effect of "
            f"what differs between the two is the paired difference in {after.name}: "
            f"{both(effect, POINTS, signed=True)} points{_verdict(effect)}."
        )
    return lines


def _went(values: list[float | None]) -> str:
    first, last = values
    if first is None or last is None:
        return UNDEFINED
    return (
        f"from {number(first, POINTS)} to {number(last, POINTS)} "
        f"({number(last - first, POINTS, signed=True)})"
    )


def _verdict(effect: Value) -> str:
    if effect.low is None or effect.high is None:
        return " (one seed: no interval)"
    if effect.low <= 0 <= effect.high:
        return "; the interval includes 0"
    return ""
