"""The event log: what it refuses, what it keeps, and when two logs are equal."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketeval.core.errors import EventError, UnknownNameError
from marketeval.core.log import Column, EventKind, EventLog

SALE = EventKind(
    "sale",
    "something is sold",
    (
        Column("step", "int32", "step", low=0),
        Column("price", "float64", "price", low=0, high=100, nullable=True),
        Column("rate", "float64", "a share", low=0, high=1),
        Column("paid", "bool", "whether it was paid"),
        Column("grade", "enum", "how good", values=("bad", "good", "none")),
        Column("buyer", "text", "who"),
    ),
)
NOTE = EventKind("note", "a remark", (Column("text", "text", "what", nullable=True),))
FACT = EventKind("fact", "a fact", (Column("size", "int8", "how big", low=0),))
GOOD = {"step": 1, "price": 2.0, "rate": 0.5, "paid": True, "grade": 1, "buyer": "ann"}


class Shelf:
    """A sink that keeps the parts it is given."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, pl.DataFrame]] = []

    def write(self, kind: str, part: pl.DataFrame) -> None:
        self.parts.append((kind, part))


def a_log(**options) -> EventLog:
    log = EventLog([SALE, NOTE, FACT], **options)
    log.begin(7)
    return log


def sales(log: EventLog) -> pl.DataFrame:
    return log.scan("sale").collect()


def digest_of(rows: dict[str, list], cuts: list[int] | None = None, **options) -> str:
    log = a_log(**options)
    edges = [0, *sorted(cuts or []), len(rows["step"])]
    for start, stop in itertools.pairwise(edges):
        if stop > start:
            log.append("sale", **{name: values[start:stop] for name, values in rows.items()})
    return log.end()


def some_rows(count: int) -> dict[str, list]:
    return {
        "step": list(range(count)),
        "price": [math.nan if i % 3 == 0 else i / 7 for i in range(count)],
        "rate": [1 / (i + 1) for i in range(count)],
        "paid": [i % 2 == 0 for i in range(count)],
        "grade": [i % 3 for i in range(count)],
        "buyer": ["x" * (i % 5) for i in range(count)],
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"buyre": "bob"}, "missing columns \\[\\], unknown columns \\['buyre'\\]"),
        ({"step": -1}, "'step' takes 0 to"),
        ({"step": np.array([2**31])}, "'step' takes 0 to"),
        ({"step": np.array([2**64 - 2**32 + 1], np.uint64)}, "'step' takes 0 to"),
        ({"step": 2**70}, "'step' takes 0 to"),
        ({"step": 1.0}, "'step' takes int32, got 1.0"),
        ({"step": math.nan}, "'step' takes int32, got nan"),
        ({"step": np.array([math.nan])}, "'step' takes int32"),
        ({"step": True}, "'step' takes int32, got True"),
        ({"step": np.array([True])}, "'step' takes int32"),
        ({"step": "1"}, "'step' takes int32"),
        ({"step": None}, "'step' takes int32"),
        ({"step": np.array([[1]])}, "takes one dimension"),
        ({"price": 100.5}, "takes 0 to 100 or null"),
        ({"price": np.array([100.5])}, "takes 0 to 100 or null"),
        ({"price": -math.inf}, "takes 0 to 100 or null"),
        ({"price": True}, "'price' takes float64"),
        ({"price": "2"}, "'price' takes float64"),
        ({"rate": math.nan}, "'rate' takes 0 to 1, got nan"),
        ({"rate": np.array([math.nan])}, "'rate' takes 0 to 1"),
        ({"paid": 1}, "'paid' takes bool"),
        ({"paid": np.array([1])}, "'paid' takes bool"),
        ({"grade": 3}, "'grade' takes 0 to 2"),
        ({"grade": np.array([-1])}, "'grade' takes 0 to 2"),
        ({"grade": "good"}, "'grade' takes enum"),
        ({"buyer": 5}, "expected text in 'buyer'"),
        ({"buyer": None}, "expected text in 'buyer'"),
        ({"buyer": ["a", None]}, "expected text in 'buyer'"),
        ({"step": [1, 2], "buyer": ["a", "b", "c"]}, "columns of one length"),
    ],
)
def test_what_the_schema_forbids_is_refused_and_leaves_no_trace(change, words):
    log = a_log()
    log.append("sale", **GOOD)
    before = sales(log)
    with pytest.raises(EventError, match=words):
        log.append("sale", **{**GOOD, **change})
    assert sales(log).equals(before)
    log.append("sale", **GOOD)
    assert sales(log)["turn"].to_list() == [0, 1]


