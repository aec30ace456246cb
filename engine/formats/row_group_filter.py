"""Which row groups of a parquet file can hold no matching row, by the least and greatest value they say
they hold.
"""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq

from penstock.catalog.types import DATE, STRING, DataType, Timestamp, is_integer, to_arrow
from penstock.engine.formats.file_task import FileTask
from penstock.planner.expressions.nodes import Call, Column, Expression, Literal, conjuncts

_FLIPPED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
}


class RowGroupFilter:
    """The conjuncts of a scan's predicate that compare one column with constants, ready to be held against
    statistics.

    Only types whose statistics order as our comparisons do are used: integers, dates, timestamps without
    zone, strings (not floats: NaN).
    """

    def __init__(self, task: FileTask, file: pq.ParquetFile, names: list[str]) -> None:
        self._metadata = file.metadata
        self._skipping = task.skipping
        leaves = {file.schema.column(index).path: index for index in range(len(file.schema))}
        self._bounds = []
        for part in conjuncts(task.predicate) if task.predicate is not None else ():
            for column, operator, values in _comparison(part):
                field, name = task.wanted[column], names[column]
                if (
                    name in leaves
                    and _comparable(field.type)
                    and file.schema_arrow.field(name).type == to_arrow(field.type)
                ):
                    self._bounds.append((leaves[name], operator, values))
        self._leaves = {
            field.name: leaves[name]
            for field, name in zip(task.wanted, names, strict=True)
            if name in leaves
            and _comparable(field.type)
            and file.schema_arrow.field(name).type == to_arrow(field.type)
        }

    def may_match(self, group: int) -> bool:
        """Return whether a row group can hold a row for which the predicate is TRUE."""
        return all(self._overlaps(group, *bound) for bound in self._bounds)

    def is_wanted(self, group: int) -> bool:
        """Return whether a row group can hold a row somebody wants, by what is known now; those of one
        that cannot are counted.
        """
        if self._skipping is None:
            return True
        rows = self._metadata.row_group(group)
        return self._skipping.wants(
            {name: ends for name, leaf in self._leaves.items() if (ends := _ends(rows, leaf))}, rows.num_rows
        )

    def _overlaps(self, group: int, leaf: int, operator: str, values: tuple[Any, ...]) -> bool:
        ends = _ends(self._metadata.row_group(group), leaf)
        if ends is None:
            return True
        least, greatest = ends
        if any(type(value) is not type(least) for value in values):
            return True
        match operator:
            case "equal":
                return any(least <= value <= greatest for value in values)
            case "less":
                return least < values[0]
            case "less_equal":
                return least <= values[0]
            case "greater":
                return greatest > values[0]
        return greatest >= values[0]


def _ends(group: pq.RowGroupMetaData, leaf: int) -> tuple[Any, Any] | None:
    """Return the least and the greatest value of a column of a row group, where it says them."""
    chunk = group.column(leaf)
    if not chunk.is_stats_set or not chunk.statistics.has_min_max:
        return None
    try:
        return chunk.statistics.min, chunk.statistics.max
    except UnicodeDecodeError:  # a bound cut inside a character
        return None


def _comparable(kind: DataType) -> bool:
    return is_integer(kind) or isinstance(kind, Timestamp) or kind in (DATE, STRING)


def _comparison(part: Expression) -> list[tuple[int, str, tuple[Any, ...]]]:
    """Return (column, operator, constants) when a conjunct compares one column with constants."""
    if not isinstance(part, Call) or not part.args:
        return []
    first, rest = part.args[0], part.args[1:]
    if part.function == "in" and isinstance(first, Column) and all(isinstance(arg, Literal) for arg in rest):
        return [
            (
                first.index,
                "equal",
                tuple(arg.value for arg in rest if isinstance(arg, Literal) and arg.value is not None),
            )
        ]
    if part.function not in _FLIPPED or len(part.args) != 2:
        return []
    left, right = part.args
    if isinstance(left, Column) and isinstance(right, Literal) and right.value is not None:
        return [(left.index, part.function, (right.value,))]
    if isinstance(right, Column) and isinstance(left, Literal) and left.value is not None:
        return [(right.index, _FLIPPED[part.function], (left.value,))]
    return []
