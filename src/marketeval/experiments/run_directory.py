"""What an experiment leaves behind, and how it is written so that nothing finished is lost.

RUN/scenario.yaml                    resolved: every default and override spelled out
RUN/manifest.json                    versions, seeds, data hashes, units done, the log's digest
RUN/events/KIND/UNIT-PART.parquet    the log, a series of parts per unit of work
RUN/metrics.parquet                  tidy: seed, metric, window, step, subject, value, note
RUN/report.html                      one page, opens without a network
RUN/controls/NAME/                   a control, played on the same seeds; same form
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Literal

import polars as pl
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from marketeval.core.columns import Values, empty_frame
from marketeval.core.errors import DataError, UnknownNameError, UsageError
from marketeval.core.log import combine_digests
from marketeval.core.parts import as_array
from marketeval.experiments.families import FAMILIES
from marketeval.experiments.scenario import Scenario, check, parse_yaml


class Unit(BaseModel):
    """A finished piece of work: some seeds of one scenario, with the digest of each episode."""

    model_config = ConfigDict(frozen=True)

    number: int
    digests: dict[int, str]
    shared: str
    events: int


class Manifest(BaseModel):
    """What must be known to trust, repeat or continue a run."""

    model_config = ConfigDict(frozen=True)

    name: str
    title: str
    description: str
    family: str
    version: str
    engine: str
    keep: Literal["log", "metrics"] = "log"
    seeds: str
    status: Literal["running", "finished", "failed"] = "running"
    reason: str = ""
    data: dict[str, str] = {}
    python: str
    packages: dict[str, str]
    started: str
    ended: str = ""
    events: int = 0
    log_digest: str = ""
    units: tuple[Unit, ...] = ()

    def digests(self) -> dict[int, str]:
        """The digest of each finished episode."""
        return {seed: one for unit in self.units for seed, one in unit.digests.items()}


class RunDirectory:
    """One run on disk, as readers see it: only what was finished."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not (path / "manifest.json").is_file():
            raise DataError(f"{path} is no run directory: expected a manifest.json in it")

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest as it was when first read."""
        path = self.path / "manifest.json"
        try:
            manifest = Manifest.model_validate_json(path.read_text("utf-8", "replace"))
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"]))
            raise DataError(f"{path}: {where}{': ' if where else ''}{problem['msg']}") from None
        if manifest.family not in FAMILIES:
            raise DataError(f"{path}: unknown market family '{manifest.family}'")
        return manifest

    @cached_property
    def scenario(self) -> Scenario:
        """The resolved scenario."""
        path = self.path / "scenario.yaml"
        if not path.is_file():
            raise DataError(f"{self.path} has no scenario.yaml")
        return check(parse_yaml(path.read_text("utf-8", "replace"), str(path)))

    @property
    def log(self) -> RunDirectory:
        """The events; a run directory reads as a log (`core.log.LogReader`)."""
        return self

    @property
    def controls(self) -> dict[str, RunDirectory]:
        """The controls by name, in the scenario's order."""
        folders = {name: self.path / "controls" / name for name in self.scenario.controls}
        return {name: RunDirectory(at) for name, at in folders.items() if at.is_dir()}

    def seeds(self) -> list[int]:
        """The finished seeds, ascending."""
        return sorted(self.manifest.digests())

    def scan(self, kind: str) -> pl.LazyFrame:
        """All rows of a kind in seed and row order, facts shared by all seeds once."""
        family = FAMILIES[self.manifest.family]
        declared = {one.name: one for one in family.KINDS}
        if kind not in declared:
            raise UnknownNameError("event", kind, declared)
        if self.manifest.keep == "metrics" and declared[kind] not in family.SHARED:
            raise UsageError(
                f"{self.path} was run with --keep metrics and has no events; its metrics are in "
                "metrics.parquet; for others run it with --keep log"
            )
        parts = self._parts(kind)
        if not parts:
            return empty_frame(declared[kind]).lazy()
        rows = pl.scan_parquet(parts)
        if declared[kind] in family.SHARED:
            rows = rows.unique(maintain_order=True)
        return rows

    def batches(self, kind: str, names: Sequence[str]) -> Iterator[dict[str, Values]]:
        """Some columns of a kind as numpy arrays, part by part in row order; else as `scan`."""
        rows = self.scan(kind)
        if any(kind == one.name for one in FAMILIES[self.manifest.family].SHARED):
            tables: Iterable[pl.DataFrame] = [rows.select(names).collect()]
        else:
            tables = (pl.read_parquet(part, columns=list(names)) for part in self._parts(kind))
        for table in tables:
            yield {name: as_array(table[name]) for name in names}

    def _parts(self, kind: str) -> list[Path]:
        """The finished parts of a kind, in row order."""
        folder = self.path / "events" / kind
        done = {unit.number for unit in self.manifest.units}
        return sorted(part for part in folder.glob("*.parquet") if unit_of(part) in done)

    def metrics(self) -> pl.DataFrame:
        """The tidy table of the metrics that were computed when the run ended."""
        path = self.path / "metrics.parquet"
        if not path.is_file():
            raise DataError(f"{self.path} has no metrics yet; use marketeval metrics {self.path}")
        return pl.read_parquet(path)


