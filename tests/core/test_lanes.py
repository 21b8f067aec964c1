"""Eight numbers at once give the bits of a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from marketeval.core.compiled import kernel
from marketeval.core.lanes import LANES, fetch, set_and_divide

values_of = st.lists(st.floats(0.0, 1e6), min_size=LANES, max_size=LANES)


@kernel
def _done(values: NDArray[np.float64], at: int, lane: int, value: float) -> Any:
    fetch(values, np.uint64(at))
    return set_and_divide(values, np.uint64(at), np.uint64(lane), value)


@given(values=values_of, lane=st.integers(0, LANES - 1), value=st.floats(1e-3, 1e6))
def test_a_row_is_divided_by_its_sum_from_left_to_right(
    values: list[float], lane: int, value: float
) -> None:
    row = np.array([3.0, *values, 5.0])
    highest = _done(row, 1, lane, value)
    values[lane], total = value, 0.0
    for one in values:
        total += one
    divided = [one / total for one in values]
    assert row.tolist() == [3.0, *divided, 5.0]
    assert [n for n in range(LANES) if highest >> n & 1] == [
        n for n, one in enumerate(divided) if one == max(divided)
    ]


def test_a_row_of_nothing_has_no_highest() -> None:
    row = np.zeros(LANES)
    assert _done(row, 0, 3, 0.0) == 0
    assert np.isnan(row).all()


@pytest.mark.parametrize("equal", [[0, 7], [1, 2, 4], list(range(LANES))])
def test_all_that_are_highest_are_told(equal: list[int]) -> None:
    row = np.full(LANES, 0.25)
    row[equal] = 0.5
    assert _done(row, 0, equal[0], 0.5) == sum(1 << n for n in equal)
