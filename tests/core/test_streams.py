"""Keyed draws: the generator's published vectors, and draws as a function of their place alone."""

from __future__ import annotations

from collections import Counter

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketeval.core.errors import UsageError
from marketeval.core.streams import Streams, draw_uniform, philox

NAMES = st.sampled_from(["users", "explore", "gemini/choice", "qwen3/outcome", ""])
SEEDS = st.integers(0, 2**63 - 1)
STEPS = st.integers(0, 2**31 - 1)
CHI2_99 = 148.23  # 0.999 quantile of chi squared with 99 degrees of freedom
CHI2_23 = 49.73  # with 23


@numba.njit
def in_a_kernel(code: np.uint64, step: int, count: int) -> np.ndarray:
    out = np.empty(count)
    for index in range(count):
        out[index] = draw_uniform(code, step, index)
    return out


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0), 0, (0xFF1DAE59, 0x6CD10DF2)),
        ((0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF, (0x2C3F628B, 0xAB4FD7AD)),
        ((0x243F6A88, 0x85A308D3), 0x13198A2E, (0xDD7CE038, 0xF62A4C12)),
    ],
)
def test_philox2x32_10_gives_the_known_answers_of_random123(counter, key, words):
    found = int(philox(np.uint64(counter[0]), np.uint64(counter[1]), np.uint64(key)))
    assert (found >> 32, found & 0xFFFFFFFF) == words


@given(seed=SEEDS, name=NAMES, step=STEPS, count=st.integers(0, 50))
def test_array_draws_equal_one_by_one_draws_and_draws_in_a_kernel(seed, name, step, count):
    stream = Streams(seed)[name]
    together = stream.uniform(step, count)
    one_by_one = [Streams(seed)[name].uniform_at(step, [index])[0] for index in range(count)]
    assert together.tolist() == one_by_one
    assert together.tolist() == in_a_kernel(stream.code, step, count).tolist()
    assert together.tolist() == stream.uniform(step, count + 7)[:count].tolist()
    backwards = stream.uniform_at(step, np.arange(count)[::-1])
    assert together.tolist() == backwards[::-1].tolist()


@given(seed=SEEDS, step=STEPS)
def test_another_name_another_step_or_another_seed_gives_other_draws(seed, step):
    base = Streams(seed)["explore"].uniform(step, 8)
    assert not np.isin(base, Streams(seed)["users"].uniform(step, 8)).any()
    assert not np.isin(base, Streams(seed)["explore"].uniform(step + 1, 8)).any()
    assert not np.isin(base, Streams(seed ^ 1)["explore"].uniform(step, 8)).any()
    assert not np.isin(base, Streams(seed ^ (1 << 40))["explore"].uniform(step, 8)).any()


def test_using_other_streams_first_leaves_draws_as_they_were():
    alone = Streams(5)["gemini/choice"].uniform(3, 4)
    crowded = Streams(5)
    for name in ("users", "qwen3/choice", "aaa"):
        crowded[name].uniform(3, 100)
    assert crowded["gemini/choice"].uniform(3, 4).tolist() == alone.tolist()


def test_the_streams_of_a_seat_carry_its_name():
    streams = Streams(9)
    assert streams.of("kimi")["outcome"].code == streams["kimi/outcome"].code
    assert streams.of("kimi").of("deep")["x"].code == streams["kimi/deep/x"].code
    assert streams.codes("tie", ["a", "b"]).tolist() == [
        streams["a/tie"].code,
        streams["b/tie"].code,
    ]


@pytest.mark.parametrize(("seed", "name"), [(1, "users"), (2, "kimi/choice"), (2**40 + 3, "x")])
def test_uniform_numbers_fill_a_hundred_bins_evenly(seed, name):
    stream = Streams(seed)[name]
    along_a_step = stream.uniform(0, 100_000)
    across_steps = np.concatenate([stream.uniform(step, 5) for step in range(20_000)])
    across_seeds = np.array([Streams(s)[name].uniform(7, 1)[0] for s in range(20_000)])
    for numbers in (along_a_step, across_steps, across_seeds):
        assert (numbers >= 0).all()
        assert (numbers < 1).all()
        counts = np.bincount((numbers * 100).astype(int), minlength=100)
        expected = numbers.size / 100
        assert ((counts - expected) ** 2 / expected).sum() < CHI2_99


def test_neighbouring_streams_steps_and_indices_are_uncorrelated():
    steps = np.stack([Streams(3)["users"].uniform(step, 1000) for step in range(20)])
    seats = np.stack([Streams(3)[f"m{seat}/choice"].uniform(0, 1000) for seat in range(20)])
    seeds = np.stack([Streams(seed)["users"].uniform(0, 1000) for seed in range(20)])
    for table in (steps, seats, seeds):
        off_diagonal = np.corrcoef(table)[np.triu_indices(20, 1)]
        assert abs(off_diagonal).max() < 4.5 / np.sqrt(1000)


def test_all_orders_of_four_things_are_equally_frequent():
    stream = Streams(11)["questions"]
    counts = Counter(tuple(stream.permutation(step, 4)) for step in range(24_000))
    assert len(counts) == 24
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < CHI2_23


@given(seed=SEEDS, step=STEPS, count=st.integers(0, 300))
def test_a_permutation_holds_everything_once(seed, step, count):
    assert sorted(Streams(seed)["q"].permutation(step, count)) == list(range(count))


@given(seed=SEEDS, bound=st.integers(1, 1000), step=STEPS)
def test_integers_are_the_floor_of_u_times_the_bound(seed, bound, step):
    stream = Streams(seed)["x"]
    below = stream.below(bound, step, 20)
    assert below.tolist() == [int(u * bound) for u in stream.uniform(step, 20)]
    assert 0 <= below.min() <= below.max() < bound


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_the_log_cannot_hold_is_refused(seed):
    with pytest.raises(UsageError, match="expected a seed from 0"):
        Streams(seed)
