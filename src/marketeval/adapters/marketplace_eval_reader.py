"""Reading the `simulation_log.csv` of the published package `marketplace-eval` 0.1.0."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import polars as pl

from marketeval.adapters.marketplace_eval_replay import LETTERS, enter
from marketeval.core.errors import DataError
from marketeval.core.log import EventLog, LogReader
from marketeval.events.information import CHANGES, GRADES, KINDS, MISSING, OK

NEEDED = ("t", "tau", "user_id", "qid", "generator_id", "score")
ENTRY = CHANGES.index("entry")


@dataclass(slots=True)
class _Row:
    number: int  # counted from 1, the header apart
    t: int
    tau: int
    user: str
    question: str
    generator: str
    score: float
    grade: str
    beliefs: Mapping[str, float] = field(default_factory=dict)


def read_log(path: str | Path) -> LogReader:
    """A `simulation_log.csv` as an event log of one episode, under seed 0.

    The score s in [-1, 1] is the signal, (s + 1) / 2 the quality. The grades A, B and C are
    SimpleQA's; any other grade becomes "none", a row without a score an interaction without an
    outcome. A generator that is missing from the preferences of the first step, and later in
    everybody's, entered at the step where it first appears. Exploration is not in the file: a
    choice counts as explored where the same user's earlier row shows another favourite, so the
    column is a lower bound.
    """
    path = Path(path)
    rows = sorted(_rows(path), key=lambda row: (row.t, row.tau))
    order = list(dict.fromkeys(name for row in rows for name in (*row.beliefs, row.generator)))
    entries = _entries(rows, order)
    agents = {name: index for index, name in enumerate(sorted(order))}
    users = _numbered(row.user for row in rows)
    questions = _numbered(row.question for row in rows)
    horizon = rows[-1].t + 1
    per_step = max(sum(1 for _ in step) for _, step in groupby(rows, key=lambda row: row.t))

    log = EventLog(KINDS)
    log.shared("market", horizon=horizon, users=len(users), users_per_step=per_step)
    log.shared(
        "generator",
        agent=list(agents.values()),
        seat=list(agents),
        label=list(agents),
        position=[order.index(name) for name in agents],
        entry_step=[entries.get(name, 0) for name in agents],
        privileged=False,
    )
    log.shared("topic", topic=0, name="all")
    log.shared("question", question=list(questions.values()), item=list(questions), topic=0)
    log.shared("segment", segment=0, name="users", weight=1.0, seat="")
    bounds = [0, *sorted(set(entries.values())), horizon]
    if len(bounds) > 2:
        names = ["before", "after"] if len(bounds) == 3 else None
        log.shared(
            "phase",
            name=names or [f"phase {place}" for place in range(1, len(bounds))],
            start=bounds[:-1],
            stop=bounds[1:],
        )
    log.shared("user", user=list(users.values()), segment=0, arrived=0)

    log.begin(0)
    explored = _explored(rows, [(step, name) for name, step in entries.items()])
    pending = sorted((step, place, name) for place, (name, step) in enumerate(entries.items()))
    for t, group in groupby(zip(rows, explored, strict=True), key=lambda pair: pair[0].t):
        while pending and pending[0][0] <= t:
            step, _, name = pending.pop(0)
            change = {"change": ENTRY, "value": math.nan}
            log.append("intervention", step=step, agent=agents[name], **change)
        step_rows = list(group)
        _append(
            log, [row for row, _ in step_rows], [e for _, e in step_rows], agents, users, questions
        )
    log.end()
    return log


def _append(
    log: EventLog,
    rows: Sequence[_Row],
    explored: Sequence[bool],
    agents: Mapping[str, int],
    users: Mapping[str, int],
    questions: Mapping[str, int],
) -> None:
    quality = [
        math.nan if math.isnan(row.score) else min(1.0, max(0.0, (row.score + 1.0) / 2.0))
        for row in rows
    ]
    grades = [LETTERS.get(row.grade.upper(), "none") for row in rows]
    log.append(
        "interaction",
        step=rows[0].t,
        slot=list(range(len(rows))),
        user=[users[row.user] for row in rows],
        question=[questions[row.question] for row in rows],
        topic=0,
        agent=[agents[row.generator] for row in rows],
        explored=list(explored),
        score=quality,
        grade=[GRADES.index(grade) for grade in grades],
        cost_usd=math.nan,
        latency_s=math.nan,
        signal=[row.score for row in rows],
        utility=quality,
        status=[MISSING if math.isnan(row.score) else OK for row in rows],
    )
    for slot, row in enumerate(rows):
        if math.isnan(row.score):
            reason = "no score in the file"
            log.append("missing", step=row.t, slot=slot, agent=agents[row.generator], reason=reason)


def _rows(path: Path) -> Iterator[_Row]:
    for number, one in enumerate(_table(path).iter_rows(named=True), start=1):
        where = f"{path}, row {number}"
        generator, user = one["generator_id"], one["user_id"]
        if not generator or not user:
            raise DataError(f"{where}: expected a user_id and a generator_id, got none")
        yield _Row(
            number,
            _whole(one["t"], "t", where),
            _whole(one["tau"], "tau", where),
            user,
            one["qid"] or one.get("user_question") or "",
            generator,
            _score(one["score"], where),
            one.get("judge_grade") or "",
            _beliefs(one.get("preference_distribution") or "", where),
        )


def _table(path: Path) -> pl.DataFrame:
    what = f"cannot read {path} as a simulation_log.csv of marketplace-eval"
    try:
        frame = pl.read_csv(path, infer_schema=False).fill_null("")
    except FileNotFoundError as error:
        raise DataError(f"{what}: no such file") from error
    except pl.exceptions.NoDataError as error:
        raise DataError(f"{what}: the file is empty") from error
    except (pl.exceptions.PolarsError, OSError, UnicodeError) as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{what}: it is not a CSV file ({reason})") from error
    missing = [name for name in NEEDED if name not in frame.columns]
    if missing:
        found = ", ".join(frame.columns[:20])
        raise DataError(f"{what}: it lacks the columns {', '.join(missing)}; it has: {found:.200}")
    if frame.is_empty():
        raise DataError(f"{what}: it has a header but no rows")
    return frame


def _whole(text: str, column: str, where: str) -> int:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (0 <= value < 2**31 and value.is_integer()):
        raise DataError(f"{where}: expected a whole number from 0 in '{column}', got '{text}'")
    return int(value)


def _score(text: str, where: str) -> float:
    if not text:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{where}: expected a number in 'score', got '{text}'")
    return value


def _beliefs(text: str, where: str) -> dict[str, float]:
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(
        isinstance(value, (int, float)) and abs(value) < math.inf for value in found.values()
    ):
        raise DataError(
            f"{where}: expected generators and numbers in 'preference_distribution', "
            f"got '{text:.80}'"
        )
    return {name: float(value) for name, value in found.items()}


def _entries(rows: Sequence[_Row], order: Sequence[str]) -> dict[str, int]:
    """The entry step of each generator that entered late, in the order of entry.

    An entrant is made known to every user; one whom some user still does not know afterwards was
    merely left out of that user's profile.
    """
    first: dict[str, int] = {}
    last_without: dict[str, int] = {}
    for row in rows:
        for name in order:
            if name in row.beliefs:
                first.setdefault(name, row.t)
            elif row.beliefs:
                last_without[name] = row.t
    start = rows[0].t
    late = {
        name: first[name]
        for name in order
        if name in first and start < first[name] > last_without.get(name, start)
    }
    return dict(sorted(late.items(), key=lambda entry: entry[1]))


def _explored(rows: Sequence[_Row], entries: Sequence[tuple[int, str]]) -> list[bool]:
    """Whether each choice differs from the favourite that the user's earlier row shows."""
    before: dict[str, Mapping[str, float]] = {}
    found: list[bool] = []
    for t, group in groupby(rows, key=lambda row: row.t):
        step = list(group)
        for row in step:
            beliefs = dict(before.get(row.user, {}))
            if beliefs:
                for entered, name in entries:
                    if entered <= t:
                        enter(beliefs, name)
            found.append(bool(beliefs) and row.generator != max(beliefs, key=beliefs.__getitem__))
        before.update({row.user: row.beliefs for row in step})
    return found


def _numbered(names: Iterable[str]) -> dict[str, int]:
    """Numbers from 0 in natural order: user_2 before user_10."""

    def natural(name: str) -> list[tuple[int, int | str]]:
        parts = re.split(r"(\d+)", name)
        return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]

    return {name: place for place, name in enumerate(sorted(set(names), key=natural))}
