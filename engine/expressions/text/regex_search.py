"""Matches of a constant regular expression in a column, found by compiled loops where its states are few."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import texts
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.expressions.evaluation_errors import over_capacity
from penstock.engine.expressions.nested.lists import Lists
from penstock.engine.expressions.text.regex_automaton import RegexTables, build_tables
from penstock.engine.expressions.text.regex_parser import (
    Letters,
    Node,
    Sequence,
    Unsupported,
    has_start,
    is_nullable,
    named_groups,
    parse_regex,
)
from penstock.engine.expressions.text.regex_runs import RegexRuns, build_runs
from penstock.engine.expressions.text.text_pieces import copied_pieces
from penstock.engine.kernels.arrow_views import array_of_strings, string_parts, validity

FIRST_ROWS = 2_000
"""Rows of a call that RE2 searches, before its tables are built and the loops are loaded."""
_MOST_FAILURES = 4
"""Batches with a text that would be read too often, after which RE2 searches all."""
_ALL = 1 << 40
_TEXT = pa.string()


@dataclass(frozen=True)
class TextMatches:
    """The matches of a regular expression in a column's texts, in their order.

    ``counts`` has the number of each text's matches, ``spans`` where each begins and ends in ``data``,
    ``groups`` the same of its groups, -1 for one without part.
    """

    column: pa.Array
    counts: np.ndarray
    spans: np.ndarray
    groups: np.ndarray

    @property
    def data(self) -> np.ndarray:
        """The bytes of all texts."""
        return string_parts(self.column)[1]

    @property
    def parts(self) -> np.ndarray:
        """Where each match's group begins and ends, or the whole match without groups."""
        return self.groups if self.groups.shape[1] else self.spans

    def first_positions(self) -> np.ndarray:
        """Return at which character each text's first match begins, from 1; 0 without one."""
        offsets, data = string_parts(self.column)
        found = self.counts > 0
        bounds = np.stack([offsets[:-1][found], self.spans[:, 0]])
        octets = data[int(offsets[0]) : int(offsets[-1])]
        if octets.size and (octets >= 0x80).any():
            # a character is counted at the first of its bytes
            characters = np.zeros(octets.size + 1, np.int64)
            np.cumsum((octets & 0xC0) != 0x80, out=characters[1:])
            bounds = characters[bounds - int(offsets[0])]
        positions = np.zeros(found.size, np.int64)
        positions[found] = bounds[1] - bounds[0] + 1
        return positions

    def first_texts(self, *, absent_is_null: bool) -> pa.Array:
        """Return each text's match or its group. NULL, or empty, where there is none."""
        starts, lengths = np.zeros(self.counts.size, np.int64), np.zeros(self.counts.size, np.int64)
        found = self.counts > 0
        starts[found] = self.parts[:, 0]
        lengths[found] = self.parts[:, 1] - self.parts[:, 0]
        valid = validity(self.column)
        if absent_is_null and not found.all():
            valid = found.view(np.uint8)
        return copied_pieces(np.maximum(starts, 0), lengths, self.data, valid)

    def all_texts(self) -> pa.Array:
        """Return each text's matches or their groups as lists; NULL for NULL."""
        starts = self.parts[:, 0].astype(np.int64)
        lengths = self.parts[:, 1] - starts
        flat = copied_pieces(np.maximum(starts, 0), lengths, self.data, np.zeros(0, np.uint8))
        return Lists(flat, self.counts, self._missing()).column()

    def texts_between(self) -> pa.Array:
        """Return the pieces of each text between its matches as lists; NULL for NULL."""
        from penstock.engine.kernels.functions import regex_search

        offsets, data = string_parts(self.column)
        missing = self._missing()
        # NULL has no piece
        counts = self.counts + 1 if missing is None else np.where(missing, 0, self.counts + 1)
        ends = np.empty(int(counts.sum()) + 1, np.int64)
        out = np.empty(int(offsets[-1]) - int(offsets[0]), np.uint8)
        used = regex_search.copy_between(offsets, data, counts, self.spans.reshape(-1), ends, out)
        flat = array_of_strings(ends, out[:used], np.zeros(0, np.uint8), _TEXT)
        return Lists(flat, counts, missing).column()

    def _missing(self) -> np.ndarray | None:
        return validity(self.column) == 0 if self.column.null_count else None

    def replaced(self, replacement: Replacement) -> pa.Array:
        """Return the texts with all matches replaced."""
        from penstock.engine.kernels.functions import regex_search

        offsets, data = string_parts(self.column)
        size = int(offsets[-1]) - int(offsets[0]) + len(self.spans) * replacement.literal.size
        size -= int((self.spans[:, 1] - self.spans[:, 0]).sum(dtype=np.int64))
        for slot in replacement.slots:
            size += int((self.groups[:, slot + 1] - self.groups[:, slot]).sum(dtype=np.int64))
        if size > LIMITS.array_bytes:
            raise over_capacity()
        out, ends = np.empty(size, np.uint8), np.empty(len(self.column) + 1, np.int64)
        regex_search.replace_matches(
            offsets,
            data,
            self.counts,
            self.spans.reshape(-1),
            self.groups.reshape(-1),
            self.groups.shape[1],
            replacement.parts,
            replacement.literal,
            ends,
            out,
        )
        return array_of_strings(ends, out, validity(self.column), _TEXT)


