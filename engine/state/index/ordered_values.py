"""OrderedValues: words for values that are no words, in the order of the values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.index.sorted_texts import text_places

Renumber = Callable[[np.ndarray], np.ndarray]
"""Returns the new words of former ones."""
_LIMIT = 1 << 61
_STEP = 1 << 20
"""The distance of a value from its neighbour where values come in order: a gap has room for many more."""
_SPARE = 4_096
"""Values that may be unused before any is released."""


class OrderedValues:
    """A word for each different value of a type (STRING, BINARY, a decimal of more than 18 digits). Words are
    equal exactly when the values are, and sort as they do.

    Words are even, so a word less by one is below the value and above all smaller ones. A new value gets a
    word between those of its neighbours. Where there is no room all values get new words, and every
    ``follower`` is called with a function of the former ones. Values are never NULL.
    """

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._batch = 0
        self.followers: list[Callable[[Renumber], None]] = []

    def __len__(self) -> int:
        return sum(run.words.size for run in self._runs)

    def words(self, values: pa.Array) -> np.ndarray:
        """Return the words of values, of which new ones are added."""
        texts = _sortable(values)
        known = _Neighbours(len(texts))
        for run in self._runs:
            known.look_into(run, texts)
        fresh = np.flatnonzero(~known.found)
        if not fresh.size:
            return known.words
        # the different new values in order, each with one of its positions
        encoded = texts.take(array_of(fresh)).dictionary_encode()
        codes = numbers_of(encoded.indices).astype(np.int64)
        order = numbers_of(pc.sort_indices(encoded.dictionary)).astype(np.int64)
        positions = np.empty(order.size, np.int64)
        positions[codes] = fresh
        new = known.between(positions[order])
        if new is None:
            self._renumber()
            return self.words(values)
        self._batch += 1
        self._add(_Run(encoded.dictionary.take(array_of(order)), new, np.full(new.size, self._batch)))
        of_codes = np.empty(order.size, np.int64)
        of_codes[order] = new
        known.words[fresh] = of_codes[codes]
        return known.words

    def release(self, in_use: int, used: Callable[[], np.ndarray]) -> None:
        """Forget values that are not used, once they are more than those ``in_use``. ``used`` returns the
        words of all that are.
        """
        if len(self) <= 2 * in_use + _SPARE:
            return
        whole = self._merged()
        self._runs = [whole.at(np.flatnonzero(np.isin(whole.words, used())))]

    def _add(self, run: _Run) -> None:
        self._runs.append(run)
        # Each run is more than twice as large as the next one, so there are few.
        while len(self._runs) > 1 and self._runs[-2].words.size < 2 * run.words.size:
            run = _merged(self._runs[-2:])
            self._runs[-2:] = [run]

    def _merged(self) -> _Run:
        return _merged(self._runs) if len(self._runs) > 1 else self._runs[0]

    def _renumber(self) -> None:
        """Give all values new words, far from each other, and half of all words to those that come at an
        end.
        """
        whole = self._merged()
        step = _even(_LIMIT // (whole.words.size + 1))
        words = -_LIMIT // 2 + step * np.arange(1, whole.words.size + 1)
        former = whole.words
        self._runs = [_Run(whole.texts, words, whole.batches)]
        for follower in self.followers:
            follower(lambda some: words[np.searchsorted(former, some)])


class _Run:
    """Different values in order: as byte strings, with their words and the number of the batch that each came
    with.
    """

    def __init__(self, texts: pa.LargeBinaryArray, words: np.ndarray, batches: np.ndarray) -> None:
        self.texts, self.words, self.batches = texts, words, batches

    def at(self, places: np.ndarray) -> _Run:
        return _Run(self.texts.take(array_of(places)), self.words[places], self.batches[places])


def _merged(runs: list[_Run]) -> _Run:
    words = np.concatenate([run.words for run in runs])
    whole = _Run(
        pa.concat_arrays([run.texts for run in runs]), words, np.concatenate([run.batches for run in runs])
    )
    # words sort as the values do, and faster
    return whole.at(np.argsort(words, kind="stable"))


class _Neighbours:
    """The words of values that are known; for all others the nearest known values on both sides, by their
    words and by the batch that these came with.
    """

    def __init__(self, count: int) -> None:
        self.words, self.found = np.zeros(count, np.int64), np.zeros(count, np.bool_)
        self._low, self._high = np.full(count, -_LIMIT), np.full(count, _LIMIT)
        self._before, self._behind = np.full(count, -1), np.full(count, -1)

    def look_into(self, run: _Run, texts: pa.LargeBinaryArray) -> None:
        places, there = np.empty(len(texts), np.int64), np.empty(len(texts), np.uint8)
        text_places(*_parts(run.texts), *_parts(texts), places, there)
        hits = there.view(np.bool_)
        self.found |= hits
        self.words[hits] = run.words[places[hits]]
        # the value before the place, and the one at it
        for some, at, nearest, batches, sign in (
            (places > 0, places - 1, self._low, self._before, 1),
            (places < run.words.size, places, self._high, self._behind, -1),
        ):
            candidates = run.words[np.where(some, at, 0)]
            closer = np.flatnonzero(some & (sign * candidates > sign * nearest))
            nearest[closer] = candidates[closer]
            batches[closer] = run.batches[at[closer]]

    def between(self, positions: np.ndarray) -> np.ndarray | None:
        """Return words for new values at these positions, which are in order; None where there is no room."""
        low, high = self._low[positions], self._high[positions]
        # new values of one gap follow one another
        begins = np.flatnonzero(np.append(True, np.diff(low) != 0))
        counts = np.diff(np.append(begins, positions.size))
        step = _even((high[begins] - low[begins]) // (counts + 1))
        if (step < 2).any():
            return None
        # values that come in order have their last one beside them: more of them will come there
        before, behind = self._before[positions][begins], self._behind[positions][begins]
        step = np.where(before == behind, step, np.minimum(step, _STEP))
        number = np.arange(positions.size) - np.repeat(begins, counts) + 1
        up = low + np.repeat(step, counts) * number
        down = high - np.repeat(step, counts) * (np.repeat(counts, counts) + 1 - number)
        return np.where(np.repeat(before >= behind, counts), up, down)


def _even(numbers: np.ndarray | int) -> np.ndarray:
    return np.asarray(numbers) & ~1


def _sortable(values: pa.Array) -> pa.LargeBinaryArray:
    """Return values as byte strings that sort as they do."""
    if not col.is_wide(values.type):
        return values.cast(pa.large_binary())
    # the high word first, most significant byte first; negative ones below
    rows = col.order_words(values) ^ np.int64(-(2**63))
    data = rows.astype(">i8").tobytes()
    offsets = np.arange(len(values) + 1, dtype=np.int64) * 16
    return pa.Array.from_buffers(
        pa.large_binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def _parts(texts: pa.LargeBinaryArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets and the bytes of strings."""
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int64, len(texts) + 1, texts.offset * 8)
    return starts, col.NO_BYTES if data is None else np.frombuffer(data, np.uint8)
