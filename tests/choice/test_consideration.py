"""Inclusion of sellers in consideration sets, against known chances and an independent sampler."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketeval.choice.consideration import SAMPLERS, consider, set_size
from marketeval.core.streams import Streams

SELLERS = [f"s{i:02d}" for i in range(20)]


def included(exponents, *, size, buyers=20_000, sampler="plackett_luce", seed=1, **options):
    """How often each seller is noticed."""
    streams, count = Streams(seed), len(exponents)
    seen = consider(
        np.array([exponents], np.float64),
        np.zeros(buyers, np.int64),
        np.array([size]),
        candidates=options.pop("candidates", np.ones(count, np.bool_)),
        codes=streams.codes("attention", [f"s{i:02d}" for i in range(count)]),
        own_code=streams["own"].code,
        step=0,
        sampler=sampler,
        **options,
    )
    return np.bincount(seen[seen >= 0], minlength=count) / buyers


@pytest.mark.parametrize(
    ("tau", "sensitivity", "lead", "published"),
    [
        (1.0, 0.9, 0.1, 0.631), (1.0, 0.9, 0.3, 0.695), (1.0, 0.2, 0.3, 0.621),
        (0.2, 0.9, 0.1, 0.755), (0.2, 0.9, 0.3, 0.959), (0.2, 0.2, 0.3, 0.704),
        (0.1, 0.9, 0.1, 0.882), (0.1, 0.9, 0.3, 1.000), (0.1, 0.2, 0.3, 0.802),
    ],
)  # fmt: skip
def test_inclusion_by_temperature_and_lead(tau, sensitivity, lead, published):
    rate = included([sensitivity * lead / tau] + [0.0] * 19, size=12)[0]
    error = math.sqrt(published * (1 - published) / 20_000)
    # the published value is itself of 20,000 draws and has three digits
    assert abs(rate - published) <= 4 * math.sqrt(2) * error + 0.0005


def test_blind_attention_notices_everybody_alike():
    rates = included([9.0] + [0.0] * 19, size=12, sampler="uniform")
    assert np.abs(rates - 0.6).max() < 4 * math.sqrt(0.24 / 20_000)


def test_draws_without_replacement_follow_plackett_and_luce():
    weights = [1.0, 2.0, 4.0, 8.0]
    chances = np.zeros(4)
    for order in itertools.permutations(range(4), 2):
        chance, left = 1.0, sum(weights)
        for seller in order:
            chance *= weights[seller] / left
            left -= weights[seller]
        for seller in order:
            chances[seller] += chance
    rates = included([math.log(w) for w in weights], size=2)
    assert np.abs(rates - chances).max() < 4 * math.sqrt(0.25 / 20_000)


def test_draws_with_replacement_may_notice_fewer():
    weights = np.array([1.0, 2.0, 4.0, 8.0]) / 15
    rates = included(np.log(weights), size=2, sampler="softmax_with_replacement")
    assert np.abs(rates - (1 - (1 - weights) ** 2)).max() < 4 * math.sqrt(0.25 / 20_000)


def test_the_top_sampler_takes_the_largest():
    assert included([0.1, 0.3, 0.2, 0.0], size=2, sampler="top_m").tolist() == [0, 1, 1, 0]


def test_the_last_seller_has_an_advantage_with_loyal_buyers():
    rates = included([0.0] * 4, size=1, favourite=np.full(20_000, 2), loyalty=math.log(3.0))
    assert abs(rates[2] - 0.5) < 4 * math.sqrt(0.25 / 20_000)


def test_a_newcomer_leaves_the_others_draws_as_they_were():
    before = consider_rows(5)
    after = consider_rows(6)
    for old, new in zip(before, after, strict=True):
        assert set(new) - {5} <= set(old)


def consider_rows(count):
    streams = Streams(3)
    return consider(
        np.zeros((1, count)), np.zeros(500, np.int64), np.array([3]),
        candidates=np.ones(count, np.bool_),
        codes=streams.codes("attention", [f"s{i}" for i in range(count)]),
        own_code=streams["own"].code, step=0,
    )  # fmt: skip


@given(
    exponents=st.lists(st.floats(-900, 900), min_size=1, max_size=7),
    size=st.integers(1, 9),
    sampler=st.sampled_from(SAMPLERS),
    data=st.data(),
)
def test_sets_hold_distinct_candidates(exponents, size, sampler, data):
    there = data.draw(st.lists(st.booleans(), min_size=len(exponents), max_size=len(exponents)))
    streams, count = Streams(5), len(exponents)
    seen = consider(
        np.array([exponents]), np.zeros(30, np.int64), np.array([size]),
        candidates=np.array(there), codes=streams.codes("a", SELLERS[:count]),
        own_code=streams["own"].code, step=0, sampler=sampler,
    )  # fmt: skip
    for row in seen:
        who = [one for one in row.tolist() if one >= 0]
        assert len(set(who)) == len(who)
        assert all(there[one] for one in who)
        if sampler != "softmax_with_replacement":
            assert len(who) == min(size, sum(there))


def test_threads_change_nothing():
    # 120,000 buyers x 20 sellers are drawn in blocks on threads; the first 1,000 are as if alone
    many = rows_of(120_000)
    assert (many[:1000] == rows_of(1000)).all()


def rows_of(buyers):
    streams = Streams(3)
    return consider(
        np.linspace(0, 1, 20)[None], np.zeros(buyers, np.int64), np.array([4]),
        candidates=np.ones(20, np.bool_), codes=streams.codes("a", SELLERS),
        own_code=streams["own"].code, step=0,
    )  # fmt: skip


def test_set_sizes_are_those_of_the_paper():
    assert set_size(0.6, 20, 20) == 12
    assert set_size(0.2, 20, 20) == 4
    assert set_size(0.6, 20, 5) == 5


@pytest.mark.parametrize("tau", [1.0, 0.1, 0.01])
def test_among_many_sellers_those_with_the_smallest_keys_are_noticed(tau):
    # every key worked out in numpy; few of 400 sellers are worth a logarithm in the kernel
    streams, names = Streams(9), [f"s{i}" for i in range(400)]
    exponent = np.cos(np.arange(400.0)) / tau
    kind, sizes = np.arange(300) % 2, np.array([12, 5])
    favourite = np.arange(300) - 1
    seen = consider(
        np.array([exponent, exponent / 2]), kind, sizes, candidates=np.ones(400, np.bool_),
        codes=streams.codes("a", names), own_code=streams["own"].code, step=3,
        favourite=favourite, loyalty=1.5,
    )  # fmt: skip
    u = np.array([streams[f"{name}/a"].uniform(3, 300) for name in names])
    for buyer in range(300):
        weight = np.exp(exponent / (1 + kind[buyer]))
        if buyer:
            weight[favourite[buyer]] *= math.exp(1.5)
        keys = -np.log1p(-u[:, buyer]) / weight
        wanted = np.argsort(keys)[: sizes[kind[buyer]]]
        assert set(seen[buyer][seen[buyer] >= 0]) == set(wanted.tolist())
