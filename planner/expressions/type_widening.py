"""Type widening: types that represent every value of another type unchanged."""

from __future__ import annotations

import re

from penstock.catalog.types import DataType, Decimal, is_integer

# decimal digits of the largest value
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_ORDER = tuple(_DIGITS)
_DECIMAL = re.compile(r"DECIMAL\((\d+), (\d+)\)")


def widens(old: DataType, new: DataType) -> bool:
    """Return whether every number of ``old`` is a number of ``new`` and compares alike. True for integers and
    decimals only, never for FLOAT.
    """
    if is_integer(old) and is_integer(new):
        # TINYINT, SMALLINT, INT, BIGINT: each has all values of those before it
        return _ORDER.index(str(old)) <= _ORDER.index(str(new))
    if not isinstance(new, Decimal):
        return False
    if isinstance(old, Decimal):
        # no digit is lost behind the point or before it
        return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
    return is_integer(old) and new.precision - new.scale >= _DIGITS[str(old)]


def keeps_layout(old: str, new: str) -> bool:
    """Return whether stored values of type ``old`` can be read as type ``new``: the same type, a wider
    integer or a decimal of higher precision. Types are written as in SQL.
    """
    if old == new:
        return True
    if old in _DIGITS and new in _DIGITS:
        return _ORDER.index(old) < _ORDER.index(new)
    # of one scale: stored decimals are scaled integers, whose meaning the scale is
    before, after = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    return (
        before is not None and after is not None and before[2] == after[2] and int(before[1]) < int(after[1])
    )


def crosses_words(old: str, new: str) -> bool:
    """Return whether a decimal of one machine word becomes one of two words; aggregates store these
    differently.
    """
    # 18 digits fit into an int64, more need 128 bits
    before, after = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    return before is not None and after is not None and int(before[1]) <= 18 < int(after[1])
