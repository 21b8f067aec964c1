"""Run a scenario and its controls over many seeds into a run directory."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import polars as pl

import marketeval
from marketeval.core.errors import MarketevalError, RunError, ScenarioError, UsageError
from marketeval.core.log import EventLog
from marketeval.experiments.asking import Asking, is_live
from marketeval.experiments.assembly import assemble, check_metrics
from marketeval.experiments.engines import Engine, engine_for
from marketeval.experiments.executors import Executor, Processes, Serial, Threads
from marketeval.experiments.experiment import Experiment
from marketeval.experiments.pieces import Keep, Piece, metrics_of, played, seeds_text
from marketeval.experiments.run_directory import (
    Manifest,
    PartSink,
    RunDirectory,
    Unit,
    check_room,
    clear,
    digest_of,
    discard_halves,
    discard_unfinished,
    held,
    scenario_text,
    write_manifest,
    write_scenario,
    write_table,
)
from marketeval.experiments.scenario import (
    Tree,
    check,
    parse_seeds,
    with_overrides,
)
from marketeval.markets.information.market import InformationMarket
from marketeval.metrics.base import Metric, evaluate, parse_metric

Progress = Callable[[float, int], None]  # episodes done, in part too; episodes in all
UNITS = 16  # pieces an arm is cut into: not a function of who plays, so that parts are alike
LARGEST_UNIT = {"log": 250, "metrics": 1000}  # seeds


def arms_of(tree: Tree) -> dict[str, Experiment]:
    """The scenario itself under '' and each control under its name, all checked.

    A control is the same tree with its overrides; phases are those of the scenario itself, so
    that the two are compared over the same steps.
    """
    scenario = check(tree)
    check_metrics(scenario)
    main = assemble(scenario)
    settled: Tree = {
        **tree,
        "phases": [one.model_dump() for one in main.scenario.phases],
        "metrics": list(main.scenario.metrics),
    }
    arms = {"": main}
    for name, changes in main.scenario.controls.items():
        spelled_out = settled
        if any(key.startswith("seats.") for key in changes) and not tree.get("seats"):
            seats = {seat: one.model_dump() for seat, one in main.scenario.seats.items()}
            spelled_out = {**settled, "seats": seats}
            spelled_out.pop("entries", None)
        try:
            control = with_overrides(spelled_out, changes)
            control["controls"] = {}
            arms[name] = assemble(check(control))
        except UsageError as error:
            raise ScenarioError(f"control '{name}': {error}") from None
    return arms


def run(
    tree: Tree,
    out: Path,
    *,
    executor: Executor | None = None,
    seeds: Sequence[int] | None = None,
    force: bool = False,
    resume: bool = False,
    engine: Engine = "auto",
    keep: Keep = "log",
    units: int = UNITS,
    asking: Asking | None = None,
    progress: Progress | None = None,
) -> RunDirectory:
    """Play a scenario and its controls on the same seeds, compute the metrics, return the run.

    Everything is checked before anything is written. `asking` bounds what models may be asked;
    where somebody is asked, the episodes share one event loop instead of the executor. Without an
    executor, the compiled engine works on threads of this process, and whatever may run somebody
    else's code in processes. With `keep="metrics"` the events are thrown away once the metrics of
    their seeds are computed. Each arm's seeds are cut into `units` pieces, or more if many;
    what is resumed must be cut as before.

    Raises
    ------
    UsageError : what was asked cannot be done; nothing was written
    RunError : it failed on its way; the run directory holds what was finished
    """
    arms = arms_of(tree)
    engines = {name: engine_for(arm, engine) for name, arm in arms.items()}
    stage = None if asking is None else asking.stage
    if stage is not None:
        for arm in arms.values():
            stage.check(arm)
    if seeds is None:
        seeds = parse_seeds(arms[""].scenario.seeds)
    if keep == "metrics" and (stage is not None or any(map(is_live, arms.values()))):
        raise UsageError(
            "expected --keep log: what models and people answered is kept with its log"
        )
    wanted, resume = resume, resume and (out / "manifest.json").is_file()
    if not resume:
        check_room(out, force=force, resume=wanted)
    with held(out):
        done = {
            name: _units_of(_folder(out, name), arm, seeds, keep)
            for name, arm in arms.items()
            if resume
        }
        session = _Session(out, arms, engines, seeds, done, progress, keep, units)
        if any(is_live(arm) for arm in arms.values()) or stage is not None:
            session.play_live(asking or Asking(), resume=resume)
        else:
            session.play(executor or _fitting(arms, engines, len(seeds)), resume=resume)
    return RunDirectory(out)


def _fitting(arms: Mapping[str, Experiment], engines: Mapping[str, str], seeds: int) -> Executor:
    """Threads for the compiled engine, none for little work: starting them takes longer then.

    Whatever may run somebody else's code runs in processes.
    """
    interactions = 0
    for name, arm in arms.items():
        if engines[name] != "compiled" or not isinstance(arm.market, InformationMarket):
            return Processes()
        interactions += seeds * arm.market.spec.horizon * arm.market.spec.users.per_step
    return Serial() if seeds == 1 or interactions < 500_000 else Threads()


class _Session:
    """One invocation of `run`: what is to be played, and how the manifests follow."""

    def __init__(
        self,
        out: Path,
        arms: Mapping[str, Experiment],
        engines: Mapping[str, Literal["general", "compiled"]],
        seeds: Sequence[int],
        done: Mapping[str, tuple[Unit, ...]],
        progress: Progress | None,
        keep: Keep,
        units: int,
    ) -> None:
        self.out, self.arms, self.engines, self.seeds, self.done = out, arms, engines, seeds, done
        self.unfinished = [name for name in arms if not (done and _is_finished(_folder(out, name)))]
        self.keep, self.cuts = keep, units
        self._progress = progress or (lambda done, total: None)
        self._units = {_folder(out, name): list(done.get(name, ())) for name in arms}
        self._manifests: dict[Path, Manifest] = {}  # as they stand on disk: nobody else writes
        self._parts: dict[tuple[Path, int], float] = {}  # of the episodes under way
        self._begun = False

    def play(self, executor: Executor, *, resume: bool) -> None:
        """Play what is not done by an executor, and compute the metrics."""
        with self._told():
            self._begin(resume=resume)
            pieces = [piece for _, piece in self._pieces()]
            if len(pieces) > 1 and pieces[0].engine == "compiled" and executor.processes:
                # Here, so that the kernel is compiled once; no code but our own is run.
                self._take(*played(pieces.pop(0)))
            with contextlib.closing(executor.map(played, pieces)) as results:
                for path, unit in results:
                    self._take(path, unit)
            self._end()

    def play_live(self, asking: Asking, *, resume: bool) -> None:
        """Play what is not done in one event loop, asking as little as possible."""
        from marketeval.experiments import live

        sinks: dict[Piece, PartSink] = {}

        def log_of(piece: Piece) -> tuple[EventLog, Sequence[int]]:
            sinks[piece] = PartSink(piece.path, piece.number)
            kinds = self.arms[self._name(piece.path)].market.events
            return EventLog(kinds, sink=sinks[piece]), piece.seeds

        def finished(piece: Piece, log: EventLog) -> None:
            unit = Unit(
                number=piece.number,
                digests=log.digests,
                shared=log.shared_digest,
                events=sinks[piece].rows,
            )
            self._take(piece.path, unit)

        def stepped(piece: Piece, seed: int, step: int) -> None:
            horizon = getattr(self.arms[""].scenario.market, "horizon", None)
            if horizon and self._parts.get((piece.path, seed)) != step / horizon:
                self._parts[piece.path, seed] = step / horizon
                self._told_progress()

        with self._told():
            live.play(
                self.out,
                {name: arm.scenario for name, arm in self.arms.items()},
                asking,
                work=self._pieces(),
                begin=lambda: self._begin(resume=resume),
                log_of=log_of,
                finished=finished,
                stepped=stepped,
            )
            self._end()

    def _begin(self, *, resume: bool) -> None:
        """From here on something is written."""
        if not resume:
            clear(self.out)
        self._begun = True
        for name in self.unfinished:
            path = _folder(self.out, name)
            done = self.done.get(name, ())
            self._manifests[path] = _open(
                path, self.arms[name], self.engines[name], self.seeds, done, self.keep
            )
        self._told_progress()

    def _end(self) -> None:
        """Compute the metrics and mark the arms as finished."""
        for name in self.unfinished:
            path = _folder(self.out, name)
            discard_halves(path)
            metrics = [parse_metric(text) for text in self.arms[name].scenario.metrics]
            gathered = _gathered if self.keep == "metrics" else evaluate
            write_table(path / "metrics.parquet", gathered(RunDirectory(path), metrics))
            units = self._manifests[path].units
            self._mark(
                path,
                status="finished",
                ended=datetime.now(UTC).isoformat(timespec="seconds"),
                events=sum(unit.events for unit in units),
                log_digest=digest_of(units) if self.keep == "log" else "",
                reason="",
            )

    def _pieces(self) -> list[tuple[str, Piece]]:
        """What is left to play, with the arm it belongs to."""
        return [
            (
                name,
                Piece(
                    path,
                    number,
                    tuple(part),
                    tuple(arm.hashes.items()),
                    self.engines[name],
                    self.keep,
                ),
            )
            for name, arm in self.arms.items()
            for path in [_folder(self.out, name)]
            for number, part in enumerate(cut(self.seeds, self.keep, self.cuts))
            if number not in {unit.number for unit in self._units[path]}
        ]

    def _take(self, path: Path, unit: Unit) -> None:
        """Note a finished unit."""
        self._units[path].append(unit)
        for seed in unit.digests:
            self._parts.pop((path, seed), None)
        self._mark(path, units=tuple(sorted(self._units[path], key=lambda one: one.number)))
        self._told_progress()

    def _mark(self, path: Path, **changes: object) -> None:
        """Change a manifest."""
        self._manifests[path] = self._manifests[path].model_copy(update=changes)
        write_manifest(path, self._manifests[path])

    def _told_progress(self) -> None:
        count = sum(len(unit.digests) for units in self._units.values() for unit in units)
        self._progress(count + sum(self._parts.values()), len(self.seeds) * len(self.arms))

    def _name(self, path: Path) -> str:
        return next(name for name in self.arms if _folder(self.out, name) == path)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Say in the manifests how it ended; before the beginning an error is the caller's."""
        try:
            yield
        except BaseException as error:
            if not self._begun:
                raise
            interrupted = isinstance(error, KeyboardInterrupt)
            reason = "interrupted" if interrupted else f"{type(error).__name__}: {error}"
            for path, manifest in self._manifests.items():
                if manifest.status != "finished":
                    with contextlib.suppress(OSError):
                        self._mark(path, status="failed", reason=" ".join(reason.split()))
            if interrupted:
                raise
            reason = f"{error}" if isinstance(error, MarketevalError) else reason
            raise RunError(
                f"the run stopped on its way: {reason}; what was finished is in {self.out}; "
                "continue it with --resume"
            ) from error


