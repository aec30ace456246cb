"""Tables of states that search for a regular expression as RE2 does: leftmost, and first of its choices.

A state is a list of positions in the pattern, in the order in which a search by trial would prefer them. What
stands behind a match in the list is dropped: so the last match found from a start is the one of RE2. Each
position carries where its groups begin and end; a *move* says from which position of the state before it was
reached, and which of those are set on the way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.expressions.text.regex_parser import (
    LAST_CODE,
    Bound,
    CapturingGroup,
    Choice,
    Letters,
    Node,
    Repeated,
    Sequence,
    Unsupported,
)

_MOST_INSTRUCTIONS = 1_000
_MOST_CELLS = 6_000
"""Cells of the table, a state's for each class of bytes: building one takes microseconds."""
_MOST_POSITIONS = 30
"""Positions of one state: more are slower to follow than RE2 is."""
NOW, AT_END = 1, 2
"""Flags of a state: it is a match wherever it is reached, it is one at the end of the text."""
NO_SOURCE = -1
_MASK_BITS = 20
# the length of a character in UTF-8, by its greatest code
_LARGEST_OF_LENGTH = (0x7F, 0x7FF, 0xFFFF)
_ANY_LONG = ((0xC2, 0xDF, 1), (0xE0, 0xEF, 2), (0xF0, 0xF4, 3))


@dataclass(frozen=True)
class RegexTables:
    """What the loops of ``engine/kernels/functions/regex_search.py`` read.

    ``cells`` has a row for each state: its flags, then the first cell of the next state for each class of
    bytes. State 0 is the one without a way on. ``moves`` has for each cell where its move is in ``steps``:
    the number of positions, then the position before and the mask of what is set for each; 0 means no change.
    ``finals`` has for each cell how the match found there was reached: now, and at the end of the text.
    """

    classes: np.ndarray
    cells: np.ndarray
    moves: np.ndarray
    steps: np.ndarray
    finals: np.ndarray
    # which bytes may begin a match: at the start of the text (1), behind it (2)
    firsts: np.ndarray
    # the first cells of both starts, the index of their moves in steps, their finals
    starts: np.ndarray
    slots: int
    # of one state at most
    positions: int


# an instruction: ("bytes", mask, next), ("split", one, other), ("save", slot, next), ("start" | "end", next),
# ("match",)
_Instruction = tuple[str, int, int]


class _Program:
    def __init__(self, groups: tuple[int, ...]) -> None:
        self.code: list[_Instruction] = []
        self._slots = {group: 2 * i for i, group in enumerate(groups)}
        self._sequences: dict[tuple[int, int], int] = {}
        self.match = self._add("match", 0, 0)

    def _add(self, name: str, operand: int, following: int) -> int:
        if len(self.code) >= _MOST_INSTRUCTIONS:
            raise Unsupported
        self.code.append((name, operand, following))
        return len(self.code) - 1

    def add(self, node: Node, following: int) -> int:
        """Return the first instruction of a node that goes on at ``following``."""
        if isinstance(node, Letters):
            return self._letters(node, following)
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                following = self.add(part, following)
            return following
        if isinstance(node, Choice):
            return self._first_of([self.add(part, following) for part in node.parts])
        if isinstance(node, Bound):
            return self._add("end" if node.is_end else "start", 0, following)
        if isinstance(node, Repeated):
            return self._repeated(node, following)
        if (slot := self._slots.get(node.number)) is None:
            return self.add(node.part, following)
        return self._add("save", slot, self.add(node.part, self._add("save", slot + 1, following)))

    def _first_of(self, ways: list[int]) -> int:
        chosen = ways[-1]
        for way in reversed(ways[:-1]):
            chosen = self._add("split", way, chosen)
        return chosen

    def _split(self, greedy: bool, more: int, following: int) -> int:
        return self._add("split", more, following) if greedy else self._add("split", following, more)

    def _repeated(self, node: Repeated, following: int) -> int:
        if node.most is None:
            # the loop is known only when its part is there
            loop = self._add("split", 0, 0)
            part = self.add(node.part, loop)
            self.code[loop] = ("split", part, following) if node.greedy else ("split", following, part)
            at, copies = (part, node.least - 1) if node.least else (loop, 0)
        else:
            at, copies = following, node.least
            for _ in range(node.most - node.least):
                at = self._split(node.greedy, self.add(node.part, at), following)
        for _ in range(copies):
            at = self.add(node.part, at)
        return at

    def _letters(self, letters: Letters, following: int) -> int:
        mask = 0
        ways: list[int] = []
        for first, last in letters.ranges:
            if first <= 0x7F:
                mask |= _mask(first, min(last, 0x7F))
            if last > 0x7F:
                ways.extend(self._sequence(way, following) for way in _utf8(max(first, 0x80), last))
        if mask:
            ways.insert(0, self._bytes(mask, following))
        return self._first_of(ways)

    def _sequence(self, way: list[tuple[int, int]], following: int) -> int:
        for first, last in reversed(way):
            following = self._bytes(_mask(first, last), following)
        return following

    def _bytes(self, mask: int, following: int) -> int:
        # sequences with the same end share it
        key = mask, following
        if key not in self._sequences:
            self._sequences[key] = self._add("bytes", mask, following)
        return self._sequences[key]


