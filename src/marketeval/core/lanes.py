"""Eight numbers of a row at once, for kernels: what the compiler does not see by itself.

The order of additions is that of a loop and division is division, so the bits are those of a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 8  # numbers that one line of memory holds
_HALF = 4  # what most machines divide at once

_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
_FLOATS = ir.VectorType(ir.DoubleType(), _HALF)
_INTEGERS = ir.VectorType(_INT64, _HALF)


# any: numba's types and contexts and the compiler's values have no types of their own
Operation = Callable[..., Any]


def _operation(typing: Operation) -> Operation:
    return cast(Operation, intrinsic(typing))  # cast: numba's type shows no arguments


@_operation
def set_and_divide(typing: Any, values: Any, at: Any, lane: Any, value: Any) -> Any:
    """Set `values[at + lane]`, divide `values[at : at + LANES]` by their sum, left to right.

    Returns which are then the highest, as bits; 0 where the sum was 0, and all are NaN. Nothing is
    checked: `values` is a contiguous array of float64, `at` and `lane` are uint64.
    """
    signature = types.uint64(values, types.uint64, types.uint64, types.float64)
    return signature, _set_and_divide


def _set_and_divide(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array, at, lane, value = arguments
    data = context.make_array(signature.args[0])(context, builder, array).data
    start = builder.gep(data, [at])
    places = [
        builder.bitcast(builder.gep(start, [_INT64(first)]), _FLOATS.as_pointer())
        for first in range(0, LANES, _HALF)
    ]
    lanes, wanted = _everywhere(builder, lane, _INTEGERS), _everywhere(builder, value, _FLOATS)
    halves = []
    for number, place in enumerate(places):
        here = ir.Constant(_INTEGERS, [number * _HALF + offset for offset in range(_HALF)])
        is_it = builder.icmp_unsigned("==", lanes, here)
        halves.append(builder.select(is_it, wanted, builder.load(place, align=8)))

    each = [builder.extract_element(half, _INT32(n)) for half in halves for n in range(_HALF)]
    total = each[0]
    for one in each[1:]:
        total = builder.fadd(total, one)
    totals = _everywhere(builder, total, _FLOATS)
    halves = [builder.fdiv(half, totals) for half in halves]
    for half, place in zip(halves, places, strict=True):
        builder.store(half, place, align=8)

    highest = _higher(builder, *halves)
    for order in ([2, 3, 0, 1], [1, 0, 3, 2]):
        highest = _higher(builder, highest, _shuffled(builder, highest, order))
    bits = _INT64(0)
    for number, half in enumerate(halves):
        equal = builder.bitcast(builder.fcmp_ordered("==", half, highest), ir.IntType(_HALF))
        shifted = builder.shl(builder.zext(equal, _INT64), _INT64(number * _HALF))
        bits = builder.or_(bits, shifted)
    return bits


@_operation
def fetch(typing: Any, values: Any, at: Any) -> Any:
    """Tell the machine that the line of memory of `values[at]` will be read and written soon."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        kinds = [place.type, _INT32, _INT32, _INT32]
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [place.type], ir.FunctionType(ir.VoidType(), kinds)
        )
        builder.call(prefetch, [place, _INT32(1), _INT32(3), _INT32(1)])
        return context.get_dummy_value()

    return types.void(values, types.uint64), build


def _everywhere(builder: Any, value: Any, type_: Any) -> Any:
    first = builder.insert_element(ir.Constant(type_, ir.Undefined), value, _INT32(0))
    return _shuffled(builder, first, [0] * _HALF)


def _shuffled(builder: Any, values: Any, order: list[int]) -> Any:
    places = ir.Constant(ir.VectorType(_INT32, _HALF), order)
    return builder.shuffle_vector(values, values, places)


def _higher(builder: Any, one: Any, other: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)
