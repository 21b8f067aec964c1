"""Eight numbers of a row at once, for kernels: what the compiler does not see by itself.

The order of additions is that of a loop and division is division, so the bits are those of a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 8  # numbers that one line of memory holds; a machine that has less works in parts

_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
_FLOATS = ir.VectorType(ir.DoubleType(), LANES)
_INTEGERS = ir.VectorType(_INT64, LANES)


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
    place = builder.bitcast(builder.gep(data, [at]), _FLOATS.as_pointer())
    here = ir.Constant(_INTEGERS, list(range(LANES)))
    is_it = builder.icmp_unsigned("==", _everywhere(builder, lane, _INTEGERS), here)
    wanted = _everywhere(builder, value, _FLOATS)
    all_ = builder.select(is_it, wanted, builder.load(place, align=8))

    total = builder.extract_element(all_, _INT32(0))
    for number in range(1, LANES):
        total = builder.fadd(total, builder.extract_element(all_, _INT32(number)))
    all_ = builder.fdiv(all_, _everywhere(builder, total, _FLOATS))
    builder.store(all_, place, align=8)

    highest = all_
    for distance in (4, 2, 1):
        order = [number ^ distance for number in range(LANES)]
        highest = _higher(builder, highest, _shuffled(builder, highest, order))
    equal = builder.bitcast(builder.fcmp_ordered("==", all_, highest), ir.IntType(LANES))
    return builder.zext(equal, _INT64)


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
    return _shuffled(builder, first, [0] * LANES)


def _shuffled(builder: Any, values: Any, order: list[int]) -> Any:
    places = ir.Constant(ir.VectorType(_INT32, LANES), order)
    return builder.shuffle_vector(values, values, places)


def _higher(builder: Any, one: Any, other: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)
