"""Every store keeps the port's promises: the same checks on memory, SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest

from marketeval.apps.server.serving import journal
from marketeval.core.errors import StoreError, UsageError
from marketeval.stores.base import Batch, Journal

ABOUT = {"rules": "strict"}
ODD = 'it\'s "odd"; DROP TABLE journal;-- \\u0000 – ü 🌮'


def run(coroutine):
    return asyncio.run(coroutine)


async def everything(store: Journal) -> list[tuple[int, str]]:
    return [line async for chunk in store.read() for line in chunk]


async def opened(database: str) -> Journal:
    store, _ = journal(database)
    await store.open(ABOUT)
    return store


def test_lines_come_back_in_order_and_as_they_were(database):
    async def play():
        store = await opened(database)
        await store.append(Batch([(1, ODD), (2, "b")]))
        await store.append(Batch([(3, "c")]))
        found = await everything(store)
        await store.close()
        return found

    assert run(play()) == [(1, ODD), (2, "b"), (3, "c")]


def test_many_lines_are_read_in_chunks(database):
    async def play():
        store = await opened(database)
        await store.append(Batch([(number, str(number)) for number in range(1, 25_001)]))
        sizes = [len(chunk) async for chunk in store.read()]
        await store.close()
        return sizes

    assert run(play()) == [10_000, 10_000, 5_000]


def test_what_is_committed_is_there_for_the_next_writer(lasting):
    async def write():
        store = await opened(lasting)
        await store.append(Batch([(1, "a")], notes=[(1, 5, "n")]))
        await store.close()

    async def read():
        store, _ = journal(lasting)
        about = await store.open({"rules": "others"})
        found = await everything(store), await store.count_notes(), about["rules"]
        await store.close()
        return found

    run(write())
    assert run(read()) == ([(1, "a")], 1, "strict")


def test_a_batch_that_fails_leaves_nothing_and_the_store_goes_on(lasting):
    async def play():
        store = await opened(lasting)
        await store.append(Batch([(1, "a")]))
        with pytest.raises(StoreError):
            await store.append(Batch([(2, "b"), (1, "twice")], notes=[(1, 1, "n")]))
        last = await store.recover()
        await store.append(Batch([(2, "c")]))
        found = await everything(store), await store.count_notes(), last
        await store.close()
        return found

    assert run(play()) == ([(1, "a"), (2, "c")], 0, 1)


def test_a_second_writer_is_refused_in_one_line_until_the_first_has_gone(lasting):
    async def play():
        first = await opened(lasting)
        second, _ = journal(lasting)
        with pytest.raises(UsageError, match="one writer per market"):
            await second.open(ABOUT)
        await first.close()
        await second.open(ABOUT)
        await second.close()

    run(play())


def test_lines_from_a_number_on_can_be_set_aside(database):
    async def play():
        store = await opened(database)
        await store.append(Batch([(number, str(number)) for number in range(1, 6)]))
        lost = await store.set_aside(4)
        await store.append(Batch([(4, "new")]))
        found = lost, await everything(store)
        await store.close()
        return found

    assert run(play()) == (2, [(1, "1"), (2, "2"), (3, "3"), (4, "new")])


def test_notes_are_paged_strictly_between_two_moments(database):
    async def play():
        store = await opened(database)
        await store.append(Batch([], notes=[(n, n * 10, f"n{n}") for n in range(1, 7)]))
        found = (
            await store.notes(after=10, before=60, offset=0, limit=None),
            await store.notes(after=None, before=None, offset=1, limit=2),
            await store.count_notes(),
        )
        await store.close()
        return found

    assert run(play()) == (["n2", "n3", "n4", "n5"], ["n2", "n3"], 6)
