"""Widening: types that hold every value of another type as the same value."""

from __future__ import annotations

import re

from penstock.catalog.types import DataType, Decimal, is_integer

_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_ORDER = tuple(_DIGITS)
_DECIMAL = re.compile(r"DECIMAL\((\d+), (\d+)\)")


def widens(old: DataType, new: DataType) -> bool:
    """Return whether each number of an exact type is a number of the other one and compares alike:
    integers and decimals, never FLOAT.
    """
    if is_integer(old) and is_integer(new):
        return _ORDER.index(str(old)) <= _ORDER.index(str(new))
    if not isinstance(new, Decimal):
        return False
    if isinstance(old, Decimal):
        return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
    return is_integer(old) and new.precision - new.scale >= _DIGITS[str(old)]


def keeps_layout(old: str, new: str) -> bool:
    """Return whether a stored column of a type, as SQL writes it, goes on in another one: the same, a
    wider integer, a decimal of more digits.
    """
    if old == new:
        return True
    if old in _DIGITS and new in _DIGITS:
        return _ORDER.index(old) < _ORDER.index(new)
    before, after = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    return (
        before is not None and after is not None and before[2] == after[2] and int(before[1]) < int(after[1])
    )


def crosses_words(old: str, new: str) -> bool:
    """Return whether a decimal that fits one machine word goes on in one that takes two: aggregates of it
    are kept otherwise.
    """
    before, after = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    return before is not None and after is not None and int(before[1]) <= 18 < int(after[1])