LARGE = 1 << 17  # rows of a part that is written quickly


class PartSink:
    """Writes the parts of one unit's log under `events/KIND/UNIT-PART.parquet`."""

    def __init__(self, path: Path, unit: int) -> None:
        self._path = path
        self._unit = unit
        self._written: dict[str, int] = {}
        self.rows = 0

    def write(self, kind: str, part: pl.DataFrame) -> None:
        """Write one part, under its name only once it is whole."""
        number = self._written.get(kind, 0)
        self._written[kind] = number + 1
        folder = self._path / "events" / kind
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"{self._unit:06d}-{number:04d}.parquet"
        write_table(target, part, quickly=part.height >= LARGE)
        self.rows += part.height


def unit_of(part: Path) -> int:
    """The unit that wrote a part; -1 for a file that is no part."""
    number = part.name.partition("-")[0]
    return int(number) if number.isdecimal() else -1


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A place to write a file to, which takes its name only once it is whole.

    The place is this process's own: one that was believed dead may be writing the same part.
    """
    half = path.with_name(f"{path.name}.{os.getpid()}.half")
    try:
        yield half
        os.replace(half, path)
    except BaseException:
        with suppress(OSError):
            half.unlink()  # a full disk needs the room
        raise


def write_table(path: Path, table: pl.DataFrame, *, quickly: bool = False) -> None:
    """Write a Parquet file as a whole; quickly takes half the time and twice the room."""
    with whole(path) as half:
        if quickly:
            table.write_parquet(half, compression="lz4", statistics=False)
        else:
            table.write_parquet(half)


def write_text(path: Path, text: str) -> None:
    """Replace a small file as a whole, so that a reader never sees half of it."""
    with whole(path) as half:
        half.write_text(text, "utf-8")


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Replace RUN/manifest.json."""
    write_text(path / "manifest.json", manifest.model_dump_json(indent=1) + "\n")


def write_scenario(path: Path, scenario: Scenario) -> None:
    """Write RUN/scenario.yaml."""
    write_text(path / "scenario.yaml", scenario_text(scenario))


def scenario_text(scenario: Scenario) -> str:
    """A resolved scenario as it stands in RUN/scenario.yaml."""
    tree = scenario.model_dump(mode="json", exclude_none=True)
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)


def discard_unfinished(path: Path, units: Sequence[Unit]) -> None:
    """Remove the parts of units that did not finish, and files that never became whole."""
    done = {unit.number for unit in units}
    for part in (path / "events").glob("*/*.parquet"):
        if unit_of(part) not in done:
            part.unlink(missing_ok=True)
    discard_halves(path)


def discard_halves(path: Path) -> None:
    """Remove files that never became whole: those of processes that were killed."""
    for pattern in ("*.half", "metrics/*.half", "events/*/*.half"):
        for half in path.glob(pattern):
            half.unlink(missing_ok=True)


LOCK = ".lock"
CALLS = "calls.sqlite"


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep a run directory for one writing process at a time.

    Raises UsageError where another process is writing it. The lock goes with its process, however
    that ends; where the system has no such locks, there is none.
    """
    path.mkdir(parents=True, exist_ok=True)
    with (path / LOCK).open("w") as lock:
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except BlockingIOError:
            raise UsageError(
                f"{path} is being written by another process; wait for it, or choose another --out"
            ) from None
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                (path / LOCK).unlink()
                path.rmdir()  # if nothing was written


def check_room(path: Path, *, force: bool, resume: bool = False) -> None:
    """Refuse a folder in use, unless it may be replaced and holds a run (or nothing).

    A folder with recorded calls and nothing else may be resumed: the run stopped before it began.
    """
    if not path.exists():
        return
    if not path.is_dir():
        raise UsageError(f"the output {path} is a file; choose another --out")
    names = {one.name for one in path.iterdir()} - {LOCK}
    if not names or (resume and all(name.startswith(CALLS) for name in names)):
        return
    if not any((*path.glob("manifest.json*"), *path.glob(CALLS))):
        raise UsageError(
            f"the output folder {path} is in use and holds no run, so nothing here is replaced; "
            "choose another --out"
        )
    if not force:
        raise UsageError(
            f"the output folder {path} is in use; choose another --out, or --force to replace it, "
            "or --resume to continue it"
        )


def clear(path: Path) -> None:
    """Empty a folder that is held; calls that were paid for stay."""
    for one in path.iterdir():
        if one.name == LOCK or one.name.startswith(CALLS):
            continue
        if one.is_dir():
            shutil.rmtree(one)
        else:
            one.unlink()


def digest_of(units: Sequence[Unit]) -> str:
    """The digest of the log that the units make up."""
    digests = {seed: one for unit in units for seed, one in unit.digests.items()}
    return combine_digests(units[0].shared if units else "", digests)
