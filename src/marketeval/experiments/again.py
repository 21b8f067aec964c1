"""Play a run again from its resolved scenario and hold its digests to the recorded ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from marketeval.core.drive import lockstep
from marketeval.core.errors import ReplayError, UsageError
from marketeval.core.log import EventLog, combine_digests
from marketeval.experiments import live
from marketeval.experiments.asking import Asking, is_live
from marketeval.experiments.assembly import assemble
from marketeval.experiments.engines import Engine, engine_for, playable
from marketeval.experiments.experiment import Experiment
from marketeval.experiments.run_directory import RunDirectory, Unit


def replay_run(
    run: RunDirectory, *, engine: Engine = "auto", progress: Callable[[int, int], None]
) -> Iterator[tuple[str, int, str]]:
    """Name, number of episodes and log digest of the run and of each control, once each is checked.

    Raises
    ------
    UsageError : the run is not finished, or its data have changed since
    ReplayError : an episode came out differently; the message names its seed
    """
    arms = [(run.manifest.name, run), *run.controls.items()]
    total = sum(len(arm.seeds()) for _, arm in arms)
    count = 0
    for name, arm in arms:
        manifest = arm.manifest
        if manifest.status != "finished":
            raise UsageError(f"{arm.path} is {manifest.status}; finish it with run --resume first")
        if manifest.keep == "metrics":
            raise UsageError(f"{arm.path} was run with --keep metrics: there is no log to replay")
        experiment = assemble(arm.scenario)
        if dict(experiment.hashes) != manifest.data:
            now, then = dict(experiment.hashes), manifest.data
            other = sorted(one for one in {*now, *then} if now.get(one) != then.get(one))
            raise UsageError(f"{arm.path}: {', '.join(other)} have changed since the run")
        shared = ""
        for unit, log in _played_again(run, arm, experiment, engine):
            for seed, recorded in unit.digests.items():
                if log.digests[seed] != recorded:
                    raise ReplayError(
                        f"{name}, seed {seed}: the episode differs from the recorded one "
                        f"({log.digests[seed]}, not {recorded}); recorded by version "
                        f"{manifest.version}"
                    )
            _compare_events(name, arm, log)
            shared = log.shared_digest
            count += len(unit.digests)
            progress(count, total)
        whole = combine_digests(shared, manifest.digests())
        if whole != manifest.log_digest:
            raise ReplayError(
                f"{name}: the log's digest is {whole}, not {manifest.log_digest} as recorded: the "
                "episodes are the same, what holds for all of them is not"
            )
        yield name, len(arm.seeds()), manifest.log_digest


def _played_again(
    run: RunDirectory, arm: RunDirectory, experiment: Experiment, engine: Engine
) -> Iterator[tuple[Unit, EventLog]]:
    """Each unit of an arm with the log it gives now; who was asked, from the cassette."""
    if not is_live(experiment):
        market, seats = playable(experiment, engine_for(experiment, engine))
        for unit in arm.manifest.units:
            log = EventLog(market.events)
            for seed in unit.digests:
                lockstep(market, seats, seed=seed, log=log)
            yield unit, log
        return
    done: list[tuple[Unit, EventLog]] = []
    own = next((one for one, control in run.controls.items() if control.path == arm.path), "")
    live.play(
        run.path,
        {"": run.scenario, own: arm.scenario},
        Asking(mode="replay-only"),
        work=[(own, unit) for unit in arm.manifest.units],
        begin=lambda: None,
        log_of=lambda unit: (EventLog(experiment.market.events), sorted(unit.digests)),
        finished=lambda unit, log: done.append((unit, log)),
    )
    yield from sorted(done, key=lambda one: one[0].number)


def _compare_events(name: str, run: RunDirectory, log: EventLog) -> None:
    """Hold the events on disk to those just played."""
    seeds = pl.col("seed").is_in(log.seeds()) | pl.col("seed").is_null()
    for kind in log.kinds:
        if not run.scan(kind).filter(seeds).collect().equals(log.scan(kind).collect()):
            raise ReplayError(
                f"{name}: the events '{kind}' in {run.path} are not those that were recorded: a "
                "file was changed after the run"
            )
