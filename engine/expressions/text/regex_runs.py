"""Regular expressions that are runs of letters one after another: a loop over bytes finds them without trial.

``item/([0-9]+)`` and ``(&|^)id=([^&]*)`` are such: behind a run comes a letter that is not of it, so the
longest run is the right one. They are searched three times as fast as by a table of states.
"""

from __future__ import annotations

import numpy as np

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.expressions.text.regex_parser import (
    Bound,
    CapturingGroup,
    Choice,
    Letters,
    Node,
    Repeated,
    Sequence,
    Unsupported,
)

_MOST_RUNS = 60
"""Sets of letters take 256 bytes each: of so many they stay in the processor's nearest memory."""
_ASCII, _ANY = (1 << 128) - 1, (1 << 256) - 1
NO_LIMIT = -1


@dataclass(frozen=True)
class RegexRuns:
    """What ``find_runs`` in ``engine/kernels/functions/regex_search.py`` reads.

    ``bounds`` has for each run how many bytes it has at least and at most, ``sets`` which bytes. ``firsts``
    are the bytes that may begin a match: at the start of the text (1), behind it (2). ``slots`` has for the
    begin and the end of each group the run before which it is. ``of_ascii``: texts must be ASCII.
    """

    bounds: np.ndarray
    sets: np.ndarray
    firsts: np.ndarray
    slots: np.ndarray
    # matches begin at the start of the text; or there without the first letter; and end at its end
    from_start: bool
    start_is_letter: bool
    to_end: bool
    of_ascii: bool


class _Builder:
    def __init__(self, groups: tuple[int, ...]) -> None:
        self._groups = groups
        # a run: its bytes as a mask, the least and the most of them
        self._runs: list[tuple[int, int, int]] = []
        self._slots = [0] * (2 * len(groups))
        self._from_start = self._start_is_letter = self._to_end = self._of_ascii = False

    def add(self, node: Node) -> None:
        if isinstance(node, Sequence):
            for part in node.parts:
                self.add(part)
        elif isinstance(node, CapturingGroup):
            begin = len(self._runs)
            self.add(node.part)
            if node.number in self._groups:
                slot = 2 * self._groups.index(node.number)
                self._slots[slot : slot + 2] = begin, len(self._runs)
        elif isinstance(node, Bound):
            self._bound(node)
        elif isinstance(node, Choice):
            self._start_or_letter(node)
        elif isinstance(node, Letters):
            self._letters(node)
        else:
            self._repeated(node)

    def _bound(self, node: Bound) -> None:
        if node.is_end:
            self._to_end = True
        elif self._runs or self._to_end:
            raise Unsupported
        else:
            self._from_start = True

    def _start_or_letter(self, node: Choice) -> None:
        """Add ``(&|^)``: a letter, which the start of the text stands for."""
        parts = [_single(part) for part in node.parts]
        if len(parts) != 2 or self._runs or self._from_start:
            raise Unsupported
        letters, start = parts
        if not isinstance(letters, Letters) or start != Bound(is_end=False):
            raise Unsupported
        self._letters(letters)
        # a letter of several bytes is several runs
        if len(self._runs) != 1:
            raise Unsupported
        self._start_is_letter = True

    def _letters(self, node: Letters) -> None:
        first, last = node.ranges[0]
        if len(node.ranges) == 1 and first == last > 0x7F:
            # one character beyond ASCII: its bytes
            for byte in chr(first).encode("utf-8", "surrogatepass"):
                self._run(1 << byte, 1, 1)
        else:
            self._run(self._ascii(node), 1, 1)

    def _repeated(self, node: Repeated) -> None:
        letters = _single(node.part)
        if not node.greedy or not isinstance(letters, Letters):
            raise Unsupported
        self._run(self._ascii(letters), node.least, NO_LIMIT if node.most is None else node.most)

    def _ascii(self, letters: Letters) -> int:
        """Return the ASCII letters of a set."""
        mask = 0
        for first, last in letters.ranges:
            self._of_ascii |= last > 0x7F
            mask |= (1 << (last + 1)) - (1 << first) if last <= 0x7F else _ASCII & -(1 << first)
        return mask

    def _run(self, mask: int, least: int, most: int) -> None:
        if self._to_end or len(self._runs) == _MOST_RUNS:
            raise Unsupported
        self._runs.append((mask, least, most))

    def build(self, node: Node) -> RegexRuns:
        self.add(node)
        for i, (mask, least, most) in enumerate(self._runs):
            # as many letters as there are: fewer would never do
            if least != most and mask & self._firsts(i + 1):
                raise Unsupported
        at_start = self._firsts(0)
        behind = 0 if self._from_start else at_start
        if self._start_is_letter:
            if at_start & self._firsts(1):
                raise Unsupported
            at_start |= self._firsts(1)
            # ``(&|^)x*`` may be empty at the start
            if not any(least for _, least, _ in self._runs[1:]):
                at_start = _ANY
        if not any(least for _, least, _ in self._runs):
            at_start, behind = _ANY, 0 if self._from_start else _ANY
        return RegexRuns(
            np.array([bound for _, *bounds in self._runs for bound in bounds], np.int64),
            np.array([_bits(mask) for mask, _, _ in self._runs], np.uint8).reshape(-1),
            _bits(at_start) | _bits(behind) << 1,
            np.array(self._slots, np.int64),
            self._from_start,
            self._start_is_letter,
            self._to_end,
            self._of_ascii,
        )

    def _firsts(self, run: int) -> int:
        """Return the bytes that may follow where this run begins."""
        firsts = 0
        for mask, least, _ in self._runs[run:]:
            firsts |= mask
            if least:
                return firsts
        return firsts


def _single(node: Node) -> Node:
    """Return the only part of a sequence, of ``(?:x)`` say; any other node itself."""
    while isinstance(node, Sequence) and len(node.parts) == 1:
        node = node.parts[0]
    return node


def _bits(mask: int) -> np.ndarray:
    return np.array([mask >> byte & 1 for byte in range(256)], np.uint8)


def build_runs(node: Node, groups: tuple[int, ...]) -> RegexRuns:
    """Return the runs of a pattern that find matches and these groups of them: 0 is the whole match. Raise
    Unsupported for a pattern that is more than runs.
    """
    return _Builder(groups).build(CapturingGroup(0, node) if 0 in groups else node)
