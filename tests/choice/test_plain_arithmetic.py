"""exp, log, quantiles and samplers against high precision and against other samplers."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from statistics import NormalDist

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketeval.choice import _math
from marketeval.core.streams import Streams

getcontext().prec = 50
KS_999 = 1.949  # sqrt(-ln(0.001 / 2) / 2): two-sample Kolmogorov-Smirnov, level 0.001


def ulps(found: float, true: Decimal) -> float:
    return float(abs(Decimal(found) - true) / Decimal(math.ulp(float(true))))


@numba.njit
def gammas(shape: float, code: np.uint64, count: int) -> np.ndarray:
    out = np.empty(count)
    for slot in range(count):
        out[slot] = _math.gamma(shape, code, 0, _math.ATTEMPTS * slot)
    return out


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """The two-sample Kolmogorov-Smirnov statistic, scaled by sqrt(n m / (n + m))."""
    points = np.concatenate([one, other])
    below = [np.searchsorted(np.sort(x), points, side="right") / x.size for x in (one, other)]
    scale = math.sqrt(one.size * other.size / (one.size + other.size))
    return scale * float(abs(below[0] - below[1]).max())


@given(x=st.floats(1e-300, 1e300))
def test_log_is_within_two_units_in_the_last_place(x):
    assert ulps(_math.log(x), Decimal(x).ln()) <= 2 if x != 1.0 else _math.log(x) == 0.0


@given(x=st.floats(0.5, 2.0))
def test_log_near_one_is_within_two_units_in_the_last_place(x):
    assert _math.log(x) == 0.0 if x == 1.0 else ulps(_math.log(x), Decimal(x).ln()) <= 2


@given(x=st.floats(-700, 700))
def test_exp_is_within_two_units_in_the_last_place(x):
    assert ulps(_math.exp(x), Decimal(x).exp()) <= 2


@pytest.mark.parametrize(
    ("x", "value"), [(0.0, 1.0), (-1e4, 0.0), (1e4, math.inf), (-math.inf, 0.0), (709.7, None)]
)
def test_exp_at_its_ends(x, value):
    assert _math.exp(x) == (pytest.approx(math.exp(x), rel=1e-15) if value is None else value)


def test_log_of_powers_of_two_and_of_the_smallest_number():
    for power in range(-1074, 1024, 53):
        assert _math.log(math.ldexp(1.0, power)) == pytest.approx(power * math.log(2), rel=1e-15)


@given(u=st.floats(1e-16, 1 - 1e-16))
def test_a_gumbel_number_is_minus_log_of_minus_log(u):
    true = -((-Decimal(u).ln()).ln())
    assert float(abs(Decimal(_math.gumbel(u)) - true)) <= 1e-15 * max(1.0, abs(float(true)))


def test_gumbel_numbers_have_the_published_mean_and_variance():
    numbers = np.array([_math.gumbel(u) for u in Streams(1)["g"].uniform(0, 100_000)])
    assert numbers.mean() == pytest.approx(0.5772156649, abs=4 * 1.2825 / math.sqrt(1e5))
    assert numbers.var() == pytest.approx(math.pi**2 / 6, rel=0.03)
    assert math.isfinite(_math.gumbel(0.0))
    assert math.isfinite(_math.gumbel(1 - 2**-53))


@pytest.mark.parametrize(
    ("u", "z"),
    [
        (0.5, 0.0),
        (0.975, 1.959963984540054),
        (0.95, 1.6448536269514722),
        (0.999, 3.090232306167813),
        (1e-10, -6.361340902404056),
        (0.25, -0.6744897501960817),
    ],
)
def test_the_normal_quantiles_of_the_tables(u, z):
    assert _math.normal(u) == pytest.approx(z, rel=2e-15)


@given(u=st.floats(1e-15, 1 - 1e-15))
def test_the_normal_quantile_agrees_with_python_and_inverts_the_distribution(u):
    z = _math.normal(u)
    assert z == pytest.approx(NormalDist().inv_cdf(u), rel=1e-13, abs=1e-15)
    assert 0.5 * math.erfc(-z / math.sqrt(2)) == pytest.approx(u, rel=1e-12)


@pytest.mark.parametrize("shape", [0.05, 0.4, 1.0, 1.7, 12.5, 400.0])
def test_gamma_numbers_have_their_moments_and_numpys_distribution(shape):
    count = 20_000
    numbers = gammas(shape, Streams(4)["gamma"].code, count)
    assert numbers.mean() == pytest.approx(shape, abs=4.5 * math.sqrt(shape / count))
    fourth = math.sqrt((2 + 6 / shape) / count)  # relative standard error of the variance
    assert numbers.var() == pytest.approx(shape, rel=5 * fourth)
    assert distance(numbers, np.random.default_rng(1).gamma(shape, size=count)) < KS_999


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (2.0, 5.0), (30.0, 3.0), (0.5, 0.5)])
def test_the_ratio_of_gammas_has_numpys_beta_distribution(a, b):
    count = 20_000
    x = gammas(a, Streams(5)["x"].code, count)
    y = gammas(b, Streams(5)["y"].code, count)
    mean, total = a / (a + b), a + b
    spread = math.sqrt(mean * (1 - mean) / (total + 1) / count)
    assert (x / (x + y)).mean() == pytest.approx(mean, abs=4.5 * spread)
    assert distance(x / (x + y), np.random.default_rng(2).beta(a, b, size=count)) < KS_999


def test_the_race_draws_users_in_proportion_to_their_weights_without_replacement():
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    first = np.zeros(4)
    second_after_last = np.zeros(4)
    for step in range(20_000):
        times = _math.race(Streams(6)["users"].uniform(step, 4), weights)
        order = np.argsort(times)
        first[order[0]] += 1
        if order[0] == 3:
            second_after_last[order[1]] += 1
    assert first / 20_000 == pytest.approx(weights / 10, abs=4 * 0.5 / math.sqrt(20_000))
    runs = second_after_last.sum()
    assert second_after_last[:3] / runs == pytest.approx(
        weights[:3] / 6, abs=4 * 0.5 / math.sqrt(runs)
    )
