"""Random letters: each row's text is a function of its word alone, so any row can be generated again."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.kernel import IN_I32, IN_U8, IN_U64, OUT_U8, VOID, kernel

# splitmix64: the step of its state, and the two factors of its output
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_FIVE_BITS = np.uint64(31)
# twelve letters of five bits use 60 of the 64 bits of a random word
_PER_WORD = 12


@kernel(VOID(IN_U64, IN_I32, IN_U8, OUT_U8))
def fill_letters(words, offsets, letters, out):
    """Write random letters into ``out[offsets[i]:offsets[i + 1]]``. They are drawn from the 32 of ``letters``
    by a generator seeded with ``words[i]``.
    """
    for i in range(words.size):
        state = words[i]
        at = offsets[i]
        end = offsets[i + 1]
        while at < end:
            state += _GOLDEN
            # splitmix64: the output for the next state.
            z = state
            z = (z ^ (z >> np.uint64(30))) * _FIRST
            z = (z ^ (z >> np.uint64(27))) * _SECOND
            z = z ^ (z >> np.uint64(31))
            stop = min(at + _PER_WORD, end)
            # Each letter is the next five bits.
            for position in range(at, stop):
                out[position] = letters[z & _FIVE_BITS]
                z >>= np.uint64(5)
            at = stop
