"""How many threads kernels may use, and a pool of them: kernels let go of Python's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Work = TypeVar("Work")
Result = TypeVar("Result")

_LIMIT: ContextVar[int] = ContextVar("kernel_threads", default=0)


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def kernel_threads() -> int:
    """How many threads kernels may use here: all processors, unless `limited` says less."""
    return _LIMIT.get() or cores()


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Let kernels use so many threads at most inside; 0 = as many as there are processors."""
    token = _LIMIT.set(threads)
    try:
        yield
    finally:
        _LIMIT.reset(token)


def each(function: Callable[[Work], Result], work: Sequence[Work]) -> Iterable[Result]:
    """`function` of each piece of work, in the order of the work, on `kernel_threads()` threads."""
    threads = min(kernel_threads(), len(work))
    if threads <= 1:
        return [function(one) for one in work]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, work))
