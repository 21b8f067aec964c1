"""Work on threads: in order, by itself where it is work already, and after a fork."""

from __future__ import annotations

import multiprocessing
import threading

import pytest

from marketeval.core.threads import each, each_part, kernel_threads, limited


def squares(count: int) -> list[int]:
    return list(each(lambda one: one * one, range(count)))


def test_results_come_in_the_order_of_the_work() -> None:
    with limited(3):
        assert squares(100) == [one * one for one in range(100)]


def test_parts_cover_all_places_once() -> None:
    seen: list[int] = []
    with limited(2):
        each_part(10, 4, lambda begin, end: seen.extend(range(begin, end)))
    assert sorted(seen) == list(range(10))


def test_work_that_asks_for_more_does_that_by_itself() -> None:
    def inner(one: int) -> set[int]:
        return set(each(lambda _: threading.get_ident(), range(4)))

    with limited(2):
        assert all(len(threads) == 1 for threads in each(inner, range(4)))


def test_an_error_of_the_work_is_the_callers_and_the_threads_stay() -> None:
    def fail(one: int) -> int:
        raise ValueError(f"no {one}")

    with limited(2):
        with pytest.raises(ValueError, match="no 0"):
            each(fail, range(3))
        assert squares(3) == [0, 1, 4]


def test_a_limit_ends_where_it_was_set() -> None:
    before = kernel_threads()
    with limited(1):
        assert kernel_threads() == 1
    assert kernel_threads() == before


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork"
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    def child(pipe) -> None:  # type: ignore[no-untyped-def]  # a pipe's end
        with limited(2):
            pipe.send(squares(4))

    with limited(2):
        squares(4)
    mine, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(theirs,), daemon=True)
    process.start()
    answered = mine.poll(20)
    process.terminate()
    process.join()
    assert answered
    assert mine.recv() == [0, 1, 4, 9]
