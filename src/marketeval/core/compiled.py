"""The one place where numba is configured: compiled functions that keep IEEE arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])  # any: numba infers the types of a kernel by itself


def kernel(function: F) -> F:
    """Compile a function at its first call and keep the machine code for later processes.

    No fast-math: sums keep their order and division stays division, so that a formula gives the
    same bits wherever it is inlined. The GIL is released, so kernels may run on threads.
    """
    compiled = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    return cast(F, compiled)  # cast: numba has no types of its own


def inline(function: F) -> F:
    """Compile a helper that only kernels call; it is never cached or called by itself."""
    compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return cast(F, compiled)  # cast: numba has no types of its own
