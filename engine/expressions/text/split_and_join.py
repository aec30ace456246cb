"""SPLIT, SPLIT_INDEX and ARRAY_JOIN: texts to arrays and back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api import arrow_numpy
from penstock.engine.expressions.datum import (
    Datum,
    Kernel,
    aligned,
    defined_values,
    nulls_of_any,
    on_first,
)
from penstock.engine.expressions.duckdb_fallback import duckdb_kernel
from penstock.engine.expressions.evaluation_errors import bad_argument, check_sizes
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, by_value
from penstock.engine.expressions.nested.lists import Lists, lists_of, picked
from penstock.engine.expressions.text.like_and_regexp import usable_pattern
from penstock.engine.expressions.text.regex_search import RegexSearch, matches_empty
from penstock.engine.expressions.text.strings import octets
from penstock.engine.expressions.text.text_pieces import nth_pieces
from penstock.engine.kernels.arrow_views import string_parts, words

_SPECIAL = frozenset("\\^$.|?*+()[]{}")
_LIST = pa.list_(pa.string())
_SPLIT = duckdb_kernel("string_split_regex({0}, {1})", _LIST)
_PIECE = duckdb_kernel("substring({0}, {1}, {2})", pa.string())


def splitter(pattern: str, limit: int = -1) -> Callable[[pa.Array], pa.Array]:
    """Return a function that splits texts at the matches of a regular expression. ``limit`` is the maximal
    number of pieces; 0 and below means unlimited.
    """
    # n pieces need n - 1 cuts
    cuts = limit - 1 if limit > 0 else None
    if not pattern:
        return lambda texts: _characters(texts, limit)
    if cuts == 0:
        # limit 1: the whole text as one piece
        return lambda texts: Lists(texts, np.ones(len(texts), np.int64)).column()
    # No special letter: a plain search needs no regular expression.
    if not _SPECIAL & set(pattern):
        search, general = RegexSearch.of_literal(pattern, cuts), pc.split_pattern
    elif matches_empty(usable_pattern(pattern)):
        # Arrow would find the same empty match for ever
        if cuts is not None:
            raise bad_argument(
                f"split with a limit cannot take {pattern!r}", "the pattern matches the empty text"
            )
        return lambda texts: _SPLIT(texts, pa.scalar(pattern))
    else:
        search, general = RegexSearch.without_start(pattern, cuts), pc.split_pattern_regex

    def split(texts: pa.Array) -> pa.Array:
        matches = search.matches(texts)
        return general(texts, pattern, max_splits=cuts) if matches is None else matches.texts_between()

    return split


def _characters(texts: pa.Array, limit: int) -> pa.Array:
    """Split by an empty pattern: one piece per character, and the last piece has the rest. An empty text is
    one piece.
    """
    lengths = words(pc.fill_null(pc.utf8_length(texts), 0))
    pieces = Lists(pa.nulls(0), np.maximum(lengths if limit <= 0 else np.minimum(lengths, limit), 1))
    # the number of each piece within its text, from 0
    nth = np.arange(int(pieces.starts[-1])) - pieces.starts[pieces.parents]
    is_last = nth == pieces.lengths[pieces.parents] - 1
    piece_lengths = np.where(is_last, np.maximum(lengths[pieces.parents] - nth, 1), 1)
    flat = texts.take(arrow_numpy.array_of(pieces.parents))
    return Lists(
        _PIECE(flat, arrow_numpy.array_of(nth + 1), arrow_numpy.array_of(piece_lengths)), pieces.lengths
    ).column()


def _split(bound: BoundCall) -> Kernel:
    pattern, limit = bound.constant(1), bound.constant(2) if len(bound.kinds) == 3 else -1
    if not isinstance(pattern, str) and len(bound.kinds) == 2:
        return duckdb_kernel(
            "CASE WHEN {1} = '' THEN string_split({0}, {1}) ELSE string_split_regex({0}, {1}) END", _LIST
        )
    if not isinstance(pattern, str) or not isinstance(limit, int):
        raise bad_argument("split with a limit takes a constant pattern and a constant limit")
    cut = splitter(pattern, limit)

    def kernel(text: Datum, *_: Datum) -> pa.Array:
        (column,) = aligned(text)
        if not column.null_count:
            return cut(column)
        # A NULL text is cut as an empty one, then its piece is dropped.
        lists = lists_of(cut(pc.fill_null(column, "")))
        missing = nulls_of_any(column)
        assert missing is not None
        complete = lists.filter(~missing[lists.parents])
        return Lists(complete.flat, complete.lengths, missing).column()

    return kernel


def _piece_at(text: str, delimiter: str, index: int) -> str | None:
    """Return the piece at an index from 0, or NULL when there is none. An empty text has no piece."""
    pieces = text.split(delimiter) if delimiter else [text]
    return pieces[index] if text and 0 <= index < len(pieces) else None


def _constant_piece(texts: pa.Array, delimiter: str, index: int) -> pa.Array:
    if index < 0:
        return pa.nulls(len(texts), pa.string())
    pieces, absent = nth_pieces(texts, delimiter, index)
    # An empty text has no piece; it is its only one otherwise.
    absent |= np.diff(string_parts(texts)[0]) == 0
    return (
        pc.if_else(arrow_numpy.array_of(absent), pa.scalar(None, pa.string()), pieces)
        if absent.any()
        else pieces
    )


def _split_index(bound: BoundCall) -> Kernel:
    delimiter, index = bound.constant(1), bound.constant(2)
    # A delimiter of each row's own: Arrow splits by one pattern, so the texts are split one by one.
    if not isinstance(delimiter, str) or not delimiter:
        return by_value(_piece_at, pa.string())(bound)
    if isinstance(index, int):
        return on_first(lambda texts: _constant_piece(texts, delimiter, index))

    def kernel(text: Datum, _: Datum, nth: Datum) -> pa.Array:
        texts, wanted = aligned(text, nth)
        # NULL is cut as an empty text, which has no piece either.
        filled = pc.fill_null(texts, "")
        pieces = lists_of(pc.split_pattern(filled, delimiter))
        at = defined_values(wanted).astype(np.int64)
        is_absent = (
            (at < 0) | (at >= pieces.lengths) | ~arrow_numpy.truths(pc.greater(pc.binary_length(filled), 0))
        )
        if (nulls := nulls_of_any(wanted)) is not None:
            is_absent |= nulls
        return picked(pieces.flat, pieces.starts[:-1] + at, is_absent)

    return kernel


def _array_join(bound: BoundCall) -> Kernel:
    shows_null = len(bound.kinds) == 3

    def kernel(*data: Datum) -> pa.Array:
        column, separator, *null = aligned(*data)
        lists = lists_of(column)
        # the third argument replaces NULL elements; without it they are left out
        if shows_null:
            filled = pc.if_else(
                lists.flat.is_valid(), lists.flat, null[0].take(arrow_numpy.array_of(lists.parents))
            )
            lists = Lists(filled, lists.lengths)
        else:
            lists = lists.filter(arrow_numpy.truths(lists.flat.is_valid()))
        missing = nulls_of_any(column, separator, *null)
        check_sizes("array_join", lists.lengths * octets(separator), "bytes")
        text = pc.binary_join(Lists(lists.flat, lists.lengths).column(), separator)
        return (
            text
            if missing is None
            else pc.if_else(arrow_numpy.array_of(missing), pa.scalar(None, pa.string()), text)
        )

    return kernel


TEXT_LISTS: dict[str, Factory] = {"split": _split, "split_index": _split_index, "array_join": _array_join}
