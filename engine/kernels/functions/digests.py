"""MD5, SHA-1, SHA-224 and SHA-256 of sixteen texts at once: a lane of vectors each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.extending import intrinsic

from penstock.engine.kernels.kernel import I64, IN_I32, IN_U8, OUT_I64, OUT_U8, kernel
from penstock.engine.kernels.pointers import pointer

LANES = 16
MD5, SHA1, SHA2 = 0, 1, 2
_WORD = (1 << 32) - 1
_VECTOR = ir.VectorType(ir.IntType(32), LANES)
_P_U32 = types.CPointer(types.uint32)
U32 = types.uint32


def _root(number: int, degree: int) -> int:
    """Return the whole part of a root."""
    if degree == 2:
        return math.isqrt(number)
    low, high = 0, 1 << (number.bit_length() // 3 + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**3 <= number else (low, middle)
    return low


_PRIMES = [n for n in range(2, 312) if all(n % d for d in range(2, math.isqrt(n) + 1))]
_SHA2_TERMS = [_root(prime << 96, 3) & _WORD for prime in _PRIMES]
_MD5_TERMS = [int(abs(math.sin(i + 1)) * (1 << 32)) for i in range(64)]
_MD5_TURNS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_SHA1_TERMS = (0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6)
_FIVE = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0, 0, 0, 0)
STARTS = {
    "md5": _FIVE,
    "sha1": _FIVE,
    "sha224": tuple(_root(prime << 128, 2) & _WORD for prime in _PRIMES[8:16]),
    "sha256": tuple(_root(prime << 64, 2) & _WORD for prime in _PRIMES[:8]),
}
"""The states before the first block."""


class _Vectors:
    """Writes code over vectors of words."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def of(self, number: int) -> Any:
        return ir.Constant(_VECTOR, [number] * LANES)

    def pointer_to(self, base: Any, index: int) -> Any:
        vectors = self._builder.bitcast(base, _VECTOR.as_pointer())
        return self._builder.gep(vectors, [ir.Constant(ir.IntType(64), index)])

    def load(self, base: Any, index: int) -> Any:
        return self._builder.load(self.pointer_to(base, index), align=4)

    def store(self, value: Any, base: Any, index: int) -> None:
        self._builder.store(value, self.pointer_to(base, index), align=4)

    def sum(self, first: Any, *others: Any) -> Any:
        for other in others:
            first = self._builder.add(first, other)
        return first

    def xor(self, first: Any, *others: Any) -> Any:
        for other in others:
            first = self._builder.xor(first, other)
        return first

    def both(self, one: Any, other: Any) -> Any:
        return self._builder.and_(one, other)

    def either(self, one: Any, other: Any) -> Any:
        return self._builder.or_(one, other)

    def inverse(self, one: Any) -> Any:
        return self._builder.xor(one, self.of(_WORD))

    def right(self, one: Any, bits: int) -> Any:
        return self._builder.lshr(one, self.of(bits))

    def turned(self, one: Any, bits: int) -> Any:
        return self.either(self._builder.shl(one, self.of(bits)), self.right(one, 32 - bits))

    def chosen(self, by: Any, one: Any, other: Any) -> Any:
        """Return the bits of one where a bit is set, else of the other."""
        return self.xor(other, self.both(by, self.xor(one, other)))

    def majority(self, a: Any, b: Any, c: Any) -> Any:
        return self.either(self.both(a, b), self.both(c, self.either(a, b)))


def _md5_mixed(v: _Vectors, turn: int, b: Any, c: Any, d: Any) -> Any:
    if turn < 2:
        return v.chosen(d, b, c) if turn else v.chosen(b, c, d)
    return v.xor(b, c, d) if turn == 2 else v.xor(c, v.either(b, v.inverse(d)))


def _md5_rounds(v: _Vectors, state: list[Any], words: list[Any]) -> list[Any]:
    a, b, c, d = state
    for i in range(64):
        turn, step = divmod(i, 16)
        mixed = _md5_mixed(v, turn, b, c, d)
        word = words[(step, 5 * step + 1, 3 * step + 5, 7 * step)[turn] % 16]
        added = v.sum(a, mixed, v.of(_MD5_TERMS[i]), word)
        a, b, c, d = d, v.sum(b, v.turned(added, _MD5_TURNS[turn][i % 4])), b, c
    return [a, b, c, d]


def _sha1_rounds(v: _Vectors, state: list[Any], words: list[Any]) -> list[Any]:
    a, b, c, d, e = state
    for i in range(80):
        if i >= 16:
            words.append(v.turned(v.xor(words[i - 3], words[i - 8], words[i - 14], words[i - 16]), 1))
        turn = i // 20
        mixed = v.chosen(b, c, d) if turn == 0 else v.majority(b, c, d) if turn == 2 else v.xor(b, c, d)
        added = v.sum(v.turned(a, 5), mixed, e, v.of(_SHA1_TERMS[turn]), words[i])
        a, b, c, d, e = added, a, v.turned(b, 30), c, d
    return [a, b, c, d, e]


