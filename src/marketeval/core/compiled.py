"""The one place where numba is configured: compiled functions that keep IEEE arithmetic."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from marketeval import __version__

F = TypeVar("F", bound=Callable[..., Any])  # any: numba infers the types of a kernel by itself


def kernel(function: F) -> F:
    """Compile a function at its first call and keep the machine code for later processes.

    No fast-math: sums keep their order and division stays division, so that a formula gives the
    same bits wherever it is inlined. The GIL is released, so kernels may run on threads.
    """
    compiled = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    _tie_cache_to_the_whole_package(compiled)
    _let_one_process_write_at_a_time(compiled)
    return cast(F, compiled)  # cast: numba has no types of its own


def inline(function: F) -> F:
    """Compile a helper that only kernels call; it is never cached or called by itself."""
    compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return cast(F, compiled)  # cast: numba has no types of its own


def _tie_cache_to_the_whole_package(compiled: Any) -> None:  # any: a numba dispatcher
    """Make kept machine code stale when any source file changes.

    numba looks at the kernel's own file alone, and would go on using an old formula that the
    kernel inlines from another file. It has no public switch for this.
    """
    file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)  # any: as above
    if hasattr(file, "_source_stamp"):
        file._source_stamp = (file._source_stamp, *_package_stamp())


def _let_one_process_write_at_a_time(compiled: Any) -> None:  # any: as above
    """Keep processes that compile or load the same kernel at once from mixing up what is kept.

    numba reads an index, writes it back, and only then writes the code itself: two processes could
    give one file to two versions of a kernel, or load the file of a version that was there before.
    """
    kept: Any = getattr(compiled, "_cache", None)  # any: as above
    for name, alone in (("save_overload", True), ("load_overload", False)):
        if hasattr(kept, name) and hasattr(kept, "cache_path"):
            setattr(kept, name, _locked(getattr(kept, name), Path(kept.cache_path), alone=alone))


def _locked(step: Callable[..., Any], folder: Path, *, alone: bool) -> Callable[..., Any]:
    """A step of numba's that holds the lock of a folder, alone or with other readers (any: the
    step's own arguments and result)."""

    def with_lock(*arguments: Any) -> Any:
        try:
            import fcntl

            folder.mkdir(parents=True, exist_ok=True)
            lock = (folder / ".lock").open("w")
        except (ImportError, OSError):  # no locks here, or nowhere to write: numba's own way
            return step(*arguments)
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            return step(*arguments)

    return with_lock


@cache
def _package_stamp() -> tuple[str, int, int]:
    """The version, the newest change and the summed size of the package's source files."""
    sources = list(_sources(Path(__file__).parents[1]))
    newest = max(source.st_mtime_ns for source in sources)
    return __version__, newest, sum(source.st_size for source in sources)


def _sources(folder: str | Path) -> Iterator[os.stat_result]:
    """The source files of a folder and of those in it; pathlib takes three times as long."""
    for one in os.scandir(folder):
        if one.is_dir():
            yield from _sources(one.path)
        elif one.name.endswith(".py"):
            yield one.stat()
