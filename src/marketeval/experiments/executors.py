"""Who does the work: this process, or several; the results are the same."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

from marketeval.core.errors import RunError
from marketeval.core.threads import cores, limited

Work = TypeVar("Work")
Result = TypeVar("Result")


class Executor(Protocol):
    """Does pieces of work, each a pure function of its description, in any order.

    `processes`: whether others than this one do it.
    """

    @property
    def processes(self) -> bool: ...

    def map(
        self, function: Callable[[Work], Result], work: Sequence[Work]
    ) -> Generator[Result, None, None]: ...


class Serial:
    """One piece after the other, in this process; kernels may use all processors."""

    processes = False

    def map(
        self, function: Callable[[Work], Result], work: Sequence[Work]
    ) -> Generator[Result, None, None]:
        """Yield each result as soon as it is there."""
        for piece in work:
            yield function(piece)


class Threads:
    """Threads of this process, one per core: for work that leaves Python's lock alone."""

    processes = False

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or cores()

    def map(
        self, function: Callable[[Work], Result], work: Sequence[Work]
    ) -> Generator[Result, None, None]:
        """Yield results as they come; on an error, let the open ones finish and begin no other."""
        share = max(1, self.workers // max(1, min(self.workers, len(work))))

        def alone(piece: Work) -> Result:
            with limited(share):
                return function(piece)

        pool = ThreadPoolExecutor(self.workers)
        try:
            for done in as_completed([pool.submit(alone, piece) for piece in work]):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)


class Processes:
    """Spawned processes, one per core, each with a pipe of its own.

    So a worker that dies is noticed at once, and workers whose parent dies come to the end of
    their pipe and leave (a pool of the standard library would wait for ever in both cases).
    """

    processes = True

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or cores()

    def map(
        self, function: Callable[[Work], Result], work: Sequence[Work]
    ) -> Generator[Result, None, None]:
        """Yield results as they come; on an error or an interrupt, end the workers at once."""
        context = multiprocessing.get_context("spawn")
        waiting = deque(work)
        workers: dict[Connection, BaseProcess] = {}
        try:
            with _no_interrupts():
                for _ in range(min(self.workers, len(work))):
                    mine, theirs = context.Pipe()
                    worker: BaseProcess = context.Process(
                        target=_serve,
                        args=(function, theirs, max(1, cores() // self.workers)),
                        daemon=True,
                    )
                    worker.start()
                    theirs.close()
                    workers[mine] = worker
            busy = list(workers)
            for connection in busy:
                _send(connection, waiting.popleft())
            while busy:
                for connection in _ready(busy):
                    result = _result(connection, workers[connection])
                    if waiting:
                        _send(connection, waiting.popleft())
                    else:
                        busy.remove(connection)
                    yield result
        finally:
            for connection, worker in workers.items():
                connection.close()
                worker.terminate()
                worker.join()


def _serve(function: Callable[[Any], Any], pieces: Connection, threads: int) -> None:
    """What a worker does until the pipe ends. Any: the executor knows nothing of the work."""
    with limited(threads), suppress(EOFError, OSError):
        while True:
            piece = pieces.recv()
            try:
                answer = (True, function(piece))
            except BaseException as error:  # handed to the parent
                answer = (False, _portable(error))
            pieces.send(answer)


def _ready(busy: Sequence[Connection]) -> list[Connection]:
    return [one for one in wait(busy) if isinstance(one, Connection)]


def _send(connection: Connection, piece: object) -> None:
    with suppress(OSError):  # a worker that has died is noticed by the missing result
        connection.send(piece)


def _result(connection: Connection, worker: BaseProcess) -> Any:  # any: as in _serve
    try:
        fine, value = connection.recv()
    except (EOFError, OSError):
        worker.join()
        raise RunError(f"a worker process died (exit code {worker.exitcode})") from None
    if not fine:
        raise value
    return value


def _portable(error: BaseException) -> BaseException:
    """The error itself if it survives the way to another process, else its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RunError(f"{type(error).__name__}: {error}")
    return error


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """What starts in here never sees an interrupt; ours comes afterwards.

    A terminal interrupts all processes of a command, and only the parent is to answer.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ray() -> Executor:
    from marketeval.experiments.cluster import Ray

    return Ray()


EXECUTORS: dict[str, Callable[[], Executor]] = {
    "serial": Serial,
    "threads": Threads,
    "processes": Processes,
    "ray": _ray,
}
