"""Decodes Avro: one loop walks the instructions of a program for each value and fills the columns.

Every read is checked against the end of the value: a value that is cut or hostile is a fault, never a read
beyond it.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.types import UniTuple

from penstock.engine.kernels.avro.operations import NODE_WIDTH, WIDTH, ReadFault, ReadOp
from penstock.engine.kernels.kernel import (
    F64,
    I64,
    IN_I64,
    IN_U8,
    OUT_F64,
    OUT_I64,
    OUT_U8,
    U64,
    kernel,
)
from penstock.engine.kernels.pointers import P_F64, P_I64, P_U8, pointer

# numba reads globals as constants: the members of an IntEnum as plain numbers
END, INT, SCALED, FLOAT, DOUBLE, INT_AS_DOUBLE = (
    int(op)
    for op in (ReadOp.END, ReadOp.INT, ReadOp.SCALED, ReadOp.FLOAT, ReadOp.DOUBLE, ReadOp.INT_AS_DOUBLE)
)
BOOLEAN, BYTES, FIXED, ENUM, UUID = (
    int(op) for op in (ReadOp.BOOLEAN, ReadOp.BYTES, ReadOp.FIXED, ReadOp.ENUM, ReadOp.UUID)
)
DECIMAL, NULL_WORD, NULL_TEXT, VALID, WORD = (
    int(op) for op in (ReadOp.DECIMAL, ReadOp.NULL_WORD, ReadOp.NULL_TEXT, ReadOp.VALID, ReadOp.WORD)
)
TEXT, WIDE, NULL_ROW, SKIP_INT, SKIP_BYTES, SKIP_FIXED = (
    int(op)
    for op in (
        ReadOp.TEXT,
        ReadOp.WIDE,
        ReadOp.NULL_ROW,
        ReadOp.SKIP_INT,
        ReadOp.SKIP_BYTES,
        ReadOp.SKIP_FIXED,
    )
)
UNION, JUMP, BAD, LIST_BEGIN, LIST_NEXT, LIST_ITEM, LIST_CLOSE, LIST_NULL, SKIP_NEXT = (
    int(op) for op in ReadOp if op >= ReadOp.UNION
)
TRUNCATED, LONG_NUMBER, NO_BRANCH, OUT_OF_RANGE, NULL, OTHER_BRANCH, NO_SYMBOL, UNKNOWN_SYMBOL = (
    int(fault) for fault in ReadFault if 0 < fault <= ReadFault.UNKNOWN_SYMBOL
)
NO_BOOLEAN, NEGATIVE_LENGTH, TRAILING, BLOCK_COUNT, DIGITS, FULL_GROUP, FULL_BYTES = (
    int(fault) for fault in ReadFault if fault > ReadFault.UNKNOWN_SYMBOL
)
_MOST_EMPTY = 1_024
"""Elements that take no bytes (nulls): so many a block has at most, or ten bytes could ask for 2^63."""


@njit(UniTuple(I64, 2)(P_U8, I64, I64), nogil=True, cache=True)
def _varint(data, pos, end):
    """Return a zigzag number and the position behind it; a negative position is a fault."""
    if pos < end and data[pos] < 128:
        byte = np.int64(data[pos])
        return (byte >> 1) ^ -(byte & 1), pos + 1
    word = np.uint64(0)
    shift = 0
    while pos < end:
        byte = data[pos]
        pos += 1
        # the tenth byte has one bit left
        if shift == 63 and byte > 1:
            return 0, -LONG_NUMBER
        word |= np.uint64(byte & 127) << np.uint64(shift)
        if byte < 128:
            return np.int64(word >> np.uint64(1)) ^ -np.int64(word & np.uint64(1)), pos
        shift += 7
    return 0, -TRUNCATED


@njit(UniTuple(I64, 2)(P_U8, I64, I64), nogil=True, cache=True)
def _length(data, pos, end):
    """Return the length of a text that follows, and where it begins; a negative position is a fault."""
    length, pos = _varint(data, pos, end)
    if pos < 0:
        return 0, pos
    if length < 0:
        return 0, -NEGATIVE_LENGTH
    # a sum could overflow
    if length > end - pos:
        return 0, -TRUNCATED
    return length, pos


@njit(F64(U64), nogil=True, cache=True)
def _widened(bits):
    """Return the number that the bits of a float of 32 bits are."""
    exponent = np.int64((bits >> np.uint64(23)) & np.uint64(255))
    fraction = np.float64(bits & np.uint64(0x7FFFFF))
    sign = -1.0 if bits >> np.uint64(31) else 1.0
    if exponent == 255:
        return np.nan if fraction else sign * np.inf
    # without its leading one below the least normal number; both products are exact
    if exponent == 0:
        return sign * fraction * 2.0**-149
    return sign * (fraction + 8388608.0) * 2.0 ** np.float64(exponent - 150)


@njit(I64(I64, P_U8, I64, I64, P_I64, I64, P_I64, P_F64, I64), nogil=True, cache=True)
def _number(op, data, pos, end, program, pc, words, numbers, at):
    """Read a number to ``words[at]`` or ``numbers[at]``, which are one memory. Return the position behind."""
    if op in (INT, SCALED, INT_AS_DOUBLE):
        value, pos = _varint(data, pos, end)
        if pos < 0:
            return pos
        if value < program[pc + 3] or value > program[pc + 4]:
            return -OUT_OF_RANGE
        if op == INT:
            words[at] = value
        elif op == SCALED:
            # floor division: before 1970, too, a fraction is cut towards the past
            value *= program[pc + 5]
            words[at] = value if program[pc + 6] == 1 else value // program[pc + 6]
        else:
            numbers[at] = np.float64(value)
        return pos
    if op == BOOLEAN:
        if pos >= end:
            return -TRUNCATED
        if data[pos] > 1:
            return -NO_BOOLEAN
        words[at] = data[pos]
        return pos + 1
    size = 8 if op == DOUBLE else 4
    if size > end - pos:
        return -TRUNCATED
    word = np.uint64(0)
    for i in range(size):
        word |= np.uint64(data[pos + i]) << np.uint64(8 * i)
    if op == FLOAT:
        numbers[at] = _widened(word)
    else:
        words[at] = np.int64(word)
    return pos + size


@njit(I64(P_U8, I64, I64, P_U8, I64, P_I64, I64, P_I64, I64, I64), nogil=True, cache=True)
def _copy(source, begin, length, octets, node, nodes, item, words, at, pos):
    """Append bytes to a node of texts. Return ``pos``, or that the node is full."""
    into = words[at - 1] if item else 0
    if into + length > nodes[node * NODE_WIDTH + 3]:
        return -FULL_BYTES
    base = nodes[node * NODE_WIDTH + 2] + into
    for i in range(length):
        octets[base + i] = source[begin + i]
    words[at] = into + length
    return pos


@njit(I64(P_U8, I64, P_U8, I64, P_I64, I64, P_I64, I64), nogil=True, cache=True)
def _uuid(data, pos, octets, node, nodes, item, words, at):
    """Append 16 bytes as 36 characters."""
    into = words[at - 1] if item else 0
    if into + 36 > nodes[node * NODE_WIDTH + 3]:
        return -FULL_BYTES
    base = nodes[node * NODE_WIDTH + 2] + into
    for i in range(16):
        # 8-4-4-4-12 digits
        if i in (4, 6, 8, 10):
            octets[base] = 45
            base += 1
        # 48 is "0", 87 is ten before "a"
        first, second = data[pos + i] >> 4, data[pos + i] & 15
        octets[base] = first + (48 if first < 10 else 87)
        octets[base + 1] = second + (48 if second < 10 else 87)
        base += 2
    words[at] = into + 36
    return pos + 16


@njit(
    I64(I64, P_U8, I64, I64, P_I64, I64, P_I64, P_U8, P_I64, I64, P_I64, P_U8, I64),
    nogil=True,
    cache=True,
)
def _text(op, data, pos, end, program, pc, tables, constants, nodes, item, words, octets, at):
    """Read a text or bytes. Return the position behind."""
    node = program[pc + 1]
    if op == BYTES:
        length, pos = _length(data, pos, end)
        if pos < 0:
            return pos
        return _copy(data, pos, length, octets, node, nodes, item, words, at, pos + length)
    if op == ENUM:
        symbol, pos = _varint(data, pos, end)
        if pos < 0:
            return pos
        if symbol < 0 or symbol >= program[pc + 3]:
            return -NO_SYMBOL
        # two bounds a symbol; -1: the reader's schema has no such symbol
        begin = tables[program[pc + 4] + 2 * symbol]
        length = tables[program[pc + 4] + 2 * symbol + 1] - begin
        if begin < 0:
            return -UNKNOWN_SYMBOL
        return _copy(constants, begin, length, octets, node, nodes, item, words, at, pos)
    size = 16 if op == UUID else program[pc + 3]
    if size > end - pos:
        return -TRUNCATED
    if op == UUID:
        return _uuid(data, pos, octets, node, nodes, item, words, at)
    return _copy(data, pos, size, octets, node, nodes, item, words, at, pos + size)


@njit(I64(P_U8, I64, I64, P_I64, I64, P_I64, I64), nogil=True, cache=True)
def _decimal(data, pos, end, program, pc, words, at):
    """Read a big-endian number of two's complement as two words, low and high. Return the position behind."""
    size = program[pc + 3]
    if size < 0:
        size, pos = _length(data, pos, end)
        if pos < 0:
            return pos
    elif size > end - pos:
        return -TRUNCATED
    negative = size > 0 and data[pos] >= 128
    fill = np.uint64(0xFFFFFFFFFFFFFFFF) if negative else np.uint64(0)
    low, high = fill, fill
    for i in range(size):
        # what leaves at the top must be the sign
        if high >> np.uint64(56) != fill & np.uint64(255):
            return -DIGITS
        high = (high << np.uint64(8)) | (low >> np.uint64(56))
        low = (low << np.uint64(8)) | np.uint64(data[pos + i])
    if negative != (np.int64(high) < 0):
        return -DIGITS
    # the absolute value is compared with the limit, which leaves space for the digits that are added
    if negative:
        low = ~low + np.uint64(1)
        high = ~high + (np.uint64(1) if low == 0 else np.uint64(0))
    limit_low, limit_high = np.uint64(program[pc + 5]), np.uint64(program[pc + 6])
    if high > limit_high or (high == limit_high and low >= limit_low):
        return -DIGITS
    mask = np.uint64(0xFFFFFFFF)
    for _ in range(program[pc + 4]):
        # times ten, by halves of words
        first = (low & mask) * np.uint64(10)
        second = (low >> np.uint64(32)) * np.uint64(10) + (first >> np.uint64(32))
        low = (second << np.uint64(32)) | (first & mask)
        high = high * np.uint64(10) + (second >> np.uint64(32))
    if negative:
        low = ~low + np.uint64(1)
        high = ~high + (np.uint64(1) if low == 0 else np.uint64(0))
    words[at] = np.int64(low)
    words[at + 1] = np.int64(high)
    return pos + size


