"""A running checksum of a column of numbers, much quicker than a cryptographic hash.

Value i of the column goes to lane i mod 8, h <- fold((h xor value) * odd) modulo 2**64 with
fold(x) = x xor (x >> 32). Each step is a bijection of the lane, so two columns that differ in one
place of a lane always differ; differences in several meet by chance, once in 2**64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import inline, kernel

Values = NDArray[Any]  # any: numbers or truth values

LANES = 8
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio
_HALF = np.uint64(32)
_SIGN = np.uint64(1 << 63)
_INFINITE = np.uint64(0x7FF << 52)
_NAN = np.uint64(0x7FF8 << 48)
_BLOCK = 1 << 15


class Checksum:
    """Of the values so far; -0.0 and 0.0 are one value, and so are all NaN."""

    def __init__(self) -> None:
        self.lanes = np.arange(1, LANES + 1, dtype=np.uint64)
        self.count = 0

    def update(self, values: Values) -> None:
        """Go on with an array of numbers."""
        floats = values.dtype.kind == "f"
        for start in range(0, values.size, _BLOCK):
            some = values[start : start + _BLOCK]
            bits = np.ascontiguousarray(some).view(np.int64) if floats else some.astype(np.int64)
            _mix(bits, 1, self.lanes, self.count, floats)
            self.count += bits.size

    def repeat(self, value: float, times: int) -> None:
        """Go on with one value, `times` times."""
        one = np.array([value])
        floats = one.dtype.kind == "f"
        bits = one.view(np.int64) if floats else one.astype(np.int64)
        _mix(bits, times, self.lanes, self.count, floats)
        self.count += times

    def digest(self) -> bytes:
        """The lanes and the number of values."""
        return self.lanes.tobytes() + self.count.to_bytes(8, "little")


@kernel
def _mix(
    values: NDArray[np.int64], times: int, lanes: NDArray[np.uint64], count: int, floats: bool
) -> None:
    """Mix values of 64 bits into the lanes, or one value `times` times."""
    size = values.size * times
    place = 0
    while place < size and (count + place) % LANES:
        _one(values, times, place, lanes, count, floats)
        place += 1
    a, b, c, d, e, f, g, h = lanes
    if times == 1:
        while place + LANES <= size:
            a = _step(a, values[place], floats)
            b = _step(b, values[place + 1], floats)
            c = _step(c, values[place + 2], floats)
            d = _step(d, values[place + 3], floats)
            e = _step(e, values[place + 4], floats)
            f = _step(f, values[place + 5], floats)
            g = _step(g, values[place + 6], floats)
            h = _step(h, values[place + 7], floats)
            place += LANES
    else:
        value = values[0]
        while place + LANES <= size:
            a, b = _step(a, value, floats), _step(b, value, floats)
            c, d = _step(c, value, floats), _step(d, value, floats)
            e, f = _step(e, value, floats), _step(f, value, floats)
            g, h = _step(g, value, floats), _step(h, value, floats)
            place += LANES
    lanes[0], lanes[1], lanes[2], lanes[3] = a, b, c, d
    lanes[4], lanes[5], lanes[6], lanes[7] = e, f, g, h
    while place < size:
        _one(values, times, place, lanes, count, floats)
        place += 1


@inline
def _one(
    values: NDArray[np.int64], times: int, place: int, lanes: NDArray[np.uint64], count: int,
    floats: bool,
) -> None:  # fmt: skip
    lane = (count + place) % LANES
    lanes[lane] = _step(lanes[lane], values[place if times == 1 else 0], floats)


@inline
def _step(lane: np.uint64, value: np.int64, floats: bool) -> np.uint64:
    bits = np.uint64(value)
    if floats:
        if bits == _SIGN:
            bits = np.uint64(0)
        if (bits & ~_SIGN) > _INFINITE:
            bits = _NAN
    mixed = (lane ^ bits) * _ODD
    return mixed ^ (mixed >> _HALF)
