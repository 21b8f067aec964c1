"""How many threads kernels may use, and a pool of them: kernels let go of Python's lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
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
    """`function` of each piece of work, in the order of the work, on `kernel_threads()` threads.

    Work that asks for more of it does that by itself.
    """
    threads = min(kernel_threads(), len(work)) if len(work) > 1 else 1
    if threads == 1 or getattr(_HERE, "works", False):
        return [function(one) for one in work]
    return list(_pool(threads).map(function, work))


def each_part(whole: int, most: int, work: Callable[[int, int], object]) -> None:
    """Do some work from place to place, in parts of at most so many places, as `each` does."""
    edges = [*range(0, whole, most), whole]
    each(lambda part: work(*part), list(pairwise(edges)))


_HERE = threading.local()


def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that stay, for who asks: to start some takes as long as a small episode."""
    pools: dict[int, ThreadPoolExecutor] = _HERE.__dict__.setdefault("pools", {})
    if threads not in pools:
        pools[threads] = ThreadPoolExecutor(
            threads, initializer=lambda: setattr(_HERE, "works", True)
        )
    return pools[threads]


if hasattr(os, "register_at_fork"):  # threads do not come along
    os.register_at_fork(after_in_child=lambda: _HERE.__dict__.clear())
