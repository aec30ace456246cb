"""LEVENSHTEIN, SOUNDEX, FORMAT_STRING and other functions by word or letter."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import INT, INTEGERS, SMALLINT, STRING, TINYINT, DataType
from penstock.engine.api.arrow_numpy import texts
from penstock.engine.expressions.datum import (
    Datum,
    Kernel,
    aligned,
    array_of,
    columnwise,
    nulls_of,
    on_first,
    values_of,
)
from penstock.engine.expressions.duckdb_fallback import duckdb_kernel
from penstock.engine.expressions.evaluation_errors import bad_argument, one_array
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, by_value, plain
from penstock.engine.expressions.text.compiled_texts import levenshtein, soundex_factory
from penstock.engine.expressions.text.like_and_regexp import of_any_group, usable_pattern
from penstock.engine.expressions.text.regex_parser import named_groups
from penstock.engine.expressions.text.regex_search import RegexSearch
from penstock.engine.expressions.text.strings import joined_texts
from penstock.engine.expressions.text.text_pieces import first_pieces

_TEXT, _INT = pa.string(), pa.int32()


# 0: vowels, which separate; 7: H and W, which do not; 1 to 6: groups of consonants
_SOUNDS = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "01230127022455012623017202", strict=True))


def _soundex(text: str) -> str:
    """Return the first letter and three digits of sounds. A text that does not begin with an ASCII letter is
    returned unchanged.
    """
    if not text or not ("A" <= text[0].upper() <= "Z" and text[0].isascii()):
        return text
    code, last = text[0].upper(), _SOUNDS[text[0].upper()]
    for letter in text[1:].upper():
        sound = _SOUNDS.get(letter, "0") if letter.isascii() else "0"
        # H and W do not separate two letters of one sound.
        if sound == "7":
            continue
        if sound not in ("0", last):
            code += sound
        last = sound
        if len(code) == 4:
            break
    return code.ljust(4, "0")


def _overlay(text: str, by: str, start: int, length: int = -1) -> str:
    """Replace a piece of a text. Positions count from 1; a negative length means the replacement's length."""
    length = length if length >= 0 else len(by)
    return _piece(text, 1, start - 1) + by + _piece(text, start + length, 1 << 31)


def _overlay_factory(bound: BoundCall) -> Kernel:
    by, start = bound.constant(1), bound.constant(2)
    length = bound.constant(3) if len(bound.kinds) == 4 else -1
    if not (isinstance(by, str) and isinstance(start, int) and isinstance(length, int)) or start < 1:
        return by_value(_overlay, _TEXT)(bound)
    end = start - 1 + (length if length >= 0 else len(by))
    return lambda texts, *_: joined_texts(
        pc.utf8_slice_codeunits(texts, 0, start - 1), pa.scalar(by), pc.utf8_slice_codeunits(texts, end, None)
    )


def _piece(text: str, start: int, length: int) -> str:
    # positions from 1, from the end below zero; 0 is the start
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    return text[max(begin, 0) : max(begin + length, 0)]


def _substring_index(text: str, delimiter: str, count: int) -> str:
    if not delimiter or not count:
        return ""
    return (
        delimiter.join(text.split(delimiter)[:count]) if count > 0 else _last_pieces(text, delimiter, -count)
    )


def _first_pieces(bound: BoundCall) -> Kernel:
    delimiter, count = bound.constant(1), bound.constant(2)
    if isinstance(delimiter, str) and delimiter and isinstance(count, int) and count > 0:
        return on_first(lambda texts: first_pieces(texts, delimiter, count))
    return by_value(_substring_index, _TEXT)(bound)


def _last_pieces(text: str, delimiter: str, count: int) -> str:
    at = len(text)
    for _ in range(count):
        # from the right; occurrences may overlap
        at = text.rfind(delimiter, 0, max(0, at + len(delimiter) - 1)) if at >= 0 else -1
        if at < 0:
            return text
    return text[at + len(delimiter) :]


def _find_in_set(text: str, listed: str) -> int:
    return 0 if "," in text or text not in (items := listed.split(",")) else items.index(text) + 1


def _find_in_set_factory(bound: BoundCall) -> Kernel:
    listed = bound.constant(1)
    if not isinstance(listed, str):
        return by_value(_find_in_set, _INT)(bound)
    # the first place of each item; no item has a comma
    places = dict(reversed([(item, i + 1) for i, item in enumerate(listed.split(","))]))
    items, numbers = texts(list(places)), [*places.values(), 0]

    def kernel(column: pa.Array) -> pa.Array:
        found = values_of(pc.fill_null(pc.index_in(column, value_set=items), len(items)))
        return array_of(np.array(numbers, np.int32)[found], nulls_of(column), _INT)

    return on_first(kernel)


# letters of one number: a larger width is a slip, and would take much memory
_WIDEST = 10_000
_WIDTHS: dict[DataType, int] = {TINYINT: 8, SMALLINT: 16, INT: 32}
# %[argument$][flags][width][.precision]letter
_SLOT = re.compile(r"%(?:(\d+)\$)?([-#+ 0,(]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])")


