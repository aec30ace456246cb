"""String functions: trimming, slicing, joining, padding, searching."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import scalar_of
from penstock.engine.expressions.datum import (
    Datum,
    Kernel,
    aligned,
    array_of,
    columnwise,
    defined_values,
    lists_of,
    nulls_of_any,
    on_first,
    values_of,
)
from penstock.engine.expressions.duckdb_fallback import duckdb_kernel
from penstock.engine.expressions.evaluation_errors import MOST, bad_argument, check_sizes
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, compiled_later, plain
from penstock.engine.expressions.text.text_pieces import nth_pieces
from penstock.engine.kernels.arrow_views import array_of_strings, string_parts, validity, words

_TEXT = pa.string()
_INT = pa.int32()
# characters of a text
_LONGEST = 2**31 - 1


def _trimmed(side: str) -> Factory:
    """Return the factory of a trim function. It removes blanks, or the characters of the second argument.
    Non-constant characters go to DuckDB.
    """
    kernel = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}[side]

    def factory(bound: BoundCall) -> Kernel:
        characters = " " if len(bound.kinds) == 1 else bound.constant(1)
        if isinstance(characters, str) and characters:
            return lambda s, *_: kernel(s, characters=characters)
        return duckdb_kernel(f"{side}({{0}}, {{1}})", _TEXT)

    return factory


def _substr(bound: BoundCall) -> Kernel:
    if not bound.is_constant(1, 2):
        # substr(s, 0) begins at 1, substr(s, -3) at the third last character.
        begin = "CASE WHEN {1} > 0 THEN {1} WHEN {1} = 0 THEN 1 ELSE length({0}) + {1} + 1 END"
        if len(bound.kinds) == 2:
            return duckdb_kernel(f"substring({{0}}, greatest({begin}, 1))", _TEXT)
        end = f"least(({begin})::BIGINT + {{2}}::BIGINT, {_LONGEST})"
        return duckdb_kernel(
            f"CASE WHEN {{2}} <= 0 THEN '' ELSE substring({{0}}, greatest({begin}, 1), "
            f"greatest({end} - greatest({begin}, 1), 0)) END",
            _TEXT,
        )
    first_char, length = bound.constant(1), bound.constant(2)
    assert isinstance(first_char, int)
    # SQL counts from 1, Arrow from 0; both count from the end below zero
    start = first_char - 1 if first_char > 0 else first_char
    if length is None:
        return lambda s, *_: pc.utf8_slice_codeunits(s, start, None)
    assert isinstance(length, int)
    if length <= 0:
        return _emptied
    # substr('abc', -2, 5): the stop would count from the start again, so slice to the end.
    stop = start + length
    if start < 0 and stop >= 0:
        return lambda s, *_: pc.utf8_slice_codeunits(s, start, None)
    return lambda s, *_: pc.utf8_slice_codeunits(s, start, stop)


def _emptied(s: Datum, *_: Datum) -> Datum:
    return pc.utf8_slice_codeunits(s, 0, 0)


def _left(bound: BoundCall) -> Kernel:
    n = bound.constant(1)
    if not isinstance(n, int):
        return duckdb_kernel("left({0}, greatest({1}, 0))", _TEXT)
    return lambda s, *_: pc.utf8_slice_codeunits(s, 0, max(n, 0))


def _right(bound: BoundCall) -> Kernel:
    n = bound.constant(1)
    if not isinstance(n, int):
        return duckdb_kernel("right({0}, greatest({1}, 0))", _TEXT)
    return _emptied if n <= 0 else lambda s, *_: pc.utf8_slice_codeunits(s, -n, None)


def octets(texts: Datum) -> np.ndarray:
    """Return the number of bytes of each text, 0 for NULL."""
    return words(pc.fill_null(pc.binary_length(texts), 0).cast(pa.int64()))


def _repeat(s: pa.Array, n: pa.Array, name: str = "repeat") -> pa.Array:
    check_sizes(name, octets(s) * np.maximum(words(pc.fill_null(n, 0).cast(pa.int64())), 0), "bytes")
    return pc.binary_repeat(s, pc.max_element_wise(n, pa.scalar(0, n.type), skip_nulls=False))


def _space(n: pa.Array) -> pa.Array:
    return _repeat(pa.repeat(pa.scalar(" "), len(n)), n, "space")


def _padded(side: str) -> Factory:
    pad_arrow = pc.utf8_lpad if side == "lpad" else pc.utf8_rpad

    def factory(bound: BoundCall) -> Kernel:
        # padder() builds the kernel; the outer one checks the size first
        pad = padder(bound)

        def kernel(s: Datum, width: Datum, *fill: Datum) -> Datum:
            letters, widths, *fills = aligned(s, width, *fill)
            most = 1 if not fills or pc.all(pc.string_is_ascii(fills[0])).as_py() else 4  # bytes of a letter
            check_sizes(side, np.maximum(defined_values(widths).astype(np.int64), 0) * most, "bytes")
            return pad(letters, width, *fill)

        return kernel

    def padder(bound: BoundCall) -> Kernel:
        width, fill = bound.constant(1), " " if len(bound.kinds) == 2 else bound.constant(2)
        # Arrow pads with one character only
        if not isinstance(width, int) or not isinstance(fill, str) or len(fill) > 1:
            last = "' '" if len(bound.kinds) == 2 else "{2}"
            text = (
                f"CASE WHEN {last} = '' THEN left({{0}}, greatest({{1}}, 0)) ELSE {side}({{0}}, "
                f"greatest({{1}}, 0), {last}) END"
            )
            return duckdb_kernel(text, _TEXT)
        width = max(width, 0)
        if not fill:
            return lambda s, *_: pc.utf8_slice_codeunits(s, 0, width)
        # Padding does not shorten: lpad('abc', 2, ' ') is 'ab'.
        return lambda s, *_: pc.utf8_slice_codeunits(pad_arrow(s, width, fill), 0, width)

    return factory


def joined_texts(*data: Datum) -> Datum:
    """Return texts concatenated; NULL where one is NULL. Raise Fault RUN-2006 for too many bytes."""
    # The exact sizes are only computed when the input is large already.
    if sum(datum.nbytes for datum in data if isinstance(datum, pa.Array)) > MOST["bytes"]:
        check_sizes("concat", np.sum([octets(column) for column in aligned(*data)], axis=0), "bytes")
    return pc.binary_join_element_wise(*data, scalar_of("", _TEXT), null_handling="emit_null")


def _concat_ws(*data: pa.Array) -> pa.Array:
    """Join texts and skip NULLs; a NULL separator makes NULL. Arrow loses a row whose values are all NULL, so
    its first value becomes empty.
    """
    separator, *columns = data
    if not columns:
        return pc.if_else(pc.is_valid(separator), "", separator)
    nothing = functools.reduce(pc.and_, map(pc.is_null, columns))
    columns[0] = pc.if_else(nothing, "", columns[0])
    joined = pc.binary_join_element_wise(*columns, pc.fill_null(separator, ""), null_handling="skip")
    return (
        pc.if_else(pc.is_valid(separator), joined, pa.scalar(None, _TEXT)) if separator.null_count else joined
    )


def _replace(bound: BoundCall) -> Kernel:
    find, by = bound.constant(1), bound.constant(2) if len(bound.kinds) == 3 else ""
    # Nothing to find: replace('abc', '', 'x') is 'abc'.
    if find == "":
        return lambda s, *_: s
    if isinstance(find, str) and isinstance(by, str):

        def kernel(s: Datum, *_: Datum) -> Datum:
            (texts,) = aligned(s)
            if len(by) > len(find):
                check_replaced("replace", texts, lambda: pc.count_substring(texts, find), by)
            return pc.replace_substring(texts, find, by)

        return kernel
    last = "''" if len(bound.kinds) == 2 else "{2}"
    # bytes that replacing adds: occurrences times the length of the replacement
    growth = f"(strlen({{0}}) - strlen(replace({{0}}, {{1}}, ''))) // strlen({{1}}) * strlen({last})"
    too_large = (
        f"{growth} > {MOST['bytes']} THEN error('replace would return ' || {growth} || ' bytes, over the "
        f"limit of {MOST['bytes']}')"
    )
    return duckdb_kernel(
        f"CASE WHEN {{1}} = '' THEN {{0}} WHEN {too_large} ELSE replace({{0}}, {{1}}, {last}) END", _TEXT
    )


def check_replaced(function: str, texts: pa.Array, count: Callable[[], pa.Array], by: str) -> None:
    """Raise Fault RUN-2006 if replacing all matches would exceed the limit. Matches are only counted when the
    upper bound exceeds it.
    """
    own, added = octets(texts), len(by.encode())
    if int(((own + 1) * float(added)).sum()) > MOST["bytes"]:
        check_sizes(function, own + words(pc.fill_null(count(), 0).cast(pa.int64())) * added, "bytes")


def _instr(bound: BoundCall) -> Kernel:
    """Return the kernel of INSTR. Positions count characters. Arrow counts bytes, so only ASCII texts use
    it.
    """
    general = duckdb_kernel("instr({0}, {1})", _INT)
    part = bound.constant(1)
    if part == "":
        return lambda s, *_: pc.if_else(pc.is_valid(s), pa.scalar(1, _INT), pa.scalar(None, _INT))
    if not isinstance(part, str):
        return duckdb_kernel("CASE WHEN {1} = '' THEN 1 ELSE instr({0}, {1}) END", _INT)

    def kernel(s: Datum, searched: Datum) -> Datum:
        (column,) = aligned(s)
        # bytes are characters; else DuckDB counts characters
        if pc.all(pc.string_is_ascii(column), min_count=0).as_py():
            return pc.add(pc.find_substring(column, part), pa.scalar(1, _INT))
        return general(column, searched)

    return kernel


def _position(bound: BoundCall) -> Kernel:
    if len(bound.kinds) == 2:
        # POSITION(part IN s) is instr(s, part).
        swapped = BoundCall(bound.call, bound.constants[::-1], bound.context)
        kernel = _instr(swapped)
        return lambda part, s: kernel(s, part)
    position = "coalesce(nullif(instr(substring({1}, {2}), {0}), 0) + {2} - 1, 0)"
    inside = (
        f"CASE WHEN {{2}} < 1 THEN 0 WHEN {{0}} = '' THEN 1 WHEN {{2}} > length({{1}}) THEN 0 ELSE "
        f"{position} END"
    )
    return duckdb_kernel(
        f"CASE WHEN {{2}} IS NULL THEN 0 WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {inside} END",
        _INT,
        strict=False,
    )


def _split_part(bound: BoundCall) -> Kernel:
    delimiter = bound.constant(1)
    if delimiter == "":
        return columnwise(
            lambda s, _, n: _piece(pc.if_else(pc.is_valid(s), _whole(s), pa.scalar(None, pa.list_(_TEXT))), n)
        )
    nth = bound.constant(2)
    if isinstance(delimiter, str) and isinstance(nth, int) and nth > 0:
        return on_first(lambda s: nth_pieces(s, delimiter, nth - 1)[0])
    if isinstance(delimiter, str):
        return columnwise(lambda s, _, n: _piece(pc.split_pattern(s, delimiter), n))
    general = duckdb_kernel(
        "CASE WHEN {1} = '' THEN (CASE WHEN abs({2}) = 1 THEN {0} ELSE '' END) ELSE split_part({0}, "
        "{1}, {2}) END",
        _TEXT,
    )

    def kernel(s: pa.Array, by: pa.Array, n: pa.Array) -> pa.Array:
        _refuse_zero(n)
        return general(s, by, n)

    return columnwise(kernel)


def _whole(s: pa.Array) -> pa.Array:
    return lists_of(np.arange(len(s) + 1), s)


def _refuse_zero(n: pa.Array) -> None:
    if pc.any(pc.equal(n, pa.scalar(0, n.type)), min_count=0).as_py():
        raise bad_argument(
            "split_part: the index 0 does not exist", "pieces count from 1, from the end below zero"
        )


def _piece(lists: pa.Array, n: pa.Array) -> pa.Array:
    """Return the n-th value of each list; negative ``n`` counts from the end. An empty text when there is
    none.
    """
    _refuse_zero(n)
    offsets = np.frombuffer(lists.buffers()[1], np.int32)[
        lists.offset : lists.offset + len(lists) + 1
    ].astype(np.int64)
    # from the start of a row's pieces, or back from their end
    index = defined_values(n).astype(np.int64)
    element = np.where(index > 0, offsets[:-1] + index - 1, offsets[1:] + index)
    inside = (element >= offsets[:-1]) & (element < offsets[1:])
    pieces = pc.fill_null(lists.values.take(pa.array(np.where(inside, element, 0), mask=~inside)), "")
    missing = nulls_of_any(lists, n)
    return pieces if missing is None else pc.if_else(pa.array(missing), pa.scalar(None, _TEXT), pieces)


def _test(arrow: Kernel, duckdb_name: str) -> Factory:
    def factory(bound: BoundCall) -> Kernel:
        part = bound.constant(1)
        if isinstance(part, str):
            return lambda s, _: arrow(s, part)
        return duckdb_kernel(f"{duckdb_name}({{0}}, {{1}})", pa.bool_())

    return factory


def _initcap(s: pa.Array) -> pa.Array:
    # every word of the column in one call, joined again row by row
    words = pc.split_pattern(s, " ")
    capitals = pc.utf8_capitalize(words.values)
    lists = pa.ListArray.from_arrays(words.offsets, capitals)
    joined = pc.binary_join(lists, " ")
    return pc.if_else(pc.is_valid(s), joined, pa.scalar(None, _TEXT)) if s.null_count else joined


def _capitalized(s: pa.Array) -> pa.Array:
    from penstock.engine.kernels.functions import text_scans  # numba is loaded where it is needed

    offsets, data = string_parts(s)
    first, last = int(offsets[0]), int(offsets[-1])
    if (data[first:last] >= 0x80).any():
        return _initcap(s)
    out = np.empty(last - first, np.uint8)
    text_scans.capitalize(offsets, data, out)
    return array_of_strings(offsets.astype(np.int64) - first, out, validity(s), _TEXT)


def _first_codes(texts: pa.Array) -> pa.Array:
    """Return the code of each text's first character, 0 for an empty text."""
    offsets, data = string_parts(texts)
    begins, found = offsets[:-1], np.diff(offsets) > 0
    if not found.any():
        return array_of(np.zeros(len(texts), np.int32), nulls_of_any(texts), _INT)

    def bits(nth: int, mask: int) -> np.ndarray:
        return (data[np.minimum(begins + nth, data.size - 1)] & mask).astype(np.int32)

    codes = bits(0, 0xFF)
    if (found & (codes >= 0x80)).any():
        # UTF-8: the first byte says how many follow, each with six bits
        second = bits(0, 0x1F) << 6 | bits(1, 0x3F)
        third = bits(0, 0x0F) << 12 | bits(1, 0x3F) << 6 | bits(2, 0x3F)
        fourth = bits(0, 0x07) << 18 | bits(1, 0x3F) << 12 | bits(2, 0x3F) << 6 | bits(3, 0x3F)
        codes = np.select([codes < 0x80, codes < 0xE0, codes < 0xF0], [codes, second, third], fourth)
    return array_of(np.where(found, codes, 0), nulls_of_any(texts), _INT)


