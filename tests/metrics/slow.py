"""The metrics once more, user by user and step by step, as slow and as plain as they can be."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

from marketeval.core.log import EventLog

Row = tuple[int, int, str, str]  # step, slot, user, agent


def rows_of(log: EventLog, seed: int, start: int = 0, stop: int = 10**9) -> list[Row]:
    seats = dict(log.scan("generator").select("agent", "seat").collect().iter_rows())
    table = log.scan("interaction").select("seed", "step", "slot", "user", "agent").collect()
    return sorted(
        (step, slot, user, seats[agent])
        for one, step, slot, user, agent in table.iter_rows()
        if one == seed and start <= step < stop
    )


def shares(rows: list[Row], agents: str) -> dict[str, float]:
    return {one: sum(row[3] == one for row in rows) / len(rows) for one in agents}


def retention(rows: list[Row], agent: str, m: int, start: int = 0) -> tuple[float | None, int, int]:
    """Value, users with too few later interactions, users who tried the agent."""
    values, short = [], 0
    for choices in _by_user(rows).values():
        names = [row[3] for row in choices]
        if agent not in names or choices[names.index(agent)][0] < start:
            continue
        later = names[names.index(agent) + 1 :]
        if len(later) < m:
            short += 1
        else:
            values.append(sum(one == agent for one in later[:m]) / m)
    return _mean(values), short, short + len(values)


def retention_steps(rows: list[Row], agent: str, m: int, stop: int) -> float | None:
    values = []
    for choices in _by_user(rows).values():
        asked = {step: name for step, _, _, name in choices}  # the last of a step stays
        steps = [step for step, name in sorted(asked.items()) if name == agent]
        if steps and steps[0] + m < stop:
            values.append(sum(asked.get(steps[0] + t) == agent for t in range(1, m + 1)) / m)
    return _mean(values)


def retention_windowed(rows: list[Row], agent: str) -> float | None:
    values = []
    for choices in _by_user(rows).values():
        names = [row[3] for row in choices]
        later = names[names.index(agent) + 1 :] if agent in names else []
        if later:
            values.append(later.count(agent) / len(later))
    return _mean(values)


def churn(rows: list[Row], agent: str, m: int) -> float | None:
    values = []
    for choices in _by_user(rows).values():
        names = [row[3] for row in choices]
        if agent in names and len(names) - 1 - names.index(agent) >= m:
            values.append(float(agent not in names[-m:]))
    return _mean(values)


def switch_rate(rows: list[Row], agent: str | None) -> float | None:
    pairs = [
        pair
        for choices in _by_user(rows).values()
        for pair in itertools.pairwise(row[3] for row in choices)
        if agent in (None, pair[0])
    ]
    return _mean([float(one != other) for one, other in pairs])


def gini(values: list[float]) -> float:
    gaps = sum(abs(one - other) for one in values for other in values)
    return gaps / (2 * len(values) * sum(values))


def tau_b(x: list[float], y: list[float]) -> float | None:
    score, left, right = 0, 0, 0
    for i, j in itertools.combinations(range(len(x)), 2):
        score += _sign(x[i] - x[j]) * _sign(y[i] - y[j])
        left += x[i] != x[j]
        right += y[i] != y[j]
    return score / math.sqrt(left * right) if left * right else None


def rho(x: list[float], y: list[float]) -> float | None:
    ranks = [
        [sum(o < one for o in v) + (sum(o == one for o in v) + 1) / 2 for one in v] for v in (x, y)
    ]
    centred = [[one - sum(v) / len(v) for one in v] for v in ranks]
    below = math.sqrt(math.prod(sum(one * one for one in v) for v in centred))
    above = sum(one * other for one, other in zip(*centred, strict=True))
    return above / below if below else None


def _by_user(rows: list[Row]) -> dict[int, list[Row]]:
    users = defaultdict(list)
    for row in rows:
        users[row[2]].append(row)
    return users


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