@njit(I64(I64, P_I64, I64, P_U8, P_I64, I64, P_I64, P_U8, I64, I64), nogil=True, cache=True)
def _constant(op, program, pc, constants, nodes, item, words, octets, at, pos):
    """Append a constant, or the word of a NULL. Return ``pos``, or that the node is full."""
    if op == NULL_TEXT:
        words[at] = words[at - 1] if item else 0
    elif op in (WORD, NULL_WORD):
        words[at] = program[pc + 3]
    elif op == WIDE:
        words[at] = program[pc + 3]
        words[at + 1] = program[pc + 4]
    elif op == TEXT:
        begin = program[pc + 3]
        length = program[pc + 4] - begin
        return _copy(constants, begin, length, octets, program[pc + 1], nodes, item, words, at, pos)
    return pos


@njit(I64(I64, P_U8, I64, I64, I64), nogil=True, cache=True)
def _skip(op, data, pos, end, size):
    """Return the position behind a value that nobody wants."""
    if op == SKIP_INT:
        return _varint(data, pos, end)[1]
    if op == SKIP_BYTES:
        size, pos = _length(data, pos, end)
        return pos if pos < 0 else pos + size
    return pos + size if size <= end - pos else -TRUNCATED


@njit(UniTuple(I64, 2)(P_U8, I64, I64, I64), nogil=True, cache=True)
def _block(data, pos, end, smallest):
    """Return the number of elements of a block, and the position behind its head. A block of a negative count
    has its size in bytes behind it.
    """
    count, pos = _varint(data, pos, end)
    if pos < 0:
        return 0, pos
    if count < 0:
        count = -count
        size, pos = _varint(data, pos, end)
        if pos < 0:
            return 0, pos
        if size < 0 or size > end - pos:
            return 0, -BLOCK_COUNT
    # more elements than there are bytes for; the least int64 has no positive
    most = (end - pos) // smallest if smallest else _MOST_EMPTY
    if count < 0 or count > most:
        return 0, -BLOCK_COUNT
    return count, pos


