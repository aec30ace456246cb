"""Pointers to the memory of arrays, for loops that call others.

Numba counts references of every array it hands to a function, atomically. That is 45 ns a call with eight
arrays, ten times the work of decoding a number. A pointer is a number. It has no bounds: who uses it
checks them.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic

P_U8 = types.CPointer(types.uint8)
P_I64 = types.CPointer(types.int64)
P_F64 = types.CPointer(types.float64)


def _pointer(_typing: Any, array: Any) -> Any:
    """Return a pointer to the first element of an array, which must stay referenced meanwhile."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), generate


# Called with the array alone: numba hands the context in.
pointer: Any = intrinsic(_pointer)


def _copied(_typing: Any, out: Any, at: Any, data: Any, start: Any, count: Any) -> Any:
    """Copy ``data[start : start + count]`` to ``out[at:]``, both arrays of bytes. No bound is checked."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, source = (
            builder.gep(
                context.make_array(signature.args[k])(context, builder, arguments[k]).data,
                [arguments[k + 1]],
            )
            for k in (0, 2)
        )
        cgutils.raw_memcpy(builder, into, source, arguments[4], 1)
        return context.get_dummy_value()

    return types.none(out, types.int64, data, types.int64, types.int64), generate


copy_span: Any = intrinsic(_copied)
