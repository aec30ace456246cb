"""Encodes Avro: one loop walks the instructions of a program for each row and reads the columns."""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.avro.operations import NODE_WIDTH, WIDTH, ReadFault, WriteOp
from penstock.engine.kernels.kernel import I64, IN_I64, IN_U8, OUT_I64, OUT_U8, kernel
from penstock.engine.kernels.pointers import P_I64, P_U8, pointer

# numba reads globals as constants: the members of an IntEnum as plain numbers
END, INT, FLOAT, DOUBLE, BOOLEAN, BYTES = (
    int(op)
    for op in (WriteOp.END, WriteOp.INT, WriteOp.FLOAT, WriteOp.DOUBLE, WriteOp.BOOLEAN, WriteOp.BYTES)
)
FIXED, DECIMAL_BYTES, DECIMAL_FIXED, NULLABLE, REQUIRED = (
    int(op)
    for op in (
        WriteOp.FIXED,
        WriteOp.DECIMAL_BYTES,
        WriteOp.DECIMAL_FIXED,
        WriteOp.NULLABLE,
        WriteOp.REQUIRED,
    )
)
JUMP, LIST_BEGIN, LIST_NEXT, LIST_ITEM, BRANCH = (
    int(op) for op in (WriteOp.JUMP, WriteOp.LIST_BEGIN, WriteOp.LIST_NEXT, WriteOp.LIST_ITEM, WriteOp.BRANCH)
)
NULL, FULL_BYTES, DIGITS = int(ReadFault.NULL), int(ReadFault.FULL_BYTES), int(ReadFault.DIGITS)
_LONGEST = 32
"""Bytes that a number, a branch or the head of a block takes at most."""


@njit(I64(I64, P_U8, I64), nogil=True, cache=True)
def _put(value, out, pos):
    """WriteOp a zigzag number; return the position behind."""
    word = np.uint64((value << 1) ^ (value >> 63))
    while word >= np.uint64(128):
        out[pos] = np.uint8(word & np.uint64(127)) | np.uint8(128)
        word >>= np.uint64(7)
        pos += 1
    out[pos] = np.uint8(word)
    return pos + 1


@njit(I64(I64, P_I64, I64, P_U8, I64), nogil=True, cache=True)
def _decimal(size, words, at, out, pos):
    """WriteOp two words as big-endian bytes, as few as hold the number where ``size`` is -1. Return the
    position behind, or that there are too many digits.
    """
    low, high = np.uint64(words[at]), np.uint64(words[at + 1])
    fill = np.uint64(255) if words[at + 1] < 0 else np.uint64(0)
    # leading bytes that only repeat the sign
    needed = 16
    while needed > 1:
        word = high if needed > 8 else low
        top = (word >> np.uint64((needed - 1) % 8 * 8)) & np.uint64(255)
        below = (high if needed > 9 else low) >> np.uint64((needed - 2) % 8 * 8) & np.uint64(255)
        if top != fill or (below >> np.uint64(7)) != (fill & np.uint64(1)):
            break
        needed -= 1
    if size < 0:
        size = needed
        pos = _put(size, out, pos)
    elif needed > size:
        return -DIGITS
    for i in range(size - 1, -1, -1):
        word = high if i > 7 else low
        out[pos] = np.uint8(fill) if i > 15 else np.uint8((word >> np.uint64(i % 8 * 8)) & np.uint64(255))
        pos += 1
    return pos


@njit(I64(I64, P_I64, I64, P_I64, I64, P_U8, I64), nogil=True, cache=True)
def _value(op, program, pc, words, at, out, pos):
    """WriteOp a value of a bounded size. Return the position behind."""
    if op == INT:
        return _put(words[at], out, pos)
    if op == BOOLEAN:
        out[pos] = np.uint8(words[at])
        return pos + 1
    if op >= DECIMAL_BYTES:
        return _decimal(-1 if op == DECIMAL_BYTES else program[pc + 3], words, at, out, pos)
    word = np.uint64(words[at])
    size = 8 if op == DOUBLE else 4
    for _ in range(size):
        out[pos] = np.uint8(word & np.uint64(255))
        word >>= np.uint64(8)
        pos += 1
    return pos


@njit(I64(I64, I64, I64, P_U8, P_U8, I64, I64), nogil=True, cache=True)
def _text(op, length, begin, octets, out, pos, most):
    """WriteOp a text or bytes, its length before it where it is not fixed. Return the position behind."""
    if pos + length + _LONGEST > most:
        return -FULL_BYTES
    if op == BYTES:
        pos = _put(length, out, pos)
    for i in range(length):
        out[pos + i] = octets[begin + i]
    return pos + length


@kernel(I64(IN_I64, IN_I64, IN_I64, IN_U8, IN_U8, OUT_I64, I64, I64, OUT_I64, OUT_U8, OUT_I64, OUT_I64))
def encode(code, places, slots, filled, bytes_in, counts, first, rows, stack, bytes_out, ends, fault):
    """Encode rows from ``first`` on, and write where each value ends in ``bytes_out``. Return the first row
    that was not encoded: all are, the bytes are full, or ``fault`` has what is wrong and the instruction.

    ``counts``: the current item of each group.
    """
    program, nodes, words, valid = pointer(code), pointer(places), pointer(slots), pointer(filled)
    octets, groups, out = pointer(bytes_in), pointer(counts), pointer(bytes_out)
    done, most = ends[first], bytes_out.size
    for row in range(first, rows):
        groups[0] = row
        pos, pc, depth = done, 0, 0
        while program[pc] != END:
            op, node, item, here = program[pc], program[pc + 1], groups[program[pc + 2]], pc
            at = nodes[node * NODE_WIDTH] + item * program[pc + 7]
            pc += WIDTH
            if op in (BYTES, FIXED):
                begin = words[at - 1] if item else 0
                base = nodes[node * NODE_WIDTH + 2]
                pos = _text(op, words[at] - begin, base + begin, octets, out, pos, most)
            elif pos + program[here + 3] + _LONGEST > most:
                pos = -FULL_BYTES
            elif op <= DECIMAL_FIXED:
                pos = _value(op, program, here, words, at, out, pos)
            elif op in (NULLABLE, REQUIRED):
                if valid[nodes[node * NODE_WIDTH + 1] + item]:
                    if op == NULLABLE:
                        pos = _put(program[here + 5], out, pos)
                elif op == NULLABLE:
                    pos = _put(program[here + 4], out, pos)
                    pc = program[here + 6]
                else:
                    pos = -NULL
            elif op == BRANCH:
                pos = _put(program[here + 4], out, pos)
            elif op == JUMP:
                pc = program[here + 4]
            elif op == LIST_BEGIN:
                # the elements of this list: one block, and none where it is empty
                begin = words[at - 1] if item else 0
                groups[program[here + 4]] = begin
                stack[depth] = words[at]
                depth += 1
                if words[at] > begin:
                    pos = _put(words[at] - begin, out, pos)
            elif op == LIST_NEXT:
                if groups[program[here + 4]] == stack[depth - 1]:
                    depth -= 1
                    pos = _put(0, out, pos)
                    pc = program[here + 5]
            else:
                groups[program[here + 4]] += 1
                pc = program[here + 5]
            if pos < 0:
                fault[0], fault[1] = -pos, here
                return row
        done = pos
        ends[row + 1] = pos
    return rows