@dataclass(frozen=True)
class Replacement:
    """What matches are replaced by, as ``replace_matches`` reads it. ``groups``: the groups in it, ``slots``
    where they are among those of a match, each as often as it is there.
    """

    parts: np.ndarray
    literal: np.ndarray
    groups: tuple[int, ...]
    slots: tuple[int, ...]

    @classmethod
    def of(cls, parts: list[tuple[int, int, int]], literal: bytes) -> Replacement:
        """Return the replacement of these parts: the number of a group, or -1 and the bounds of a literal."""
        groups = tuple(sorted({group for group, _, _ in parts if group >= 0}))
        slots = [-1 if group < 0 else 2 * groups.index(group) for group, _, _ in parts]
        words = [(slot, *bounds) for slot, (_, *bounds) in zip(slots, parts, strict=True)]
        return cls(
            np.array(words, np.int32).reshape(-1),
            np.frombuffer(literal, np.uint8),
            groups,
            tuple(slot for slot in slots if slot >= 0),
        )


class RegexSearch:
    """The matches of a pattern that RE2 accepts. One thread calls it."""

    def __init__(self, pattern: str, groups: tuple[int, ...] = (), *, most: int = _ALL) -> None:
        self._pattern, self._groups, self._most = pattern, groups, most
        self._is_literal = self._is_cut = False
        self._rows = self._failures = 0

    @classmethod
    def of_literal(cls, text: str, most: int | None = None) -> RegexSearch:
        """Return the search for a text that is no pattern."""
        search = cls(text, most=_ALL if most is None else most)
        search._is_literal = True
        return search

    @classmethod
    def without_start(cls, pattern: str, most: int | None = None) -> RegexSearch:
        """Return a search that RE2 does where the pattern asks for the beginning of the text, or matches the
        empty one: Arrow lets a text begin anew behind each match.
        """
        search = cls(pattern, most=_ALL if most is None else most)
        search._is_cut = True
        return search

    @functools.cached_property
    def _node(self) -> Node | None:
        """The pattern, ``None`` for one that is left to RE2."""
        try:
            node = _literal(self._pattern) if self._is_literal else parse_regex(self._pattern)
        except Unsupported:
            return None
        # where an empty match is followed by another, each caller of RE2 has a rule of its own
        if is_nullable(node) and (self._most > 1 or self._is_cut):
            return None
        return None if self._is_cut and has_start(node) else node

    @functools.cached_property
    def _runs(self) -> RegexRuns | None:
        try:
            return None if self._node is None else build_runs(self._node, self._groups)
        except Unsupported:
            return None

    @functools.cached_property
    def _tables(self) -> RegexTables | None:
        try:
            return None if self._node is None else build_tables(self._node, self._groups)
        except Unsupported:
            return None

    def matches(self, column: pa.Array) -> TextMatches | None:
        """Return the matches in a column, ``None`` where RE2 is to find them."""
        self._rows += len(column)
        if self._rows < FIRST_ROWS or self._failures >= _MOST_FAILURES or column.type != _TEXT:
            return None
        runs = self._runs
        is_usable = runs is not None and (not runs.of_ascii or _is_ascii(column))
        form: RegexRuns | RegexTables | None = runs if is_usable else self._tables
        if form is None:
            return None
        found = _search(form, column, self._most)
        if found is None:
            self._failures += 1
            return None
        return TextMatches(column, *found)