def cut(seeds: Sequence[int], keep: Keep = "log", units: int = UNITS) -> list[Sequence[int]]:
    """The seeds in chunks of equal size, the same for the same seeds wherever they are played."""
    size = max(1, min(LARGEST_UNIT[keep], -(-len(seeds) // units)))
    return [seeds[start : start + size] for start in range(0, len(seeds), size)]


def _folder(out: Path, arm: str) -> Path:
    return out / "controls" / arm if arm else out


def _open(
    path: Path,
    arm: Experiment,
    engine: str,
    seeds: Sequence[int],
    done: Sequence[Unit],
    keep: Keep,
) -> Manifest:
    """Make the folder of an arm ready; its manifest."""
    path.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    started = RunDirectory(path).manifest.started if done else now
    discard_unfinished(path, done)
    scenario = arm.scenario
    manifest = Manifest(
        name=scenario.name,
        title=scenario.title,
        description=scenario.description,
        family=scenario.family,
        version=marketeval.__version__,
        engine=engine,
        keep=keep,
        seeds=seeds_text(seeds),
        data=dict(arm.hashes),
        python=platform.python_version(),
        packages={name: version(name) for name in ("numpy", "numba", "polars", "pydantic")},
        started=started,
        units=tuple(done),
    )
    write_manifest(path, manifest)
    write_scenario(path, scenario)
    return manifest


def _gathered(run: RunDirectory, metrics: Sequence[Metric]) -> pl.DataFrame:
    """What the units computed, in the order of `evaluate`: metric by metric, then unit by unit."""
    order = pl.Enum(list(dict.fromkeys(map(str, metrics))))
    tables = [pl.read_parquet(metrics_of(run.path, unit.number)) for unit in run.manifest.units]
    return pl.concat(tables).sort(pl.col("metric").cast(order), maintain_order=True)


def _is_finished(path: Path) -> bool:
    return (path / "manifest.json").is_file() and RunDirectory(path).manifest.status == "finished"


def _units_of(path: Path, arm: Experiment, seeds: Sequence[int], keep: Keep) -> tuple[Unit, ...]:
    """What an earlier run of the very same scenario and seeds has finished."""
    if not all((path / name).is_file() for name in ("manifest.json", "scenario.yaml")):
        return ()
    earlier = RunDirectory(path)
    same = scenario_text(earlier.scenario) == scenario_text(arm.scenario)
    if not same or earlier.manifest.data != dict(arm.hashes):
        raise UsageError(
            f"{path} holds a run of another scenario or other data, so it cannot be resumed; "
            "choose another --out, or --force to replace it"
        )
    if earlier.manifest.keep != keep:
        raise UsageError(f"{path} was started with --keep {earlier.manifest.keep}; resume it so")
    if earlier.manifest.seeds != seeds_text(seeds):
        raise UsageError(
            f"{path} was started with seeds {earlier.manifest.seeds}, not {seeds_text(seeds)}; "
            "resume it with the same seeds"
        )
    return earlier.manifest.units
