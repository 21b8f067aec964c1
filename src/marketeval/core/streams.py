"""Randomness as a function: draw i of a step depends on (seed, stream name, step, i) alone.

The generator is Philox2x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as
1, 2, 3; SC 2011). Nothing is consumed and nothing shifts: drawing more, or in another order, or
inside a kernel, gives the same numbers. A draw that belongs to an agent is taken from a stream
that carries the agent's name, so a newcomer leaves everybody else's draws as they were.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import inline, kernel
from marketeval.core.errors import UsageError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MULTIPLIER = np.uint64(0xD256D193)
_WEYL = np.uint64(0x9E3779B9)
_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_TO_53_BITS = np.uint64(11)
_UNIT = 2.0**-53


@inline
def philox(low: np.uint64, high: np.uint64, key: np.uint64) -> np.uint64:
    """Philox2x32-10: two 32-bit counter words and a 32-bit key to 64 bits (first word on top)."""
    for _ in range(10):
        product = _MULTIPLIER * low
        low, high = ((product >> _HALF) ^ key ^ high) & _MASK, product & _MASK
        key = (key + _WEYL) & _MASK
    return (low << _HALF) | high


@inline
def draw_bits(code: np.uint64, step: np.uint64, index: np.uint64) -> np.uint64:
    """64 random bits for one (stream, step, index); `code` is `Stream.code`."""
    return philox(index & _MASK, (step ^ code) & _MASK, code >> _HALF)


@inline
def draw_whole(code: np.uint64, step: int, index: int) -> np.uint64:
    """The 53 bits of `draw_uniform`, as a whole number below 2**53."""
    return draw_bits(code, np.uint64(step), np.uint64(index)) >> _TO_53_BITS


@inline
def draw_uniform(code: np.uint64, step: int, index: int) -> float:
    """One uniform number in [0, 1), for use inside kernels: 53 bits, as a float64."""
    return np.float64(draw_whole(code, step, index)) * _UNIT


@kernel
def _mix(low: int, high: int, key: int) -> np.uint64:
    return philox(np.uint64(low), np.uint64(high), np.uint64(key))


@kernel
def _uniforms(code: np.uint64, step: int, count: int) -> Floats:
    out = np.empty(count)
    for index in range(count):
        out[index] = draw_uniform(code, step, index)
    return out


@kernel
def _uniforms_at(code: np.uint64, step: int, indices: Integers) -> Floats:
    out = np.empty(indices.size)
    for place in range(indices.size):
        out[place] = draw_uniform(code, step, indices[place])
    return out


@inline
def draw_order(code: np.uint64, step: int, order: Integers, count: int) -> None:
    """Fill the first `count` places of `order`, a permutation, with a random sample of it.

    Fisher and Yates: place i takes a number from places i to the end, by draw i of the step.
    """
    for place in range(count):
        other = place + int(draw_uniform(code, step, place) * (order.size - place))
        order[place], order[other] = order[other], order[place]


@kernel
def _sample(code: np.uint64, step: int, size: int, count: int) -> Integers:
    order = np.arange(size)
    draw_order(code, step, order, count)
    return order[:count].copy()


@kernel
def _codes(
    seeds: Integers, keys: NDArray[np.uint64], salts: NDArray[np.uint64], out: NDArray[np.uint64]
) -> None:
    for place in range(keys.size):
        for episode in range(seeds.size):
            seed = np.uint64(seeds[episode])
            out[episode, place] = philox(seed & _MASK, seed >> _HALF, keys[place]) ^ salts[place]


@cache
def _key_and_salt(name: str) -> tuple[int, int]:
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")


class Names:
    """Streams by name, whose codes are wanted for many seeds at once."""

    def __init__(self, names: Sequence[str]) -> None:
        pairs = np.array([_key_and_salt(name) for name in names], np.uint64).reshape(-1, 2)
        self._keys, self._salts = pairs[:, 0].copy(), pairs[:, 1].copy()

    def codes(self, seeds: Sequence[int]) -> NDArray[np.uint64]:
        """As `Stream.code`; shape (seeds, names)."""
        out = np.empty((len(seeds), self._keys.size), np.uint64)
        _codes(np.array(seeds, np.int64), self._keys, self._salts, out)
        return out


class Stream:
    """One named source of numbers in one episode; `code` is how kernels know it."""

    __slots__ = ("code",)

    def __init__(self, seed: int, name: str) -> None:
        key, salt = _key_and_salt(name)
        mixed = int(_mix(seed & 0xFFFFFFFF, seed >> 32, key))
        self.code = np.uint64(mixed ^ salt)

    def uniform(self, step: int, count: int) -> Floats:
        """Draws 0 to count-1 of a step, uniform in [0, 1); shape (count,)."""
        return _uniforms(self.code, step, count)

    def uniform_at(self, step: int, indices: Integers) -> Floats:
        """The draws of a step at given indices: `uniform_at(s, [3])` is `uniform(s, 4)[3:]`."""
        return _uniforms_at(self.code, step, np.asarray(indices, np.int64))

    def below(self, bound: int, step: int, count: int) -> Integers:
        """Integers in [0, bound), as floor(u * bound); shape (count,)."""
        return (self.uniform(step, count) * bound).astype(np.int64)

    def sample(self, step: int, size: int, count: int) -> Integers:
        """`count` of the numbers 0..size-1 in random order, without replacement."""
        return _sample(self.code, step, size, count)

    def permutation(self, step: int, size: int) -> Integers:
        """The numbers 0..size-1 in random order."""
        return self.sample(step, size, size)


class Streams:
    """All the streams of one seed: `streams["users"].uniform(step, 5)`.

    >>> first = Streams(7)["explore"].uniform(3, 5)
    >>> bool((Streams(7)["explore"].uniform(3, 2) == first[:2]).all())
    True
    """

    def __init__(self, seed: int, *, prefix: str = "") -> None:
        if not 0 <= seed < 2**63:  # the log keeps seeds as int64
            raise UsageError(f"expected a seed from 0 to 2**63 - 1, got {seed}")
        self.seed = seed
        self._prefix = prefix
        self._made: dict[str, Stream] = {}

    def __getitem__(self, name: str) -> Stream:
        stream = self._made.get(name)
        if stream is None:
            stream = self._made[name] = Stream(self.seed, self._prefix + name)
        return stream

    def of(self, seat: str) -> Streams:
        """The streams that belong to one seat; they carry its name."""
        return Streams(self.seed, prefix=f"{self._prefix}{seat}/")

    def codes(self, name: str, seats: Sequence[str] | Iterable[str]) -> NDArray[np.uint64]:
        """The code of the stream `name` of each seat, for kernels; shape (seats,)."""
        return np.array([self[f"{seat}/{name}"].code for seat in seats], np.uint64)