def matches_empty(pattern: str) -> bool:
    """Return whether a pattern that RE2 accepts may match an empty text, or between two characters."""
    try:
        return is_nullable(parse_regex(pattern))
    except Unsupported:
        found = pc.extract_regex(
            texts(["", "a", " ", "1-", "é", "\n"]), f"(?P<whole>{named_groups(pattern).pattern})"
        )
        return bool(pc.any(pc.equal(pc.struct_field(found, "whole").filter(found.is_valid()), "")).as_py())


def _literal(text: str) -> Node:
    return Sequence(tuple(Letters(((ord(letter), ord(letter)),)) for letter in text))


def _is_ascii(column: pa.Array) -> bool:
    offsets, data = string_parts(column)
    return not (data[int(offsets[0]) : int(offsets[-1])] >= 0x80).any()


def _search(
    form: RegexRuns | RegexTables, column: pa.Array, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return counts, spans and groups; ``None`` where a text would be read too often."""
    offsets, data = string_parts(column)
    counts = np.zeros(len(column) + 1, np.int64)
    room = 2 * (len(column) if most == 1 else 4 * len(column) + 16)
    parts = offsets, data, validity(column)
    if isinstance(form, RegexRuns):
        spans, groups = _search_runs(form, parts, most, counts, room)
    else:
        spans, groups = _search_tables(form, parts, most, counts, room)
    if (counts < 0).any():
        return None
    return counts[:-1], spans.reshape(-1, 2), groups


def _search_runs(
    runs: RegexRuns, texts: tuple[np.ndarray, ...], most: int, counts: np.ndarray, room: int
) -> tuple[np.ndarray, np.ndarray]:
    from penstock.engine.kernels.functions import regex_search  # numba is loaded where it is needed

    width, row = runs.slots.size, 0
    spans, groups = np.empty(room, np.int32), np.empty(room // 2 * width, np.int32)
    places = np.empty(runs.bounds.size // 2 + 1, np.int64)
    while row < counts.size - 1:
        row = regex_search.find_runs(
            *(*texts, runs.bounds, runs.sets, runs.firsts, runs.slots),
            *(runs.from_start, runs.start_is_letter, runs.to_end, most, row),
            *(places, counts, spans, groups),
        )
        if row < counts.size - 1:
            spans, groups = (np.concatenate([part, np.empty_like(part)]) for part in (spans, groups))
    found = int(counts[-1])
    return spans[: 2 * found], groups[: width * found].reshape(found, width)


def _search_tables(
    tables: RegexTables, texts: tuple[np.ndarray, ...], most: int, counts: np.ndarray, room: int
) -> tuple[np.ndarray, np.ndarray]:
    from penstock.engine.kernels.functions import regex_search  # numba is loaded where it is needed

    offsets, data, _ = texts
    spans, row = np.empty(room, np.int32), 0
    while row < counts.size - 1:
        row = regex_search.find_matches(
            *(*texts, tables.classes, tables.cells, tables.firsts, tables.starts),
            *(most, row, counts, spans),
        )
        if row < counts.size - 1:
            spans = np.concatenate([spans, np.empty_like(spans)])
    spans = spans[: 2 * int(counts[-1])]
    groups = np.empty(tables.slots * int(counts[-1]), np.int32)
    if groups.size and not (counts < 0).any():
        scratch = np.empty(2 * tables.slots * tables.positions, np.int32)
        regex_search.locate_groups(
            *(offsets, data, tables.classes, tables.cells, tables.moves, tables.steps, tables.finals),
            *(tables.starts, tables.slots, counts, spans, scratch, groups),
        )
    return spans, groups.reshape(int(counts[-1]), tables.slots)