def test_a_missing_column_and_an_unknown_kind_are_named():
    log = a_log()
    with pytest.raises(EventError, match=r"missing columns \['buyer', 'grade'\]"):
        log.append("sale", step=1, price=1.0, rate=0.1, paid=True)
    with pytest.raises(EventError, match="unknown event 'sael'; did you mean 'sale'"):
        log.append("sael", step=1)
    with pytest.raises(UnknownNameError, match="unknown event 'price'"):
        log.scan("price")


def test_append_copies_before_it_returns():
    log = a_log()
    steps, prices, buyers = np.array([1, 2]), np.array([1.0, 2.0]), ["ann", "bob"]
    log.append("sale", **{**GOOD, "step": steps, "price": prices, "buyer": buyers})
    steps[:], prices[:], buyers[:] = 9, 9.0, ["eve", "eve"]
    found = sales(log)
    assert found["step"].to_list() == [1, 2]
    assert found["price"].to_list() == [1.0, 2.0]
    assert found["buyer"].to_list() == ["ann", "bob"]


def test_a_table_read_from_the_log_does_not_change_with_later_events():
    log = a_log()
    log.append("sale", **GOOD)
    early = sales(log)
    for step in range(5000):
        log.append("sale", **{**GOOD, "step": step})
    assert early.height == 1
    assert sales(log).height == 5001


def test_scalars_repeat_and_values_come_back_as_declared():
    log = a_log()
    log.append("sale", **{**GOOD, "price": np.array([math.nan, 1.5], np.float32), "grade": [0, 2]})
    found = sales(log)
    assert found.columns == ["seed", "turn", *(column.name for column in SALE.columns)]
    assert found.rows() == [
        (7, 0, 1, None, 0.5, True, "bad", "ann"),
        (7, 0, 1, 1.5, 0.5, True, "none", "ann"),
    ]
    assert found.schema["step"] == pl.Int32
    assert found.schema["grade"] == pl.Enum(["bad", "good", "none"])
    log.append("note", text=["a", None])
    assert log.scan("note").collect()["text"].to_list() == ["a", None]


@pytest.mark.parametrize("empty", [[], (), np.empty(0, np.int64)])
def test_no_rows_are_rows_too(empty):
    log = a_log()
    log.append("sale", **{**GOOD, "step": empty})
    log.append("sale", **{**GOOD, "step": empty, "price": [], "paid": [], "grade": [], "buyer": []})
    assert sales(log).height == 0
    assert sales(log).schema == EventLog([SALE]).scan("sale").collect().schema


def test_the_order_between_kinds_is_kept_in_turn():
    log = a_log()
    log.append("sale", **GOOD)
    log.append("note", text="first")
    log.append("sale", **{**GOOD, "step": [4, 5]})
    assert sales(log)["turn"].to_list() == [0, 2, 2]
    assert log.scan("note").collect()["turn"].to_list() == [1]
    log.end()
    log.begin(8)
    log.append("note", text="again")
    assert log.scan("note").collect().rows() == [(7, 1, "first"), (8, 0, "again")]


@given(cuts=st.lists(st.integers(0, 40), max_size=6), size=st.integers(1, 50))
def test_the_digest_hangs_on_rows_and_not_on_appends_or_parts(cuts, size):
    rows = some_rows(40)
    assert digest_of(rows, cuts, rows_per_part=size, sink=Shelf()) == digest_of(rows)


@pytest.mark.parametrize("column", [column.name for column in SALE.columns])
def test_one_changed_value_in_any_column_changes_the_digest(column):
    rows, other = some_rows(10), some_rows(10)
    other[column][6] = other[column][8]
    other[column][6] = {"rate": 0.123, "paid": not rows["paid"][6], "grade": 2}.get(
        column, other[column][6]
    )
    assert digest_of(rows) != digest_of(other)