def _format_string(bound: BoundCall) -> Kernel:
    """Return the kernel of Java's format: %s %d %f %e %x %o %c %b with width, precision and flags. NULL
    prints as null.
    """
    template = bound.constant(0)
    if not isinstance(template, str):
        raise bad_argument("the format must be a constant text")
    if len(bound.kinds) == 1:
        return by_value(lambda text: _formatted(text, (), ()), _TEXT)(bound)
    if (parts := _plain_parts(template, bound.kinds[1:])) is not None:
        return lambda _, *data: _joined_parts(parts, data)
    # %x of a negative number prints the two's complement of its type's width.
    masks = tuple((1 << _WIDTHS.get(kind, 64)) - 1 for kind in bound.kinds[1:])

    def compute(text: str, *values: object) -> str:
        # values, then whether each is valid
        half = len(values) // 2
        arguments = tuple(v if known else None for v, known in zip(values[:half], values[half:], strict=True))
        return _formatted(text, arguments, masks)

    def kernel(form: Datum, *data: Datum) -> Datum:
        columns = aligned(*data)
        # by_value is NULL for a NULL argument, but here NULL prints as null: validity is passed beside.
        filled = [pc.fill_null(column, _blank(column.type)) for column in columns]
        return by_value(compute, _TEXT)(bound)(form, *filled, *[pc.is_valid(column) for column in columns])

    return kernel


def _plain_parts(template: str, kinds: tuple[DataType, ...]) -> list[str | int] | None:
    """Return the texts and the numbers of the arguments of a format that has only %s and %d, of texts and
    whole numbers; else ``None``.
    """
    parts: list[str | int] = []
    end = turn = 0
    for slot in _SLOT.finditer(template):
        if slot[0] not in ("%s", "%d") or turn >= len(kinds):
            return None
        whole = kinds[turn] in INTEGERS
        if not whole and (slot[0] == "%d" or kinds[turn] != STRING):
            return None
        parts.extend((template[end : slot.start()], turn))
        end, turn = slot.end(), turn + 1
    return [*parts, template[end:]] if turn else None


def _joined_parts(parts: list[str | int], data: tuple[Datum, ...]) -> Datum:
    columns = [pc.fill_null(pc.cast(datum, _TEXT), "null") for datum in data]
    joined = pc.binary_join_element_wise(
        *[pa.scalar(part) if isinstance(part, str) else columns[part] for part in parts], ""
    )
    return one_array(joined) if isinstance(joined, pa.Array) else joined


def _blank(kind: pa.DataType) -> pa.Scalar:
    return (
        pa.scalar("" if kind == _TEXT else False) if kind in (_TEXT, pa.bool_()) else pa.scalar(0).cast(kind)
    )


def _formatted(template: str, values: tuple[object, ...], masks: tuple[int, ...]) -> str:
    turn = 0

    def one(slot: re.Match[str]) -> str:
        nonlocal turn
        position, flags, width, precision, letter = slot.groups()
        if max(int(width or 0), int(precision or 0)) > _WIDEST:
            raise bad_argument(f"format_string: {slot[0]} is wider than {_WIDEST:,} letters")
        if letter in "%n":
            return "%" if letter == "%" else "\n"
        # %2$s names its argument, %s takes the next.
        index = int(position) - 1 if position else turn
        turn += not position
        if index >= len(values):
            raise bad_argument(f"the format has no argument for {slot[0]}")
        value = values[index]
        if letter in "xXo" and isinstance(value, int) and not isinstance(value, bool):
            value &= masks[index]
        return _aligned(_written(value, flags, precision, width, letter, slot[0]), flags, width)

    return _SLOT.sub(one, template)