@njit(
    I64(
        I64, P_U8, I64, I64, P_I64, I64, P_I64, P_U8, P_I64, I64, P_I64, P_F64, P_U8, P_U8
    ),
    nogil=True,
    cache=True,
)  # fmt: skip
def _value(op, data, pos, end, program, pc, tables, constants, nodes, item, words, numbers, valid, octets):
    """Read or make one value of a column. Return the position behind, or a fault."""
    node = program[pc + 1] * NODE_WIDTH
    at = nodes[node] + item * program[pc + 7]
    valid[nodes[node + 1] + item] = op not in (NULL_WORD, NULL_TEXT, NULL_ROW)
    if op < BYTES:
        return _number(op, data, pos, end, program, pc, words, numbers, at)
    if op < DECIMAL:
        return _text(op, data, pos, end, program, pc, tables, constants, nodes, item, words, octets, at)
    if op == DECIMAL:
        return _decimal(data, pos, end, program, pc, words, at)
    return _constant(op, program, pc, constants, nodes, item, words, octets, at, pos)


@njit(
    UniTuple(I64, 3)(I64, P_U8, I64, I64, P_I64, I64, P_I64, P_I64, P_I64, P_U8, P_I64, P_I64, I64),
    nogil=True,
    cache=True,
)
def _list(op, data, pos, end, program, pc, nodes, groups, words, valid, limits, stack, depth):
    """Continue in a list. Return the next instruction, the position, and how many lists are open."""
    node, item, inner = program[pc + 1] * NODE_WIDTH, groups[program[pc + 2]], program[pc + 3]
    at = nodes[node] + item * program[pc + 7]
    if op == LIST_BEGIN:
        stack[depth] = 0
        return pc + WIDTH, pos, depth + 1
    if op == LIST_ITEM:
        groups[inner] += 1
        return program[pc + 4], pos, depth
    if op in (LIST_CLOSE, LIST_NULL):
        words[at] = groups[inner]
        valid[nodes[node + 1] + item] = op == LIST_CLOSE
        return pc + WIDTH, pos, depth
    if stack[depth - 1] == 0:
        stack[depth - 1], pos = _block(data, pos, end, program[pc + 5])
        if pos >= 0 and stack[depth - 1] == 0:
            if op == LIST_NEXT:
                words[at] = groups[inner]
                valid[nodes[node + 1] + item] = 1
            return program[pc + 4], pos, depth - 1
    stack[depth - 1] -= 1
    if pos >= 0 and op == LIST_NEXT and groups[inner] >= limits[inner]:
        pos = -FULL_GROUP
    return pc + WIDTH, pos, depth