def test_minus_zero_is_zero_and_every_nan_is_one_null_in_the_digest():
    rows, other = some_rows(4), some_rows(4)
    rows["price"], other["price"] = [0.0, math.nan, 1.0, 1.0], [-0.0, -math.nan, 1.0, 1.0]
    payload = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
    assert digest_of(rows) == digest_of(other)
    other["price"][1] = payload
    assert digest_of(rows) == digest_of(other)
    other["price"][1] = 0.0
    assert digest_of(rows) != digest_of(other)


@given(
    one=st.lists(st.none() | st.text(alphabet="a1:;\0\1n", max_size=4), max_size=6),
    other=st.lists(st.none() | st.text(alphabet="a1:;\0\1n", max_size=4), max_size=6),
)
def test_different_texts_never_share_a_digest(one, other):
    digests = []
    for texts in (one, other):
        log = a_log()
        log.append("note", text=texts)
        digests.append(log.end())
    assert (digests[0] == digests[1]) == (one == other)


def test_texts_that_a_terminator_would_confuse_have_different_digests():
    test_different_texts_never_share_a_digest.hypothesis.inner_test(
        one=[None, "a", "\1b"], other=["\1a", None, "b"]
    )


def test_parts_go_to_the_sink_in_order_and_hold_every_row_once():
    shelf = Shelf()
    log = a_log(sink=shelf, rows_per_part=10)
    for step in range(25):
        log.append("sale", **{**GOOD, "step": [step] * 3})
    log.append("note", text="kept open")
    log.end()
    log.close()
    parts = [part for kind, part in shelf.parts if kind == "sale"]
    assert [part.height for part in parts] == [9] * 8 + [3]
    steps = pl.concat(parts)["step"].to_list()
    assert steps == [step for step in range(25) for _ in range(3)]
    assert sum(kind == "note" for kind, _ in shelf.parts) == 1
    assert sales(log).height == 0


def test_without_a_sink_full_parts_stay_readable():
    log = a_log(rows_per_part=4)
    for step in range(11):
        log.append("sale", **{**GOOD, "step": step})
    assert sales(log)["step"].to_list() == list(range(11))


def test_an_append_larger_than_a_part_is_kept_whole():
    log = a_log(rows_per_part=4)
    log.append("sale", **{**GOOD, "step": np.arange(100)})
    log.append("sale", **{**GOOD, "step": 100})
    assert sales(log)["step"].to_list() == list(range(101))


def test_shared_facts_are_written_once_with_a_null_seed():
    log = a_log()
    log.shared("fact", size=[1, 2])
    log.shared("fact", size=np.array([1, 2]))
    assert log.scan("fact").collect().rows() == [(None, 0, 1), (None, 0, 2)]
    with pytest.raises(EventError, match="shared facts differ"):
        log.shared("fact", size=[1, 3])
    assert log.has_shared("fact")
    log.append("fact", size=5)
    log.end()
    assert log.scan("fact").collect()["seed"].to_list() == [None, None, 7]


def test_shared_facts_after_an_episodes_rows_are_refused():
    log = a_log()
    log.append("fact", size=5)
    with pytest.raises(EventError, match="before any row"):
        log.shared("fact", size=1)


def test_shared_facts_are_in_the_logs_digest_but_in_no_episodes():
    logs = []
    for size in (1, 2):
        log = a_log()
        log.shared("fact", size=size)
        log.append("sale", **GOOD)
        log.end()
        logs.append(log)
    assert logs[0].digests == logs[1].digests
    assert logs[0].digest() != logs[1].digest()


def test_the_logs_digest_does_not_hang_on_the_order_of_its_episodes():
    digests, tables = [], []
    for order in ([3, 1, 2], [1, 2, 3]):
        log = EventLog([SALE])
        for seed in order:
            log.begin(seed)
            log.append("sale", **{**GOOD, "step": [seed, 0]})
            log.end()
        digests.append(log.digest())
        tables.append(sales(log))
    assert digests[0] == digests[1]
    assert log.seeds() == [1, 2, 3]
    assert tables[0].equals(tables[1])


def test_a_seed_twice_or_an_episode_that_never_ended_is_refused():
    log = a_log()
    with pytest.raises(EventError, match="seed 7 has not ended"):
        log.begin(8)
    log.end()
    with pytest.raises(EventError, match="seed 7 is in this log already"):
        log.begin(7)
