"""Work on threads that are kept: in order, errors told, and never in anybody's way."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from marketeval.core.threads import each, each_part, limited


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    with limited(2):
        yield


def doubled(number: int) -> int:
    return 2 * number


def test_work_is_done_once_each_in_order_and_also_within_work() -> None:
    assert list(each(doubled, range(9))) == [2 * number for number in range(9)]
    nested = each(lambda most: list(each(doubled, range(most))), range(5))
    assert list(nested) == [[2 * number for number in range(most)] for most in range(5)]
    done: list[int] = []
    each_part(10, 3, lambda begin, end: done.extend(range(begin, end)))
    assert sorted(done) == list(range(10))
    each_part(0, 3, lambda begin, end: done.clear())
    assert done


def test_an_error_is_the_callers_and_the_threads_go_on() -> None:
    def refuse(number: int) -> int:
        raise ValueError(number)

    with pytest.raises(ValueError, match="0"):
        each(refuse, range(9))
    assert list(each(doubled, range(3))) == [0, 2, 4]


def test_who_asks_at_the_same_time_has_threads_of_their_own() -> None:
    all_at_once = threading.Barrier(4)

    def ask(_: int) -> list[int]:
        with limited(2):
            return list(each(lambda number: all_at_once.wait(timeout=60) and number, range(2)))

    with ThreadPoolExecutor(2) as pool:
        assert len(list(pool.map(ask, range(2)))) == 2


def test_threads_end_with_who_asked() -> None:
    workers: list[threading.Thread] = []

    def ask() -> None:
        with limited(2):
            each(lambda _: workers.append(threading.current_thread()), range(4))

    asker = threading.Thread(target=ask)
    asker.start()
    asker.join()
    for worker in workers:
        worker.join(timeout=60)
        assert not worker.is_alive()


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="nothing forks here"
)
def test_a_forked_process_has_threads_too() -> None:
    assert list(each(doubled, range(4))) == [0, 2, 4, 6]  # threads that do not come along
    mine, theirs = multiprocessing.Pipe()
    forked = multiprocessing.get_context("fork").Process(
        target=lambda: theirs.send(list(each(doubled, range(4))))
    )
    forked.start()
    try:
        assert mine.poll(60)
        assert mine.recv() == [0, 2, 4, 6]
    finally:
        forked.kill()
        forked.join()