def _mask(first: int, last: int) -> int:
    return (1 << (last + 1)) - (1 << first)


def _utf8(first: int, last: int) -> Iterator[list[tuple[int, int]]]:
    """Yield ranges of bytes, one after another, for characters from ``first`` to ``last``."""
    if first == 0x80 and last == LAST_CODE:
        # as RE2: bytes that are no UTF-8 may match, and there are few states
        yield from ([(low, high), *[(0x80, 0xBF)] * more] for low, high, more in _ANY_LONG)
        return
    for largest in _LARGEST_OF_LENGTH:
        if first <= largest < last:
            yield from _utf8(first, largest)
            yield from _utf8(largest + 1, last)
            return
    length = 1 + sum(last > largest for largest in _LARGEST_OF_LENGTH)
    for bits in (6 * i for i in range(1, length)):
        rest = (1 << bits) - 1
        if first & ~rest != last & ~rest:
            if first & rest:
                yield from _utf8(first, first | rest)
                yield from _utf8((first | rest) + 1, last)
                return
            if last & rest != rest:
                yield from _utf8(first, (last & ~rest) - 1)
                yield from _utf8(last & ~rest, last)
                return
    # no characters: half of a pair of UTF-16
    low, high = (chr(code).encode("utf-8", "surrogatepass") for code in (first, last))
    yield list(zip(low, high, strict=True))


@dataclass(frozen=True)
class _Reached:
    """Positions of a state with how each was reached, and how a match was, if one was."""

    positions: tuple[int, ...]
    ways: tuple[tuple[int, int], ...]
    match: tuple[int, int] | None


# positions; whether they are a match; whether they are one at the end of the text
_Key = tuple[tuple[int, ...], bool, bool]


