"""exp, log and draws built on them, in plain arithmetic: the same bits on every path and machine.

Library versions of exp and log differ between scalar and vector code by the last bit, and that bit
can decide whom a user asks. These agree with the true values to about one unit in the last place.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marketeval.core.compiled import inline, kernel
from marketeval.core.streams import draw_uniform

_LN2_HIGH = 0.693147180369123816490  # 33 bits, so that k * _LN2_HIGH is exact
_LN2_LOW = 1.90821492927058770002e-10  # ln 2 - _LN2_HIGH
_SMALLEST = 2.0**-54

ATTEMPTS = 64  # draws set aside per decision for the gamma sampler; 1 in 10^40 needs more


@inline
def log(x: float) -> float:
    """Natural logarithm of x > 0: 2 artanh((m-1)/(m+1)) + k ln 2 with x = m 2^k."""
    m, k = math.frexp(x)
    if m < 0.7071067811865476:
        m *= 2.0
        k -= 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = 0.0
    for term in range(11, 0, -1):
        series = (series + 1.0 / (2 * term + 1)) * z
    return k * _LN2_HIGH + (2.0 * s + (2.0 * s * series + k * _LN2_LOW))


@inline
def exp(x: float) -> float:
    """e to the x: Taylor's series on [-ln 2 / 2, ln 2 / 2], scaled by a power of two."""
    if x > 709.782712893384:  # the largest x whose exponential is finite
        return np.inf
    if x < -745.0:
        return 0.0
    k = math.floor(x / 0.6931471805599453 + 0.5)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    series = 1.0
    for term in range(14, 0, -1):
        series = 1.0 + series * r / term
    return math.ldexp(series, int(k))


@inline
def gumbel(u: float) -> float:
    """A standard Gumbel number from a uniform one: -log(-log u)."""
    return -log(-log(max(u, _SMALLEST)))


@inline
def normal(u: float) -> float:
    """The standard normal quantile of u in (0, 1): Wichura's AS 241 (PPND16), to 1e-16.

    M. J. Wichura, Algorithm AS 241, Applied Statistics 37 (1988) 477-484.
    """
    u = max(u, _SMALLEST)
    q = u - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        top = 2509.0809287301226727 * r + 33430.575583588128105
        top = ((top * r + 67265.770927008700853) * r + 45921.953931549871457) * r
        top = ((top + 13731.693765509461125) * r + 1971.5909503065514427) * r
        top = (top + 133.14166789178437745) * r + 3.387132872796366608
        low = 5226.495278852545925 * r + 28729.085735721942674
        low = ((low * r + 39307.89580009271061) * r + 21213.794301586595867) * r
        low = ((low + 5394.1960214247511077) * r + 687.1870074920579083) * r
        low = (low + 42.313330701600911252) * r + 1.0
        return q * top / low
    r = math.sqrt(-log(u if q < 0.0 else 1.0 - u))
    if r <= 5.0:
        r -= 1.6
        top = 7.7454501427834140764e-4 * r + 0.0227238449892691845833
        top = ((top * r + 0.24178072517745061177) * r + 1.27045825245236838258) * r
        top = ((top + 3.64784832476320460504) * r + 5.7694972214606914055) * r
        top = (top + 4.6303378461565452959) * r + 1.42343711074968357734
        low = 1.05075007164441684324e-9 * r + 5.475938084995344946e-4
        low = ((low * r + 0.0151986665636164571966) * r + 0.14810397642748007459) * r
        low = ((low + 0.68976733498510000455) * r + 1.6763848301838038494) * r
        low = (low + 2.05319162663775882187) * r + 1.0
    else:
        r -= 5.0
        top = 2.01033439929228813265e-7 * r + 2.71155556874348757815e-5
        top = ((top * r + 0.0012426609473880784386) * r + 0.026532189526576123093) * r
        top = ((top + 0.29656057182850489123) * r + 1.7848265399172913358) * r
        top = (top + 5.4637849111641143699) * r + 6.6579046435011037772
        low = 2.04426310338993978564e-15 * r + 1.4215117583164458887e-7
        low = ((low * r + 1.8463183175100546818e-5) * r + 7.868691311456132591e-4) * r
        low = ((low + 0.0148753612908506148525) * r + 0.13692988092273580531) * r
        low = (low + 0.59983220655588793769) * r + 1.0
    return -top / low if q < 0.0 else top / low


@inline
def gamma(shape: float, code: np.uint64, step: int, index: int) -> float:
    """A gamma number of unit scale: Marsaglia and Tsang's method over keyed draws.

    Attempt k uses draws index + 2k and index + 2k + 1 of the stream, so the number is a function
    of its place and not of what was drawn before (G. Marsaglia, W. W. Tsang, ACM TOMS 26, 2000).
    """
    boosted = shape if shape >= 1.0 else shape + 1.0
    d = boosted - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    value = d
    for attempt in range(ATTEMPTS // 2 - 1):
        x = normal(draw_uniform(code, step, index + 2 * attempt))
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = max(draw_uniform(code, step, index + 2 * attempt + 1), _SMALLEST)
        if log(u) < 0.5 * x * x + d - d * v + d * log(v):
            value = d * v
            break
    if shape < 1.0:
        u = max(draw_uniform(code, step, index + ATTEMPTS - 1), _SMALLEST)
        value *= exp(log(u) / shape)
    return value


@kernel
def race(u: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """-log(1 - u) / weight: the k smallest are a weighted sample without replacement.

    P. S. Efraimidis, P. G. Spirakis, Information Processing Letters 97 (2006) 181-185.
    """
    out = np.empty(u.size)
    for place in range(u.size):
        out[place] = -log(1.0 - u[place]) / weights[place]
    return out
