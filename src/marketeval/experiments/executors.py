"""Who does the work: this process, or several; the results are the same."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

from marketeval.core.errors import RunError, UsageError
from marketeval.core.threads import cores, limited

Work = TypeVar("Work")
Result = TypeVar("Result")
TRIES = 3  # workers that a piece may end
# What tells the threads of linear algebra and of tables how many they may be: as many as kernels
# use, since those of several workers would only stand in each other's way. All linear algebra goes
# by the first unless its own (OPENBLAS_NUM_THREADS, MKL_NUM_THREADS) says otherwise.
POOLS = ("OMP_NUM_THREADS", "POLARS_MAX_THREADS")


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


class WorkerDied(RunError):
    """A piece of work ended the process of every worker that tried it."""


class Processes:
    """Spawned processes, one per core, each with a pipe of its own.

    So a worker that dies is noticed at once, and workers whose parent dies come to the end of
    their pipe and leave (a pool of the standard library would wait for ever in both cases). What
    a worker that dies was doing is begun again by a new one: pieces are pure functions.
    """

    processes = True

    def __init__(self, workers: int | None = None, *, threads: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise UsageError(f"expected at least one worker process, got {workers}")
        self.workers = workers or cores()
        self.threads = threads or max(1, cores() // self.workers)  # of the kernels of each

    def map(
        self, function: Callable[[Work], Result], work: Sequence[Work]
    ) -> Generator[Result, None, None]:
        """Yield results as they come; on an error or an interrupt, end the workers at once.

        Raises WorkerDied, naming the piece, for one that ended TRIES workers.
        """
        waiting = deque(enumerate(work))
        deaths = [0] * len(work)
        crew: dict[Connection, BaseProcess] = {}
        busy: dict[Connection, tuple[int, Work]] = {}

        def hire() -> Connection:
            connection, process = _hired(function, self.threads)
            crew[connection] = process
            return connection

        def give(connection: Connection) -> None:
            busy[connection] = waiting.popleft()
            _send(connection, busy[connection][1])

        try:
            for connection in [hire() for _ in range(min(self.workers, len(work)))]:
                give(connection)
            while busy:
                for connection in _ready(list(busy)):
                    number, piece = busy.pop(connection)
                    answer = _answer(connection)
                    if answer is None:
                        code = _buried(connection, crew.pop(connection))
                        deaths[number] += 1
                        if deaths[number] == TRIES:
                            raise WorkerDied(
                                f"{piece} ended its worker process {TRIES} times ({_how(code)})"
                            )
                        waiting.appendleft((number, piece))
                        give(hire())
                        continue
                    fine, result = answer
                    if not fine:
                        raise result
                    if waiting:
                        give(connection)
                    yield result
        finally:
            for connection, process in crew.items():
                process.terminate()
                _buried(connection, process)


def _hired(function: Callable[[Any], Any], threads: int) -> tuple[Connection, BaseProcess]:
    """A new worker and our end of its pipe. any: the executor knows nothing of the work"""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(function, theirs, threads), daemon=True)
    with _no_interrupts(), _told({name: str(threads) for name in POOLS}):
        process.start()
    theirs.close()
    return mine, process


@contextmanager
def _told(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment for what is started in here, unless the caller did."""
    new = variables.keys() - os.environ.keys()
    os.environ.update({name: variables[name] for name in new})
    try:
        yield
    finally:
        for name in new:
            os.environ.pop(name, None)


def _buried(connection: Connection, process: BaseProcess) -> int | None:
    """The exit code of a worker that has died or is about to."""
    connection.close()
    process.join()
    return process.exitcode


def _how(code: int | None) -> str:
    """What an exit code says of how a process ended."""
    if code is None or code >= 0:
        return f"exit code {code}"
    short = ", as where memory runs out" if code == -9 else ""
    return f"killed by signal {-code}{short}"


def _serve(function: Callable[[Any], Any], pieces: Connection, threads: int) -> None:
    """What a worker does until the pipe ends. any: as in `_hired`"""
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


def _answer(connection: Connection) -> Any:  # any: as in `_hired`
    """Whether a worker's piece went well, with its result or its error; None if it has died."""
    try:
        return connection.recv()
    except (EOFError, OSError):
        return None


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

    A terminal interrupts all processes of a command, and only the parent is to answer. The mask is
    for what is started; in this process another thread would take the signal, and Python tell the
    main one: so that waits for the end too.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    came: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if is_main else None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if handler is not None:
        signal.signal(signal.SIGINT, lambda *_: came.append(1))
    try:
        yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _ray() -> Executor:
    from marketeval.experiments.cluster import Ray

    return Ray()


EXECUTORS: dict[str, Callable[[], Executor]] = {
    "serial": Serial,
    "threads": Threads,
    "processes": Processes,
    "ray": _ray,
}