@kernel(
    I64(
        IN_U8, IN_I64, IN_I64, I64, IN_I64, IN_I64, IN_U8, IN_I64, OUT_I64, OUT_F64, OUT_U8, OUT_U8, OUT_I64,
        OUT_I64, OUT_I64, OUT_I64,
    )
)  # fmt: skip
def decode(values, starts, ends, first, code, branches, texts, places, slots, floats, filled, bytes_out,
           counts, most, open_lists, faults):  # fmt: skip
    """Decode values from ``first`` on; return the first that was not: all are done, or a buffer is full.

    ``counts``: the items of each group so far; ``most``: how many it may have. ``faults``: per value the
    fault, its position in the value, and the instruction. ``open_lists``: what is left of their blocks.
    """
    data, program, tables, constants = pointer(values), pointer(code), pointer(branches), pointer(texts)
    nodes, words, numbers, valid = pointer(places), pointer(slots), pointer(floats), pointer(filled)
    octets, groups, limits, stack = pointer(bytes_out), pointer(counts), pointer(most), pointer(open_lists)
    saved = counts.copy()
    for row in range(first, starts.size):
        pos, end, pc, depth = starts[row], ends[row], 0, 0
        here, begin, op = 0, pos, program[0]
        while op != END:
            here, begin = pc, pos
            pc += WIDTH
            if op <= NULL_ROW:
                item = groups[program[here + 2]]
                pos = _value(op, data, pos, end, program, here, tables, constants, nodes, item, words,
                             numbers, valid, octets)  # fmt: skip
            elif op <= SKIP_FIXED:
                pos = _skip(op, data, pos, end, program[here + 3])
            elif op == UNION:
                branch, pos = _varint(data, pos, end)
                if pos >= 0 and (branch < 0 or branch >= program[here + 3]):
                    pos = -NO_BRANCH
                pc = tables[program[here + 4] + branch] if pos >= 0 else pc
            elif op == JUMP:
                pc = program[here + 3]
            elif op == BAD:
                pos = -program[here + 3]
            else:
                pc, pos, depth = _list(op, data, pos, end, program, here, nodes, groups, words, valid,
                                       limits, stack, depth)  # fmt: skip
            if pos < 0:
                break
            op = program[pc]
        # behind the last instruction the value must end
        begin = pos if pos >= 0 else begin
        fault = -pos if pos < 0 else TRAILING if pos != end else 0
        if fault >= FULL_GROUP:
            counts[:] = saved
            return row
        faults[3 * row], faults[3 * row + 1], faults[3 * row + 2] = fault, begin - starts[row], here
        # a value with a fault leaves nothing behind
        if fault:
            counts[:] = saved
        else:
            counts[0] += 1
            saved[:] = counts
    return starts.size
