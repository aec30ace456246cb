"""Scan pruning at run time: what is learned of the wanted rows while files are read. Whole row groups are
skipped by it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.api.operator import JoinKeys
from penstock.engine.metrics.operator_metrics import OperatorMetrics

SKIPPED = "rows_skipped"


class Skipping:
    """The wanted values of columns, by column name: a list (ascending) or a range. A source need not emit
    rows with other values, but may.
    """

    def __init__(self, metrics: OperatorMetrics) -> None:
        self._metrics = metrics
        self._wanted: list[tuple[str, list[Any], bool]] = []

    def learn(self, join_keys: JoinKeys, names: Sequence[str]) -> None:
        """Learn the keys of a join, whose columns have these names here."""
        for column, name in zip(
            [] if join_keys.keys is None else join_keys.keys.columns, names, strict=join_keys.keys is not None
        ):
            # NULL keys match nothing
            values = column.drop_null().to_pylist() if is_ranged(column.type) else []
            # the loaded side is empty: the join wants no row
            if join_keys.exact and not len(column):
                self._wanted.append((name, [], True))
            elif values:
                self._wanted.append((name, sorted(values), join_keys.exact))

    def wants(self, ends: Mapping[str, tuple[Any, Any]], rows: int) -> bool:
        """Return whether some of so many rows may be wanted, by the least and greatest values of their
        columns. Skipped rows are counted.
        """
        wanted = all(self._overlaps(ends.get(name), values, exact) for name, values, exact in self._wanted)
        if not wanted:
            self._metrics.count(SKIPPED, rows)
        return wanted

    @staticmethod
    def _overlaps(ends: tuple[Any, Any] | None, values: list[Any], exact: bool) -> bool:
        # no value is wanted
        if not values:
            return False
        # no statistics, or statistics of another type: the rows may be wanted
        if ends is None or type(ends[0]) is not type(values[0]):
            return True
        least, greatest = ends
        if not exact:
            return bool(values[0] <= greatest and least <= values[-1])
        # the least wanted value that is not below the range; wanted if it is not above it either
        position = bisect_left(values, least)
        return position < len(values) and bool(values[position] <= greatest)


def is_ranged(kind: pa.DataType) -> bool:
    """Return whether values of a type are ordered as their statistics in files are."""
    types = pa.types
    return bool(
        types.is_integer(kind) or types.is_date(kind) or types.is_timestamp(kind) or types.is_string(kind)
    )