def _chr(bound: BoundCall) -> Kernel:
    # chr(n) takes n modulo 256; a negative n is an empty text, entry 256.
    latin = pa.array([*(chr(code) for code in range(256)), ""])

    def kernel(n: pa.Array) -> pa.Array:
        codes = values_of(n)
        return latin.take(array_of(np.where(codes < 0, 256, codes & 255), nulls_of_any(n), pa.int64()))

    return columnwise(kernel)


def _translate(bound: BoundCall) -> Kernel:
    """Return the kernel of a call. Constant letters of ASCII, none of which is removed, are a table of bytes:
    no byte of another character is one of theirs.
    """
    old, new = bound.constant(1), bound.constant(2)
    if not (isinstance(old, str) and isinstance(new, str)) or not (
        (old + new).isascii() and len(old) <= len(new)
    ):
        return duckdb_kernel("translate({0}, {1}, {2})", _TEXT)
    table = np.arange(256, dtype=np.uint8)
    # of a letter that is written twice the first counts
    for one, other in reversed(list(zip(old, new, strict=False))):
        table[ord(one)] = ord(other)

    def kernel(s: pa.Array) -> pa.Array:
        offsets, data = string_parts(s)
        first = int(offsets[0])
        replaced = table[data[first : int(offsets[-1])]]
        return array_of_strings(offsets.astype(np.int64) - first, replaced, validity(s), _TEXT)

    return on_first(kernel)


TEXT: dict[str, Factory] = {
    "upper": plain(pc.utf8_upper),
    "lower": plain(pc.utf8_lower),
    "initcap": lambda _bound: compiled_later(columnwise(_initcap), on_first(_capitalized)),
    "trim": _trimmed("trim"),
    "ltrim": _trimmed("ltrim"),
    "rtrim": _trimmed("rtrim"),
    "length": plain(pc.utf8_length),
    "octet_length": plain(pc.binary_length),
    "substr": _substr,
    "left": _left,
    "right": _right,
    "repeat": plain(columnwise(_repeat)),
    "space": plain(columnwise(_space)),
    "concat_ws": plain(columnwise(_concat_ws)),
    "replace": _replace,
    "translate": _translate,
    "lpad": _padded("lpad"),
    "rpad": _padded("rpad"),
    "instr": _instr,
    "position": _position,
    "split_part": _split_part,
    "starts_with": _test(pc.starts_with, "starts_with"),
    "ends_with": _test(pc.ends_with, "ends_with"),
    "contains": _test(pc.match_substring, "contains"),
    "ascii": plain(columnwise(_first_codes)),
    "chr": _chr,
}
