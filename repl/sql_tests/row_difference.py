"""The difference of expected and actual rows, as lines for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from wcwidth import wcswidth

Row = tuple[Any, ...]
# a test has few rows; an actual result may have many
MOST_ROWS = 20
_WIDEST = 40


def difference(
    names: Sequence[str], expected: Sequence[Row], actual: Sequence[Row], *, ordered: bool
) -> list[str]:
    """Return lines that show what differs, none when the rows are equal. ``-`` is a row that is expected,
    ``+`` one that came; marks under a pair of them show the columns that changed. Without ``ordered`` rows
    are compared as a bag.
    """
    if ordered:
        both = zip_longest(expected, actual)
        pairs = [(one, other) for one, other in both if not (one and other and _equal(one, other))]
    else:
        pairs = _pairs(*_unmatched(expected, actual))
    if not pairs:
        return []
    missing = sum(right is None for _, right in pairs)
    extra = sum(left is None for left, _ in pairs)
    changed = len(pairs) - missing - extra
    counts = ((missing, "missing"), (extra, "extra"), (changed, "changed"))
    counted = ", ".join(f"{count} {word}" for count, word in counts if count)
    head = f"expected {_rows(len(expected))}, actual {_rows(len(actual))}: {counted}"
    return [head, *_table(names, pairs[:MOST_ROWS]), *_rest(len(pairs))]


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def _rest(count: int) -> list[str]:
    return [f"  .. and {count - MOST_ROWS} more differences"] if count > MOST_ROWS else []


def _unmatched(expected: Sequence[Row], actual: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows of each side that the other has not, as often as it has not."""
    left, right = [], list(actual)
    for row in expected:
        place = next((place for place, other in enumerate(right) if _equal(row, other)), None)
        if place is None:
            left.append(row)
        else:
            del right[place]
    return left, right


def _pairs(expected: list[Row], actual: list[Row]) -> list[tuple[Row | None, Row | None]]:
    """Return each expected row beside the actual row that is most like it; half of the columns must agree."""
    pairs: list[tuple[Row | None, Row | None]] = []
    rest = list(actual)
    for row in expected:
        likeness = [_alike(row, other) for other in rest]
        best = max(likeness, default=0)
        # rows that share less are no versions of one row
        found = rest.pop(likeness.index(best)) if best and best * 2 >= len(row) else None
        pairs.append((row, found))
    return [*pairs, *((None, row) for row in rest)]


def _alike(left: Row, right: Row) -> int:
    return sum(_same(one, other) for one, other in zip(left, right, strict=True))


def _equal(left: Row, right: Row) -> bool:
    return _alike(left, right) == len(left)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        # a sum of floats depends on the order of its rows in the last digits
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12) or (
            math.isnan(left) and math.isnan(right)
        )
    return bool(left == right)


def _table(names: Sequence[str], pairs: Sequence[tuple[Row | None, Row | None]]) -> list[str]:
    lines: list[tuple[str, list[str]]] = [(" ", list(names))]
    for expected, actual in pairs:
        lines += [(sign, [_cell(v) for v in row]) for sign, row in (("-", expected), ("+", actual)) if row]
        if expected and actual:
            marks = ["" if _same(*cells) else "^" for cells in zip(expected, actual, strict=True)]
            shown = zip(marks, lines[-1][1], strict=True)
            lines.append((" ", [mark * max(1, _width(cell)) for mark, cell in shown]))
    widths = [max(_width(cells[i]) for _, cells in lines) for i in range(len(names))]
    padded = [(sign, map(_padded, cells, widths)) for sign, cells in lines]
    return [f"  {sign} {'  '.join(cells)}".rstrip() for sign, cells in padded]


def _cell(value: Any) -> str:
    text = "NULL" if value is None else str(value)
    text = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 2]}.."


def _width(text: str) -> int:
    return max(0, wcswidth(text))


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
