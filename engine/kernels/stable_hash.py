"""Stable 64-bit hashes of rows, equal on every machine, in every run and every release. Key groups in
checkpoints depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from penstock.engine.api.key_groups import groups_of_hashes
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.kernel import IN_I32, IN_I64, IN_U8, OUT_U64, VOID, kernel
from penstock.engine.kernels.nested_text import canonical_text

# None of these may ever change: checkpoints are divided by the key groups that follow from them. _STEP,
# _FIRST and _SECOND are those of splitmix64; the others are arbitrary.
SEED = np.uint64(0x51AB1E5EEDF00D11)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_NULL = np.uint64(0xD6E8FEB86659FD93)
_TEXT = np.uint64(0x2545F4914F6CDD1D)


@njit(nogil=True, inline="always")
def mix(word):
    """Return a 64-bit word in which every bit depends on every input bit."""
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@njit(nogil=True, inline="always")
def combine(hashed, word):
    """Return a row's hash extended by another column's word."""
    return mix(hashed * _STEP + word + _STEP)


@njit(nogil=True)
def hash_bytes(data, start, end):
    """Return the hash of the bytes ``data[start:end]``."""
    length = end - start
    hashed = np.uint64(length) * _STEP + _TEXT
    at = start
    # whole words, then the rest: read as one word that overlaps bytes already hashed where there are enough
    while at + 8 <= end:
        hashed = (hashed ^ load_word(data, at)) * _FIRST
        hashed ^= hashed >> np.uint64(29)
        # All whole words of the text.
        at += 8
    tail = np.uint64(0)
    if at == end:
        pass
    elif length >= 8:
        tail = load_word(data, end - 8)
    elif length >= 4:
        tail = load_half(data, start) | load_half(data, end - 4) << np.uint64(32)
    else:
        # One to three bytes: first, middle and last cover them all.
        tail = (
            np.uint64(data[start])
            | np.uint64(data[start + length // 2]) << np.uint64(8)
            | np.uint64(data[end - 1]) << np.uint64(16)
        )
    hashed = (hashed ^ tail) * _STEP
    return hashed ^ (hashed >> np.uint64(32))


@kernel(VOID(IN_I64, IN_U8, OUT_U64))
def _hash_words(words, valid, out):
    if valid.size == 0:
        for i in range(words.size):
            out[i] = combine(out[i], np.uint64(words[i]))
    else:
        for i in range(words.size):
            # NULL is a word of its own, so that it differs from 0.
            out[i] = combine(out[i], np.uint64(words[i]) if valid[i] else _NULL)


@kernel(VOID(IN_I32, IN_U8, IN_U8, OUT_U64))
def _hash_strings(offsets, data, valid, out):
    for i in range(out.size):
        if valid.size and not valid[i]:
            out[i] = combine(out[i], _NULL)
        else:
            out[i] = combine(out[i], hash_bytes(data, offsets[i], offsets[i + 1]))


def stable_hash(columns: Sequence[pa.Array]) -> np.ndarray:
    """Return a uint64 hash per row over one or more columns of equal length.

    Equal values hash alike, whatever their integer width. DATE and TIMESTAMP hash by their count, FLOAT as
    DOUBLE. -0.0 equals 0.0, all NaN are equal, and NULL equals NULL. Arrays, maps and rows hash by their
    canonical texts.
    """
    # Every row starts at the same seed; each column extends it.
    hashes = np.full(len(columns[0]), SEED, np.uint64)
    for key_column in columns:
        column = canonical_text(key_column) if pa.types.is_nested(key_column.type) else key_column
        valid = col.validity(column)
        if col.is_bytes(column.type):
            offsets, data = col.string_parts(column)
            _hash_strings(offsets, data, valid, hashes)
        elif pa.types.is_decimal128(column.type):
            # Both words, whatever the precision: DECIMAL(10) and DECIMAL(20) hash alike.
            low, high = col.wide_words(column)
            _hash_words(low, valid, hashes)
            _hash_words(high, valid, hashes)
        else:
            _hash_words(col.words(column), valid, hashes)
    return hashes


def groups_of_keys(keys: pa.Table, max_parallelism: int) -> np.ndarray:
    """Return the key group of each row of key columns, uint16."""
    hashed = [groups_of_hashes(stable_hash(batch.columns), max_parallelism) for batch in keys.to_batches()]
    return np.concatenate([np.zeros(0, np.uint16), *hashed])


def _loader(bits: int):
    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        address = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(bits).as_pointer())
        word = builder.load(address)
        # The address may be any: without this the compiler assumes an aligned load.
        word.align = 1
        return word if bits == 64 else builder.zext(word, ir.IntType(64))

    return codegen


@intrinsic
def load_word(typing, data, at):
    """Return the 8 bytes from ``data[at]`` on as a uint64. The caller must stay inside the array."""
    return types.uint64(data, types.int64), _loader(64)


@intrinsic
def load_half(typing, data, at):
    """Return the 4 bytes from ``data[at]`` on as a uint64. The caller must stay inside the array."""
    return types.uint64(data, types.int64), _loader(32)
