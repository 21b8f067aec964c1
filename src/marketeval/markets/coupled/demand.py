"""Which users ask which questions at a step: labelled pools, taxonomies, demand that drifts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import resources

import numpy as np
import yaml
from numpy.typing import NDArray

from marketeval.core.errors import DataError, ScenarioError, UnknownNameError
from marketeval.core.streams import Streams
from marketeval.markets.coupled.scenario import Coupled
from marketeval.markets.coupled.scenario import Demand as DemandSpec
from marketeval.mechanisms.trec import read_questions

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Pool:
    """The questions: ids, words ("" without), topics by number, golds, days from the first date."""

    ids: Sequence[str]
    texts: Sequence[str]
    topics: Integers
    topic_names: Sequence[str]
    golds: Sequence[str] | None
    days: Integers | None


def read_pool(spec: Coupled, judged: frozenset[str] | None) -> Pool:
    """The questions of a scenario; with judgments, those that have any.

    Raises DataError where none is left, or a column that is asked for is missing.
    """
    if not spec.questions and judged is not None:  # the judged topics, by their ids alone
        ids = sorted(judged)
        return Pool(ids, [""] * len(ids), np.zeros(len(ids), np.int64), ["all"], None, None)
    if not spec.questions:
        if spec.demand.dates:
            raise ScenarioError("demand.dates needs market.questions with such a column")
        names = sorted(spec.pool)
        topics = np.repeat(np.arange(len(names)), [spec.pool[name] for name in names])
        ids = [f"{name}-{n + 1}" for name in names for n in range(spec.pool[name])]
        return Pool(ids, [""] * len(ids), topics, names, None, None)
    from pathlib import Path

    path = Path(spec.path(spec.questions))
    rows = read_questions(path)
    if judged is not None:
        rows = [row for row in rows if row["id"] in judged]
        if not rows:
            raise DataError(
                f"{path} and {spec.path(spec.qrels)} share no topic: expected judgments of these "
                "questions"
            )
    for column in filter(None, (spec.demand.dates,)):
        if column not in rows[0]:
            raise UnknownNameError(f"column of {path}", column, rows[0])
    labels = [row.get(spec.demand.label) or "all" for row in rows]
    names = sorted(set(labels))
    return Pool(
        ids=[row["id"] for row in rows],
        texts=[row["text"] for row in rows],
        topics=np.array([names.index(one) for one in labels], np.int64),
        topic_names=names,
        golds=[row.get("answer", "") for row in rows] if "answer" in rows[0] else None,
        days=_days(rows, spec.demand.dates, str(path)) if spec.demand.dates else None,
    )


def _days(rows: Sequence[Mapping[str, str]], column: str, where: str) -> Integers:
    try:
        days = [date.fromisoformat(row[column]).toordinal() for row in rows]
    except ValueError as error:
        raise DataError(f"{where}, column {column}: {error}") from None
    return np.array(days, np.int64) - min(days)


class Asking:
    """The demand of each step of an episode: who asks what."""

    def __init__(self, spec: Coupled, pool: Pool, users: int, streams: Streams) -> None:
        self._spec, self._pool, self._users = spec.demand, pool, users
        self._per_step, self._horizon = spec.per_step, spec.horizon
        self._streams = streams
        self._schedule = schedule(spec.demand, pool)
        self._epoch = (-1, np.zeros(0, np.int64))

    def draw(self, step: int) -> tuple[Integers, Integers]:
        """Users and questions of a step, one entry per slot."""
        users = self._streams["users"].below(self._users, step, self._per_step)
        if self._spec.replacement or self._schedule or self._pool.days is not None:
            u = self._streams["questions"].uniform(step, self._per_step)
            running = np.cumsum(self._chances(step))
            place = np.searchsorted(running, u * running[-1], side="right")
            return users, np.minimum(place, running.size - 1)
        size = len(self._pool.ids)
        questions = np.empty(self._per_step, np.int64)
        for slot in range(self._per_step):
            epoch, place = divmod(step * self._per_step + slot, size)
            if epoch != self._epoch[0]:
                self._epoch = (epoch, self._streams["pool"].permutation(epoch, size))
            questions[slot] = self._epoch[1][place]
        return users, questions

    def _chances(self, step: int) -> Floats:
        """How likely each question is, unnormalised."""
        size = len(self._pool.ids)
        chances = np.ones(size)
        if self._schedule:
            weights = _between(self._schedule, step)
            counts = np.bincount(self._pool.topics, minlength=weights.size)
            chances = (weights / np.maximum(counts, 1))[self._pool.topics]
        if self._pool.days is not None:
            until = self._pool.days.max() * (step + 1) / self._horizon
            dated = self._pool.days <= until
            if (chances * dated).sum() > 0:
                chances = chances * dated
        return chances


def schedule(spec: DemandSpec, pool: Pool) -> list[tuple[int, Floats]]:
    """(step, weight per topic) in step order; empty where all questions are alike."""
    start = dict(spec.weights)
    if spec.taxonomy:
        table = taxonomy(spec.taxonomy)
        if start:
            raise ScenarioError("expected demand.weights or demand.taxonomy, got both")
        known = table.get(spec.label)
        if known is None:
            raise UnknownNameError(f"dimension of '{spec.taxonomy}'", spec.label, table)
        start = {name: weight for name, weight in known.items() if name in pool.topic_names}
        if not start:
            raise ScenarioError(
                f"no question has a label of '{spec.taxonomy}' in the column '{spec.label}'; "
                f"expected {', '.join(known)}, found {', '.join(pool.topic_names)}"
            )
    steps = [(0, start)] if start else []
    for one in spec.drift:
        if steps and one.step <= steps[-1][0] and not (one.step == 0 and not start):
            raise ScenarioError(f"demand.drift: expected steps that rise, got {one.step}")
        steps.append((one.step, dict(one.weights)))
    found = []
    for step, weights in steps:
        for name in weights:
            if name not in pool.topic_names:
                raise UnknownNameError("topic of the demand", name, pool.topic_names)
        row = np.array([weights.get(name, 0.0) for name in pool.topic_names])
        if not row.sum() > 0:
            raise ScenarioError(f"the demand of step {step}: expected a weight above 0")
        found.append((step, row / row.sum()))
    return found


def taxonomy(name: str) -> dict[str, dict[str, float]]:
    """A shipped taxonomy: dimension, then weight of each of its values."""
    text = (
        resources.files("marketeval.markets.coupled") / "taxonomies" / f"{name}.yaml"
    ).read_text("utf-8")
    found: dict[str, dict[str, float]] = yaml.safe_load(text)
    return found


def _between(steps: Sequence[tuple[int, Floats]], step: int) -> Floats:
    """The weights at a step, evenly between the two that surround it."""
    after = next((place for place, one in enumerate(steps) if one[0] > step), None)
    if after is None or after == 0:
        return steps[-1][1] if after is None else steps[0][1]
    (a, low), (b, high) = steps[after - 1], steps[after]
    part = (step - a) / (b - a)
    return low + (high - low) * part
