"""SortedRuns: entries (slot, word, id) in order of all three, in runs that are merged as they grow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.engine.kernels.index.sorted_entries import entry_places

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class SortedRuns:
    """A set of entries. Adding n of them costs O(n log n) compares in all, whatever the batches; so does
    removing them.

    An entry that is removed leaves a gap in its run. Links lead over the gaps, and a merge closes them.
    """

    def __init__(self) -> None:
        self._runs: list[_Run] = []

    def __len__(self) -> int:
        return sum(run.live for run in self._runs)

    @property
    def nbytes(self) -> int:
        """The size of all runs."""
        return sum(run.nbytes for run in self._runs)

    def add(self, slots: np.ndarray, words: np.ndarray, ids: np.ndarray) -> None:
        """Add entries, none of which is there."""
        if not slots.size:
            return
        self._runs.append(_Run(slots, words, ids))
        # Each run is more than twice as large as the next one, so there are few.
        while len(self._runs) > 1 and self._runs[-2].slots.size < 2 * self._runs[-1].slots.size:
            last = self._runs.pop()
            self._runs[-1] = self._runs[-1].merged(last)

    def remove(self, slots: np.ndarray, words: np.ndarray, ids: np.ndarray) -> None:
        """Remove entries that are there."""
        for number, run in enumerate(self._runs):
            if not slots.size:
                break
            places = run.places(slots, words, ids)
            found = run.has(places, slots, words, ids)
            run.drop(places[found])
            slots, words, ids = slots[~found], words[~found], ids[~found]
            if run.live * 2 < run.slots.size:
                self._runs[number] = run.without_gaps()
        self._runs = [run for run in self._runs if run.live]

    def renumber(self, words: Callable[[np.ndarray], np.ndarray]) -> None:
        """Replace words by those that a function returns, in the same order."""
        for run in self._runs:
            run.words = words(run.words)

    @property
    def words(self) -> np.ndarray:
        """The words of all entries, and of gaps."""
        return np.concatenate([np.zeros(0, np.int64), *(run.words for run in self._runs)])

    def last_until(self, slots: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for each query the greatest word of its slot up to ``words``, and whether there is one."""
        found, best = np.zeros(slots.size, np.bool_), np.full(slots.size, _LEAST)
        top = np.full(slots.size, _GREATEST)
        for run in self._runs:
            # Behind all entries up to the word, then back over the gaps.
            places = run.before(run.places(slots, words, top))
            mine = (places >= 0) & (run.slots[np.maximum(places, 0)] == slots)
            best = np.where(mine, np.maximum(best, run.words[np.maximum(places, 0)]), best)
            found |= mine
        return best, found

    def first_after(self, slots: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for each query the least word of its slot above ``words``, and whether there is one."""
        found, best = np.zeros(slots.size, np.bool_), np.full(slots.size, _GREATEST)
        top = np.full(slots.size, _GREATEST)
        for run in self._runs:
            places = run.at_or_after(run.places(slots, words, top))
            inside = np.minimum(places, run.slots.size - 1)
            mine = (places < run.slots.size) & (run.slots[inside] == slots)
            best = np.where(mine, np.minimum(best, run.words[inside]), best)
            found |= mine
        return best, found

    def ids_between(
        self, slots: np.ndarray, low: np.ndarray, high: np.ndarray, last: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the entries (slot, word, id) of ranges, each once: those with ``low <= word < high``, or up
        to the end of the slot where ``last``.
        """
        parts: list[tuple[np.ndarray, ...]] = []
        least = np.full(slots.size, _LEAST)
        for run in self._runs:
            first = run.places(slots, low, least)
            behind = run.places(slots, np.where(last, _GREATEST, high), np.where(last, _GREATEST, least))
            places = _union(first, behind, run.slots.size)
            places = places[run.is_live(places)]
            parts.append((run.slots[places], run.words[places], run.ids[places]))
        if not parts:
            none = np.zeros(0, np.int64)
            return none, none, none
        found = tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))
        return found[0], found[1], found[2]

    def at(self, slots: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (position of the query, id) of the entries with exactly these words. Queries differ."""
        positions, ids = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        least, top = np.full(slots.size, _LEAST), np.full(slots.size, _GREATEST)
        for run in self._runs:
            first, behind = run.places(slots, words, least), run.places(slots, words, top)
            counts = np.maximum(behind - first, 0)
            of = np.repeat(np.arange(slots.size), counts)
            places = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(of.size)
            live = run.is_live(places)
            positions.append(of[live])
            ids.append(run.ids[places[live]])
        return np.concatenate(positions), np.concatenate(ids)


class _Run:
    """Entries in order. ``_back`` and ``_fore`` lead from a gap to the entries beside it; both have a place
    before the first entry and one behind the last.
    """

    def __init__(self, slots: np.ndarray, words: np.ndarray, ids: np.ndarray) -> None:
        order = np.lexsort((ids, words, slots))
        self.slots, self.words, self.ids = slots[order], words[order], ids[order]
        self.live = self.slots.size
        self._back: np.ndarray | None = None
        self._fore: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        links = 0 if self._back is None else 2 * self._back.nbytes
        return self.slots.nbytes + self.words.nbytes + self.ids.nbytes + links

    def places(self, slots: np.ndarray, words: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Return where each entry is, or would be inserted; behind the equal ones for the greatest id."""
        found = np.empty(slots.size, np.int64)
        entry_places(self.slots, self.words, self.ids, slots, words, ids, found)
        return found

    def has(self, places: np.ndarray, slots: np.ndarray, words: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Return whether these entries are at these places."""
        inside = np.minimum(places, self.slots.size - 1)
        equal = (self.slots[inside] == slots) & (self.words[inside] == words) & (self.ids[inside] == ids)
        return (places < self.slots.size) & equal & self.is_live(inside)

    def is_live(self, places: np.ndarray) -> np.ndarray:
        if self._back is None:
            return np.ones(places.size, np.bool_)
        return self._back[places + 1] == places + 1

    def drop(self, places: np.ndarray) -> None:
        """Make gaps of entries."""
        if not places.size:
            return
        if self._back is None or self._fore is None:
            self._back = np.arange(self.slots.size + 2)
            self._fore = np.arange(self.slots.size + 2)
        self._back[places + 1] = places
        self._fore[places + 1] = places + 2
        self.live -= places.size

    def before(self, places: np.ndarray) -> np.ndarray:
        """Return the last entry before each place, -1 without one."""
        return places - 1 if self._back is None else _followed(self._back, places) - 1

    def at_or_after(self, places: np.ndarray) -> np.ndarray:
        """Return the first entry from each place on, the number of places without one."""
        return places if self._fore is None else _followed(self._fore, places + 1) - 1

    def without_gaps(self) -> _Run:
        live = np.flatnonzero(self.is_live(np.arange(self.slots.size)))
        return _Run(self.slots[live], self.words[live], self.ids[live])

    def merged(self, other: _Run) -> _Run:
        runs = [run if run._back is None else run.without_gaps() for run in (self, other)]
        slots, words, ids = (
            np.concatenate([getattr(run, name) for run in runs]) for name in ("slots", "words", "ids")
        )
        return _Run(slots, words, ids)


def _followed(links: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Follow links to their end. Every place on the way is linked to the one after the next, so that the
    next search is shorter.
    """
    while True:
        after = links[links[places]]
        if (after == places).all():
            return places
        links[places] = after
        places = after


def _union(first: np.ndarray, behind: np.ndarray, size: int) -> np.ndarray:
    """Return the places of all ranges, each once, in order."""
    some = first < behind
    order = np.argsort(first[some], kind="stable")
    first, behind = first[some][order], behind[some][order]
    if not first.size:
        return first
    # A range begins a new one where all before it have ended.
    ends = np.maximum.accumulate(behind)
    begins = np.append(True, first[1:] > ends[:-1])
    starts = first[begins]
    stops = ends[np.append(np.flatnonzero(begins)[1:] - 1, first.size - 1)]
    counts = stops - starts
    return np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
