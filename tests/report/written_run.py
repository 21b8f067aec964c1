"""A run directory written by hand: two seeds of four steps, counted by pencil.

Each step has four interactions. Alpha and Beta are there from the start; Gamma, whose label tries
to be a script, enters at step 2. Market shares in percent, and HHI in points:

              before                      after
    seed 1    A 75, B 25: 6250            A 25, B 25, C 50: 3750
    seed 2    A 50, B 50: 5000            A 0, B 25, C 75: 6250
    mean      A 62.5, B 37.5: 5625        A 12.5, B 25, C 62.5: 5000

    control   as above                    seed 1: A 50, B 50: 5000; seed 2: A 100, B 0: 10000

F-scores of 0.60, 0.40 and 0.25 make fair shares of 60 and 40 before, of 48, 32 and 20 after.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from marketeval.core.log import EventLog
from marketeval.events.information import KINDS, OK, OUTAGE, UNGRADED
from marketeval.experiments.run_directory import (
    Manifest,
    PartSink,
    RunDirectory,
    Unit,
    write_manifest,
    write_scenario,
)
from marketeval.experiments.scenario import Scenario
from marketeval.markets.information.scenario import Information

HOSTILE = "<script>alert('C')</script>"
SEATS = {"a": ("Alpha", 0, 0.60), "b": ("Beta", 0, 0.40), "c": (HOSTILE, 2, 0.25)}
PHASES = {"before": (0, 2), "after": (2, 4)}
MAIN = {1: ("aaab", "aaab", "aacc", "bbcc"), 2: ("aabb", "aabb", "bbcc", "cccc")}
CONTROL = {1: ("aaab", "aaab", "aabb", "aabb"), 2: ("aabb", "aabb", "aaaa", "aaaa")}


def written(
    path: Path,
    *,
    seeds: tuple[int, ...] = (1, 2),
    control: bool = True,
    privileged: str = "",
    failing: bool = False,
    title: str = "Gamma enters",
    static: bool = True,
) -> RunDirectory:
    """The run described above, or a variant of it."""
    controls = {"no-entry": {"seats.c": None}} if control else {}
    story = {seed: MAIN[seed] for seed in seeds}
    _write(path, story, "abc", controls, privileged, failing, title, static)
    if control:
        story = {seed: CONTROL[seed] for seed in seeds}
        folder = path / "controls" / "no-entry"
        _write(folder, story, "ab", {}, privileged, failing, "No entry", static)
    return RunDirectory(path)


def _write(
    path: Path,
    story: dict[int, tuple[str, ...]],
    seats: str,
    controls: dict[str, dict[str, object]],
    privileged: str,
    failing: bool,
    title: str,
    static: bool,
) -> None:
    path.mkdir(parents=True)
    sink = PartSink(path, 0)
    log = EventLog(KINDS, sink=sink)
    for seed, steps in story.items():
        log.begin(seed)
        _facts(log, seats, privileged, static)
        for step, asked in enumerate(steps):
            for slot, seat in enumerate(asked):
                failed = failing and (step, slot) == (0, 0)
                _interaction(log, step, slot, seats.index(seat), failed=failed)
        log.end()
    log.close()
    unit = Unit(number=0, digests=log.digests, shared=log.shared_digest, events=sink.rows)
    metrics = ("Retention(m=1)",)
    scenario = Scenario(
        name="pencil",
        title=title,
        market=Information(),
        controls=controls,
        metrics=metrics,
    )
    write_scenario(path, scenario)
    write_manifest(
        path,
        Manifest(
            name="pencil",
            title=title,
            description="A run counted by hand.",
            family="information",
            version="0.1.0",
            engine="general",
            seeds=",".join(map(str, story)),
            status="finished",
            python="3",
            packages={},
            started="",
            log_digest="0123456789abcdef",
            units=(unit,),
        ),
    )


def _facts(log: EventLog, seats: str, privileged: str, static: bool) -> None:
    log.shared("market", horizon=4, users=4, users_per_step=4)
    number = np.arange(len(seats))
    labels, entries, scores = zip(*(SEATS[seat] for seat in seats), strict=True)
    log.shared(
        "generator",
        agent=number,
        seat=list(seats),
        label=list(labels),
        position=number,
        entry_step=np.array(entries),
        privileged=np.array([seat == privileged for seat in seats]),
    )
    if static:
        log.shared(
            "static_score",
            agent=number,
            items=0,
            correct=np.nan,
            attempted=np.nan,
            accuracy=np.array(scores),
            f_score=np.array(scores),
        )
    start, stop = zip(*PHASES.values(), strict=True)
    log.shared("phase", name=list(PHASES), start=list(start), stop=list(stop))


def _interaction(log: EventLog, step: int, slot: int, agent: int, *, failed: bool) -> None:
    log.append(
        "interaction",
        step=step,
        slot=slot,
        user=slot,
        question=0,
        topic=0,
        agent=agent,
        explored=False,
        score=np.nan if failed else 1.0,
        grade=UNGRADED,
        cost_usd=np.nan,
        latency_s=np.nan,
        signal=np.nan,
        utility=np.nan,
        status=OUTAGE if failed else OK,
    )