class _Builder:
    def __init__(self, node: Node, groups: tuple[int, ...]) -> None:
        program = _Program(groups)
        self._first = program.add(node, program.match)
        self._code = program.code
        self._states: dict[_Key, int] = {((), False, False): 0}
        self._unread: list[_Key] = []
        self._rows: list[list[int]] = [[]]
        self._flags = [0]
        self._moves: list[list[int]] = [[]]
        self._finals: list[list[tuple[int, int]]] = [[]]
        # the first is the move that changes nothing
        self._steps: dict[tuple[tuple[int, int], ...], int] = {}
        self._step_words = [0]
        self._slots = 2 * len(groups)
        self.classes, self._bytes = self._classes_of_bytes()

    def _classes_of_bytes(self) -> tuple[np.ndarray, list[int]]:
        masks = {operand for name, operand, _ in self._code if name == "bytes"}
        numbers: dict[tuple[bool, ...], int] = {}
        classes, examples = np.zeros(256, np.int32), []
        for byte in range(256):
            accepted = tuple(bool(mask >> byte & 1) for mask in masks)
            if accepted not in numbers:
                numbers[accepted] = len(numbers)
                examples.append(byte)
            # column 0 has the flags
            classes[byte] = numbers[accepted] + 1
        return classes, examples

    def _reach(
        self, begins: Iterator[tuple[int, int]], *, at_start: bool = False, at_end: bool = False
    ) -> _Reached:
        """Follow all that reads no byte from instructions, each with its source, in their order."""
        seen: set[int] = set()
        positions: list[int] = []
        ways: list[tuple[int, int]] = []
        for begin, source in begins:
            stack = [(begin, 0)]
            while stack:
                at, mask = stack.pop()
                if at in seen:
                    continue
                seen.add(at)
                name, operand, following = self._code[at]
                if name == "match":
                    return _Reached(tuple(positions), tuple(ways), (source, mask))
                if name == "split":
                    stack.extend(((following, mask), (operand, mask)))
                elif name == "save":
                    stack.append((following, mask | 1 << operand))
                elif name == "start":
                    if at_start:
                        stack.append((following, mask))
                elif name == "end" and at_end:
                    stack.append((following, mask))
                else:
                    positions.append(at)
                    ways.append((source, mask))
        return _Reached(tuple(positions), tuple(ways), None)

    def _final_at_end(self, reached: _Reached, at_start: bool = False) -> tuple[int, int] | None:
        """Return how a match is reached if the text ends here."""
        ends = ((at, i) for i, at in enumerate(reached.positions) if self._code[at][0] == "end")
        found = self._reach(ends, at_start=at_start, at_end=True).match
        if found is None:
            return reached.match
        source, mask = reached.ways[found[0]]
        return source, mask | found[1]

    def _state(self, reached: _Reached, at_end: bool) -> int:
        key = reached.positions, reached.match is not None, at_end
        if key not in self._states:
            if len(reached.positions) > _MOST_POSITIONS or len(self._rows) * len(self._bytes) > _MOST_CELLS:
                raise Unsupported
            self._states[key] = len(self._rows)
            self._flags.append(NOW * key[1] + AT_END * at_end)
            for rows in (self._rows, self._moves, self._finals):
                rows.append([])
            self._unread.append(key)
        return self._states[key]

    def _move(self, reached: _Reached) -> int:
        """Return where the move to these positions is. The move that changes nothing is 0."""
        if not self._slots or all(way == (i, 0) for i, way in enumerate(reached.ways)):
            return 0
        if reached.ways not in self._steps:
            self._steps[reached.ways] = len(self._step_words)
            self._step_words.append(len(reached.ways))
            self._step_words.extend(word for way in reached.ways for word in way)
        return self._steps[reached.ways]

    def build(self) -> RegexTables:
        starts = []
        for at_start in (True, False):
            reached = self._reach(iter([(self._first, NO_SOURCE)]), at_start=at_start)
            at_end = self._final_at_end(reached, at_start)
            starts.append(
                (self._state(reached, at_end is not None), self._move(reached), reached.match, at_end)
            )
        while self._unread:
            self._read(self._unread.pop())
        return self._tables(starts)

    def _read(self, key: _Key) -> None:
        row, positions = self._states[key], key[0]
        for byte in self._bytes:
            ways = (
                (self._code[at][2], i)
                for i, at in enumerate(positions)
                if self._code[at][0] == "bytes" and self._code[at][1] >> byte & 1
            )
            reached = self._reach(ways)
            at_end = self._final_at_end(reached)
            self._rows[row].append(self._state(reached, at_end is not None))
            self._moves[row].append(self._move(reached))
            self._finals[row].append((_packed(reached.match), _packed(at_end)))

    def _tables(
        self, starts: list[tuple[int, int, tuple[int, int] | None, tuple[int, int] | None]]
    ) -> RegexTables:
        width, count = len(self._bytes) + 1, len(self._rows)
        cells, moves = np.zeros((count, width), np.int32), np.zeros((count, width), np.int32)
        finals = np.zeros((count, width, 2), np.int32)
        cells[:, 0] = self._flags
        for row in range(1, count):
            cells[row, 1:] = np.array(self._rows[row]) * width
            moves[row, 1:] = self._moves[row]
            finals[row, 1:] = self._finals[row]
        firsts = np.zeros(256, np.uint8)
        words: list[int] = []
        for place, (state, move, now, at_end) in enumerate(starts):
            begins = (cells[state][self.classes] != 0) | (cells[state, 0] != 0)
            firsts |= begins.astype(np.uint8) << place
            words.extend((state * width, move, _packed(now), _packed(at_end)))
        return RegexTables(
            self.classes,
            cells.reshape(-1),
            moves.reshape(-1),
            np.array(self._step_words, np.int32),
            finals.reshape(-1),
            firsts,
            np.array(words, np.int64),
            self._slots,
            1 + max(len(positions) for positions, _, _ in self._states),
        )


def _packed(way: tuple[int, int] | None) -> int:
    """Return a source and a mask as one number."""
    return 0 if way is None else (way[0] + 1) << _MASK_BITS | way[1]


def build_tables(node: Node, groups: tuple[int, ...]) -> RegexTables:
    """Return the tables of a pattern that find matches, and where these groups of them are: 0 is the whole
    match. Raise Unsupported for a pattern that takes too many states.
    """
    if len(groups) * 2 > _MASK_BITS:
        raise Unsupported
    return _Builder(CapturingGroup(0, node) if 0 in groups else node, groups).build()