def _aligned(text: str, flags: str, width: str | None) -> str:
    # Java counts UTF-16 units: an emoji has two
    blanks = " " * (int(width or 0) - len(text.encode("utf-16-le")) // 2)
    return text + blanks if "-" in flags else blanks + text


def _cut(text: str, precision: str | None) -> str:
    """Return the first ``precision`` UTF-16 units, the units in which Java counts."""
    return (
        text
        if precision is None
        else text.encode("utf-16-le")[: 2 * int(precision)].decode("utf-16-le", "ignore")
    )


def _written(
    value: object, flags: str, precision: str | None, width: str | None, letter: str, slot: str
) -> str:
    # a capital letter prints the same in capitals
    low = letter.lower()
    if low == "b":
        text = "false" if value is None else str(value).lower() if isinstance(value, bool) else "true"
    elif value is None:
        text = _cut("null", precision)
    elif low == "s":
        text = str(value).lower() if isinstance(value, bool) else str(value)
        text = _cut(text, precision)
    elif low == "c" and isinstance(value, int):
        text = chr(value)
    elif low in "dxo" and isinstance(value, int) and not isinstance(value, bool):
        text = _whole(value, flags, width, low)
    elif low in "fe" and isinstance(value, float | Decimal):
        text = _real(value, flags, precision, width, low)
    else:
        raise bad_argument(f"the format {slot} does not take {value!r}")
    return text.upper() if letter.isupper() else text


def _sign(flags: str) -> str:
    return "+" if "+" in flags else " " if " " in flags else "-"


def _zeros(flags: str, width: str | None) -> str:
    return f"0{width}" if "0" in flags and width else ""


def _whole(value: int, flags: str, width: str | None, low: str) -> str:
    if low != "d":
        return f"{value:{_zeros(flags, width)}{low}}"
    return f"{value:{_sign(flags)}{_zeros(flags, width)}{',' if ',' in flags else ''}d}"


def _real(value: float | Decimal, flags: str, precision: str | None, width: str | None, low: str) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    exact = Decimal(repr(value)) if isinstance(value, float) else value
    digits = int(precision) if precision else 6
    if low == "e":
        return f"{float(value):{_sign(flags)}{_zeros(flags, width)}.{digits}e}"
    step = Decimal(1).scaleb(-digits)
    exact = exact.quantize(step, "ROUND_HALF_UP") if exact.adjusted() + digits < 27 else exact
    return f"{exact:{_sign(flags)}{_zeros(flags, width)}{',' if ',' in flags else ''}.{digits}f}"


def _pattern(bound: BoundCall) -> str:
    pattern = bound.constant(1)
    if not isinstance(pattern, str):
        raise bad_argument("the regular expression must be a constant text")
    return usable_pattern(pattern)


def _regexp_count(bound: BoundCall) -> Kernel:
    pattern = _pattern(bound)
    search = RegexSearch.without_start(pattern)

    def kernel(s: pa.Array) -> pa.Array:
        if (matches := search.matches(s)) is not None:
            return array_of(matches.counts, nulls_of(s), _INT)
        return pc.count_substring_regex(s, pattern)

    return on_first(kernel)


def _regexp_substr(bound: BoundCall) -> Kernel:
    pattern = _pattern(bound)
    regex = f"(?P<whole>{named_groups(pattern).pattern})"
    search = RegexSearch(pattern, most=1)

    def kernel(s: pa.Array) -> pa.Array:
        if (matches := search.matches(s)) is not None:
            return matches.first_texts(absent_is_null=True)
        return pc.struct_field(pc.extract_regex(s, regex), "whole")

    return on_first(kernel)


def _regexp_instr(bound: BoundCall) -> Kernel:
    pattern = _pattern(bound)
    # the text before the match, of any characters; a . of the pattern matches no line end
    regex = f"^(?P<before>(?s:.*?))(?P<whole>{named_groups(pattern).pattern})"

    search = RegexSearch(pattern, most=1)

    def kernel(s: pa.Array, *_: pa.Array) -> pa.Array:
        if (matches := search.matches(s)) is not None:
            return array_of(matches.first_positions(), nulls_of(s), _INT)
        # Arrow returns the byte of a match: among ASCII it is the character, at three times the speed
        if pc.string_is_ascii(s).false_count == 0:
            return pc.add(pc.find_substring_regex(s, pattern).cast(_INT), pa.scalar(1, _INT))
        parts = pc.extract_regex(s, regex)
        position = pc.add(pc.utf8_length(pc.struct_field(parts, "before")), pa.scalar(1, _INT))
        return pc.if_else(pc.is_valid(s), pc.fill_null(position, 0), pa.scalar(None, _INT))

    return columnwise(kernel)


def _regexp_extract_all(bound: BoundCall) -> Kernel:
    """Return the kernel of a call. A group without part in a match is an empty text, as in
    ``regexp_extract``.
    """
    extraction = "regexp_extract_all({{0}}, {{1}}, {})"
    search = None
    # a constant pattern is compiled once, a column's for each row
    if isinstance(pattern := bound.constant(1), str):
        group = bound.constant(2) if len(bound.kinds) == 3 else 1
        # DuckDB refuses a group that the pattern has not
        if isinstance(group, int) and 0 <= group <= min(9, named_groups(pattern).count):
            search = RegexSearch(pattern, (group,) if group else ())
        quoted = "'" + usable_pattern(pattern).replace("'", "''") + "'"
        for _ in range(2):  # two formats fill in what is in braces
            quoted = quoted.replace("{", "{{").replace("}", "}}")
        extraction = f"regexp_extract_all({{{{0}}}}, {quoted}, {{}})"
    # the whole match is never absent
    if len(bound.kinds) < 3 or bound.constant(2) != 0:
        extraction = f"list_transform({extraction}, lambda found: coalesce(found, ''))"
    general = duckdb_kernel(of_any_group(extraction, bound), pa.list_(_TEXT))
    if search is None:
        return general

    def kernel(s: Datum, *others: Datum) -> Datum:
        (column,) = aligned(s)
        matches = search.matches(column)
        return general(column, *others) if matches is None else matches.all_texts()

    return kernel


TEXT_WORDS: dict[str, Factory] = {
    "levenshtein": plain(levenshtein),
    "soundex": soundex_factory(_soundex),
    "overlay": _overlay_factory,
    "substring_index": _first_pieces,
    "format_string": _format_string,
    "find_in_set": _find_in_set_factory,
    "regexp_count": _regexp_count,
    "regexp_substr": _regexp_substr,
    "regexp_instr": _regexp_instr,
    "regexp_extract_all": _regexp_extract_all,
}
