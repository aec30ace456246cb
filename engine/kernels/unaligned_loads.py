"""Unaligned little-endian loads from byte arrays, for use inside kernels."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _loader(bits: int):
    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(bits).as_pointer())
        word = builder.load(place)
        word.align = 1
        return word if bits == 64 else builder.zext(word, ir.IntType(64))

    return codegen


@intrinsic
def load_word(typing, data, at):
    """Return the 8 bytes from ``data[at]`` on as a uint64; the caller keeps inside the array."""
    return types.uint64(data, types.int64), _loader(64)


@intrinsic
def load_half(typing, data, at):
    """Return the 4 bytes from ``data[at]`` on as a uint64; the caller keeps inside the array."""
    return types.uint64(data, types.int64), _loader(32)