def _sha2_rounds(v: _Vectors, state: list[Any], words: list[Any]) -> list[Any]:
    a, b, c, d, e, f, g, h = state
    for i in range(64):
        if i >= 16:
            early, late = words[i - 15], words[i - 2]
            first = v.xor(v.turned(early, 25), v.turned(early, 14), v.right(early, 3))
            second = v.xor(v.turned(late, 15), v.turned(late, 13), v.right(late, 10))
            words.append(v.sum(words[i - 16], first, words[i - 7], second))
        upper = v.xor(v.turned(e, 26), v.turned(e, 21), v.turned(e, 7))
        added = v.sum(h, upper, v.chosen(e, f, g), v.of(_SHA2_TERMS[i]), words[i])
        lower = v.xor(v.turned(a, 30), v.turned(a, 19), v.turned(a, 10))
        a, b, c, d, e, f, g, h = v.sum(added, lower, v.majority(a, b, c)), a, b, c, v.sum(d, added), e, f, g
    return [a, b, c, d, e, f, g, h]


def _compression(rounds: Callable[..., list[Any]], size: int) -> Any:
    """Return the function that adds a block of each lane to the states."""

    def compress(_typing: Any, _states: Any, _block: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            states, block = arguments
            v = _Vectors(builder)
            before = [v.load(states, i) for i in range(size)]
            for i, value in enumerate(rounds(v, before, [v.load(block, i) for i in range(16)])):
                v.store(v.sum(before[i], value), states, i)
            return _context.get_dummy_value()

        return types.void(_P_U32, _P_U32), generate

    return intrinsic(compress)


_md5_block: Any = _compression(_md5_rounds, 4)
_sha1_block: Any = _compression(_sha1_rounds, 5)
_sha2_block: Any = _compression(_sha2_rounds, 8)


@njit(nogil=True)
def _fill(data, begin, size, number, lane, little, block):
    """Write a text's block into its lane: behind the text a bit, zeros, and at the end its length in bits."""
    first = 64 * number
    for word in range(16):
        at = first + 4 * word
        value = I64(0)
        if at + 4 <= size:
            place = begin + at
            one, two, three, four = data[place], data[place + 1], data[place + 2], data[place + 3]
            value = (I64(one) << 24) | (I64(two) << 16) | (I64(three) << 8) | I64(four)
        elif at <= size:
            value = I64(0x80) << (24 - 8 * (size - at))
            for k in range(size - at):
                value |= I64(data[begin + at + k]) << (24 - 8 * k)
        elif word == 14 and first + 56 > size:
            bits = 8 * size
            value = bits & 0xFFFFFFFF if little else bits >> 32
            block[16 * 14 + lane] = U32(value)
            value = bits >> 32 if little else bits & 0xFFFFFFFF
            block[16 * 15 + lane] = U32(value)
            return
        if little:
            value = (value >> 24) | ((value >> 8) & 0xFF00) | ((value & 0xFF00) << 8) | ((value & 0xFF) << 24)
        block[16 * word + lane] = U32(value)


@njit(nogil=True)
def _digit(value):
    return value + 48 if value < 10 else value + 87


@kernel(I64(I64, IN_U8, I64, IN_I32, IN_U8, IN_U8, OUT_I64, OUT_U8))
def digests(function, start_bytes, words, offsets, bytes_in, valid, ends, out_in):
    """Write the hexadecimal digests of texts, ``words`` words of four bytes each; none for NULL. ``start``:
    the eight words of the state before the first block. Return the number of bytes.
    """
    data, out, start = pointer(bytes_in), pointer(out_in), start_bytes.view(np.uint32)
    states_array, block_array = np.empty(8 * LANES, np.uint32), np.zeros(16 * LANES, np.uint32)
    states, block = pointer(states_array), pointer(block_array)
    little, count, used = function == MD5, offsets.size - 1, 0
    ends[0] = 0
    for i in range(count):
        used += 8 * words if valid.size == 0 or valid[i] else 0
        ends[i + 1] = used
    for row in range(0, count, LANES):
        lanes = min(LANES, count - row)
        blocks = 0
        for lane in range(lanes):
            if ends[row + lane + 1] > ends[row + lane]:
                blocks = max(blocks, (I64(offsets[row + lane + 1]) - I64(offsets[row + lane]) + 8) // 64 + 1)
        for word in range(8):
            for lane in range(LANES):
                states[word * LANES + lane] = start[word]
        for number in range(blocks):
            for lane in range(lanes):
                begin, size = (
                    I64(offsets[row + lane]),
                    I64(offsets[row + lane + 1]) - I64(offsets[row + lane]),
                )
                if number <= (size + 8) // 64:
                    _fill(data, begin, size, number, lane, little, block)
            if function == MD5:
                _md5_block(states, block)
            elif function == SHA1:
                _sha1_block(states, block)
            else:
                _sha2_block(states, block)
            for lane in range(lanes):
                size, at = I64(offsets[row + lane + 1]) - I64(offsets[row + lane]), ends[row + lane]
                if number == (size + 8) // 64 and ends[row + lane + 1] > at:
                    for word in range(words):
                        value = I64(states[word * LANES + lane])
                        for k in range(4):
                            byte = (value >> (8 * k if little else 24 - 8 * k)) & 255
                            out[at] = _digit(byte >> 4)
                            out[at + 1] = _digit(byte & 15)
                            at += 2
    return used
