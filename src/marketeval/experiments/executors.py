"""Who does the work: this process, or several. Results are the same and come in unit order."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Protocol, TypeVar

Work = TypeVar("Work")
Result = TypeVar("Result")


class Executor(Protocol):
    """Does pieces of work, each a pure function of its description, in any order."""

    def map(
        self, function: Callable[[Work], Result], work: Sequence[Work]
    ) -> Iterator[Result]: ...


class Serial:
    """One piece after the other, in this process."""

    def map(self, function: Callable[[Work], Result], work: Sequence[Work]) -> Iterator[Result]:
        """Yield each result as soon as it is there."""
        for piece in work:
            yield function(piece)


class Processes:
    """Spawned processes, one per core."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))

    def map(self, function: Callable[[Work], Result], work: Sequence[Work]) -> Iterator[Result]:
        """Yield results as they come; on an error or interrupt, start nothing new and let what is
        running finish."""
        context = multiprocessing.get_context("spawn")
        workers = min(self.workers, len(work)) or 1
        pool = ProcessPoolExecutor(workers, context)
        try:
            open_work: set[Future[Result]] = {pool.submit(function, piece) for piece in work}
            while open_work:
                done, open_work = wait(open_work, return_when=FIRST_COMPLETED)
                for one in done:
                    yield one.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


EXECUTORS: dict[str, Callable[[], Executor]] = {"serial": Serial, "processes": Processes}
