"""Gathers values of chunks by address: rows of many chunks in one pass, without a copy for each chunk.

A chunk is an array of one column. ``places`` has for each row its chunk in the high half and its position in
the low one. The memory of chunks must stay referenced; no position is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.extending import intrinsic

from penstock.engine.kernels.kernel import (
    I64,
    IN_I64,
    OUT_I32,
    OUT_I64,
    OUT_U8,
    VOID,
    kernel,
)

POSITION = 0xFFFFFFFF
"""The low half of a place."""
# Rows whose memory is asked for before it is read: a miss takes as long as copying about so many short texts.
_AHEAD = 16


def _loaded(kind: Any) -> Any:
    def load(_typing: Any, address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            bits = ir.IntType(kind.bitwidth)
            word = builder.load(builder.inttoptr(arguments[0], bits.as_pointer()))
            # The address may be any: without this the compiler assumes an aligned load.
            word.align = 1
            return word

        return kind(types.int64), generate

    return intrinsic(load)


# The number at an address: ``load_8(address)``.
_load_1: Any = _loaded(types.uint8)
_load_2: Any = _loaded(types.uint16)
_load_4: Any = _loaded(types.int32)
load_8: Any = _loaded(types.int64)


def _copied(_typing: Any, array: Any, at: Any, address: Any, count: Any) -> Any:
    """Copy so many bytes from an address into an array, from a position on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into = builder.gep(
            context.make_array(signature.args[0])(context, builder, arguments[0]).data, [arguments[1]]
        )
        source = builder.inttoptr(arguments[2], ir.IntType(8).as_pointer())
        cgutils.raw_memcpy(builder, into, source, arguments[3], 1)
        return context.get_dummy_value()

    return types.none(array, types.int64, types.int64, types.int64), generate


_copy: Any = intrinsic(_copied)


def _prefetched(_typing: Any, address: Any) -> Any:
    """Ask for the memory at an address, which may be any."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        octet, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        prefetch = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [octet, number, number, number]),
            "llvm.prefetch.p0",
        )
        # to read, to be kept near, data
        builder.call(prefetch, [builder.inttoptr(arguments[0], octet), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.none(types.int64), generate


_prefetch: Any = intrinsic(_prefetched)


@kernel(VOID(IN_I64, IN_I64, IN_I64, I64, OUT_I64))
def find_places(positions, starts, guide, shift, places):
    """Write the place of each position in the concatenation of chunks. ``starts`` has one position more than
    chunks; ``guide`` has the chunk of every position that is a multiple of ``1 << shift``.
    """
    for i in range(positions.size):
        # Nearly always the chunk itself: a binary search takes five times as long.
        chunk = guide[positions[i] >> shift]
        while starts[chunk + 1] <= positions[i]:
            chunk += 1
        places[i] = (chunk << 32) | (positions[i] - starts[chunk])


@kernel(VOID(IN_I64, IN_I64, I64, OUT_U8))
def gather_values(places, data, width, out):
    """Write values of 1, 2, 4, 8 or 16 bytes; ``data`` has the address of each chunk's first value."""
    if width == 8:
        words = out.view(np.int64)
        for i in range(places.size):
            words[i] = load_8(data[places[i] >> 32] + 8 * (places[i] & POSITION))
    elif width == 4:
        halves = out.view(np.int32)
        for i in range(places.size):
            halves[i] = _load_4(data[places[i] >> 32] + 4 * (places[i] & POSITION))
    elif width == 16:
        pairs = out.view(np.int64)
        for i in range(places.size):
            address = data[places[i] >> 32] + 16 * (places[i] & POSITION)
            pairs[2 * i] = load_8(address)
            pairs[2 * i + 1] = load_8(address + 8)
    elif width == 2:
        quarters = out.view(np.uint16)
        for i in range(places.size):
            quarters[i] = _load_2(data[places[i] >> 32] + 2 * (places[i] & POSITION))
    else:
        for i in range(places.size):
            out[i] = _load_1(data[places[i] >> 32] + (places[i] & POSITION))


@kernel(VOID(IN_I64, IN_I64, IN_I64, OUT_U8))
def gather_bits(places, data, first, out):
    """Write bits as bytes. ``data`` has the address of each chunk's bitmap (0: all bits are set), ``first``
    the number of its first bit.
    """
    for i in range(places.size):
        chunk = places[i] >> 32
        bit = first[chunk] + (places[i] & POSITION)
        out[i] = (_load_1(data[chunk] + (bit >> 3)) >> (bit & 7)) & 1 if data[chunk] else 1


@njit(nogil=True, inline="always")
def _length(offset):
    return np.int64(_load_4(offset + 4)) - np.int64(_load_4(offset))


@kernel(I64(IN_I64, IN_I64, IN_I64, OUT_I64, OUT_I64))
def measure_texts(places, offsets, data, starts, ends):
    """Write the address of each text, and after it where its copy ends; return the sum of their lengths.
    ``offsets`` has the address of each chunk's first offset, ``data`` that of its bytes.
    """
    used = 0
    for i in range(places.size):
        chunk = places[i] >> 32
        offset = offsets[chunk] + 4 * (places[i] & POSITION)
        starts[i] = data[chunk] + np.int64(_load_4(offset))
        used += _length(offset)
        ends[i] = used
    return used


@kernel(VOID(IN_I64, IN_I64, OUT_I32, OUT_U8))
def gather_texts(starts, ends, offsets, out):
    """Copy texts one after another, and write their offsets, of which there is one more than texts."""
    offsets[0] = 0
    used = 0
    for i in range(starts.size):
        if i + _AHEAD < starts.size:
            _prefetch(starts[i + _AHEAD])
        _copy(out, used, starts[i], ends[i] - used)
        used = ends[i]
        offsets[i + 1] = used


@kernel(VOID(IN_I64, IN_I64, OUT_I64))
def add_text_sizes(places, offsets, sizes):
    """Add the length of each text, and four bytes for its offset, to the sizes of rows."""
    for i in range(places.size):
        sizes[i] += 4 + _length(offsets[places[i] >> 32] + 4 * (places[i] & POSITION))
