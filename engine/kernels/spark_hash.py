"""Spark's ``hash`` (Murmur3, 32 bits) and ``xxhash64``, chained over columns. A NULL leaves the hash
unchanged.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from penstock.engine.kernels.kernel import BOOL, IN_I32, IN_I64, IN_U8, OUT_U64, VOID, kernel
from penstock.engine.kernels.stable_hash import load_half, load_word

# Murmur3 is of 32 bits: words are masked after each step.
_LOW = np.uint64(0xFFFFFFFF)
# The constants of xxHash64; those of Murmur3 are in the functions below.
_P1, _P2, _P3 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_P4, _P5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)


@njit(nogil=True, inline="always")
def _turn32(word, by):
    return ((word << uint64(by)) | (word >> uint64(32 - by))) & _LOW


@njit(nogil=True, inline="always")
def _turn64(word, by):
    return (word << uint64(by)) | (word >> uint64(64 - by))


@njit(nogil=True)
def _mixed(hashed, half):
    half = (half * uint64(0xCC9E2D51)) & _LOW
    half = (_turn32(half, 15) * uint64(0x1B873593)) & _LOW
    return (_turn32(hashed ^ half, 13) * uint64(5) + uint64(0xE6546B64)) & _LOW


@njit(nogil=True)
# Murmur3's finalizer.
def _finished(hashed, length):
    hashed = hashed ^ uint64(length)
    hashed = ((hashed ^ (hashed >> uint64(16))) * uint64(0x85EBCA6B)) & _LOW
    hashed = ((hashed ^ (hashed >> uint64(13))) * uint64(0xC2B2AE35)) & _LOW
    return hashed ^ (hashed >> uint64(16))


@njit(nogil=True)
# xxHash64's finalizer.
def _avalanched(hashed):
    hashed = (hashed ^ (hashed >> uint64(33))) * _P2
    hashed = (hashed ^ (hashed >> uint64(29))) * _P3
    return hashed ^ (hashed >> uint64(32))


@njit(nogil=True)
def _with_word(hashed, word):
    return _turn64(hashed ^ (_turn64(word * _P2, 31) * _P1), 27) * _P1 + _P4


@njit(nogil=True)
def _with_half(hashed, half):
    return _turn64(hashed ^ (half * _P1), 23) * _P2 + _P3


@kernel(VOID(IN_I64, IN_U8, BOOL, OUT_U64))
def murmur_words(words, valid, long, out):
    """Extend Murmur3 hashes by words, of 64 bits if ``long``, else of 32."""
    for i in range(words.size):
        # Spark skips NULLs: the hash so far is the result.
        if valid.size and not valid[i]:
            continue
        word = uint64(words[i])
        hashed = _mixed(out[i], word & _LOW)
        # Spark hashes a long as its low half, then its high half.
        if long:
            hashed = _mixed(hashed, word >> uint64(32))
        out[i] = _finished(hashed, 8 if long else 4)


@kernel(VOID(IN_I32, IN_U8, IN_U8, OUT_U64))
def murmur_bytes(offsets, data, valid, out):
    """Extend Murmur3 hashes by byte strings."""
    for i in range(out.size):
        if valid.size and not valid[i]:
            continue
        at, end, hashed = offsets[i], offsets[i + 1], out[i]
        while at + 4 <= end:
            hashed = _mixed(hashed, uint64(load_half(data, at)) & _LOW)
            at += 4
        while at < end:
            # Spark mixes each byte of the tail as a signed word of its own, unlike standard Murmur3.
            hashed = _mixed(hashed, uint64(np.int64(np.int8(data[at]))) & _LOW)
            at += 1
        out[i] = _finished(hashed, end - offsets[i])


@kernel(VOID(IN_I64, IN_U8, BOOL, OUT_U64))
def xx_words(words, valid, long, out):
    """Extend xxHash64 hashes by words, of 64 bits if ``long``, else of 32."""
    for i in range(words.size):
        if valid.size and not valid[i]:
            continue
        word = uint64(words[i])
        if long:
            out[i] = _avalanched(_with_word(out[i] + _P5 + uint64(8), word))
        else:
            out[i] = _avalanched(_with_half(out[i] + _P5 + uint64(4), word & _LOW))


@kernel(VOID(IN_I32, IN_U8, IN_U8, OUT_U64))
def xx_bytes(offsets, data, valid, out):
    """Extend xxHash64 hashes by byte strings."""
    for i in range(out.size):
        if valid.size and not valid[i]:
            continue
        at, end, seed = offsets[i], offsets[i + 1], out[i]
        length = uint64(end - at)
        # Four lanes of eight bytes, from 32 bytes on.
        if end - at >= 32:
            a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
            while at + 32 <= end:
                a = _turn64(a + load_word(data, at) * _P2, 31) * _P1
                b = _turn64(b + load_word(data, at + 8) * _P2, 31) * _P1
                c = _turn64(c + load_word(data, at + 16) * _P2, 31) * _P1
                d = _turn64(d + load_word(data, at + 24) * _P2, 31) * _P1
                at += 32
            # The lanes are combined with different rotations.
            hashed = _turn64(a, 1) + _turn64(b, 7) + _turn64(c, 12) + _turn64(d, 18)
            for part in (a, b, c, d):
                hashed = (hashed ^ (_turn64(part * _P2, 31) * _P1)) * _P1 + _P4
        else:
            hashed = seed + _P5
        # The length, then what is left: words, a half word, single bytes.
        hashed += length
        while at + 8 <= end:
            hashed = _with_word(hashed, load_word(data, at))
            at += 8
        if at + 4 <= end:
            hashed = _with_half(hashed, uint64(load_half(data, at)) & _LOW)
            at += 4
        while at < end:
            hashed = _turn64(hashed ^ (uint64(data[at]) * _P5), 11) * _P1
            at += 1
        out[i] = _avalanched(hashed)
