"""The one text of a JSON value, which is how a VARIANT is stored: no blanks, fields sorted by name, numbers
without zeros at their end, characters unescaped where JSON allows it.

A compiled loop writes it. Texts with numbers that have an exponent, and unsorted objects of more than 64
fields, are written by Python, once for each distinct text.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of, truths
from penstock.engine.expressions.evaluation_errors import one_array
from penstock.engine.kernels import arrow_views

_ESCAPES = {code: f"\\u{code:04X}" for code in range(32)} | {
    8: "\\b",
    9: "\\t",
    10: "\\n",
    12: "\\f",
    13: "\\r",
    34: '\\"',
    92: "\\\\",
}
_DEEPEST = 60
_DECIMAL_DIGITS = 38
# states of engine.kernels.functions.variants, which is imported where numba is needed
_WRITTEN, _LEFT, _REPEATED = range(3)


class NotCanonical(ValueError):
    """A text that is no JSON, or has a name twice in one object."""


class _Number(str):
    """A number as it is written."""


def canonical_texts(texts: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Return the canonical text of each JSON text, and the mask of those that have none; they become NULL."""
    from penstock.engine.kernels.functions import variants

    offsets, data = arrow_views.string_parts(texts)
    longest = int(np.diff(offsets).max(initial=0))
    states, ends = np.empty(len(texts), np.uint8), np.empty(len(texts) + 1, np.int64)
    out = np.empty(int(offsets[-1]) - int(offsets[0]), np.uint8)
    fields, copy = np.empty(3 * (longest // 4 + 2), np.int64), np.empty(longest + 1, np.uint8)
    used = variants.write_canonical(offsets, data, states, ends, out, fields, copy)
    known = truths(pc.is_valid(texts))
    result = arrow_views.array_of_strings(
        ends, out[:used], (known & (states == _WRITTEN)).view(np.uint8), pa.string()
    )
    left = known & (states == _LEFT)
    if left.any():
        mask = array_of(left)
        result = pc.replace_with_mask(result, mask, _by_text(texts.filter(mask)))
    return result, known & truths(pc.is_null(result))


def _by_text(texts: pa.Array) -> pa.Array:
    encoded = pc.dictionary_encode(texts)
    written = [_text_or_none(text) for text in encoded.dictionary.to_pylist()]
    return one_array(pa.array(written, pa.string())).take(encoded.indices)


def _text_or_none(text: str) -> str | None:
    try:
        return canonical_text(text)
    except NotCanonical:
        return None


def canonical_text(text: str) -> str:
    """Return the canonical text of a JSON text. Raise ``NotCanonical`` for one that has none."""
    try:
        value = json.loads(
            text,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_refuse_constant,
            object_pairs_hook=_fields,
        )
        written = _written(value, 0)
        # half of a surrogate pair is no character
        written.encode()
    except NotCanonical:
        raise
    except (ValueError, RecursionError):
        raise NotCanonical(f"{_shortened(text)!r} is no JSON") from None
    return written


def why_none(text: str) -> str:
    """Return why a text has no canonical one."""
    try:
        canonical_text(text)
    except NotCanonical as error:
        return str(error)
    return "no JSON"


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + ".."


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotCanonical(f'a JSON object has the name "{_shortened(twice)}" twice')
    return fields


def _written(value: Any, depth: int) -> str:
    if depth >= _DEEPEST and isinstance(value, list | dict):
        raise NotCanonical(f"the JSON has more than {_DEEPEST} levels")
    if isinstance(value, _Number):
        return _number(value)
    if isinstance(value, str):
        return f'"{escaped(value)}"'
    if isinstance(value, list):
        return "[" + ",".join(_written(part, depth + 1) for part in value) + "]"
    if isinstance(value, dict):
        # code points sort as their bytes in UTF-8 do
        names = sorted((escaped(name), name) for name in value)
        parts = [f'"{written}":{_written(value[name], depth + 1)}' for written, name in names]
        return "{" + ",".join(parts) + "}"
    return "null" if value is None else "true" if value else "false"


def escaped(text: str) -> str:
    """Return a text as JSON writes it between quotes."""
    return text.translate(_ESCAPES)


def _number(written: str) -> str:
    digits = written.lstrip("-").replace(".", "")
    if "e" in written or "E" in written or len(digits) > _DECIMAL_DIGITS:
        return double_text(float(written))
    number = f"{Decimal(written):f}"
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return "0" if number == "-0" else number


def double_text(value: float) -> str:
    """Return a DOUBLE in JSON: with an exponent as Java prints it, else as a decimal. Infinity is none."""
    if value in (float("inf"), float("-inf")):
        raise NotCanonical("a number in JSON is too great for a DOUBLE")
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e7:
        return repr(value).removesuffix(".0")
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    power = len(digits) + int(exponent) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"
