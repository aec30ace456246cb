"""Late materialization of Parquet: a row group in whose filtered columns no row passes is skipped before its
other columns are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of, texts

# Rows that are tested at a time: one row that passes ends the test of its row group.
ROWS_AT_ONCE = 16_384
# Row groups that may be tested in vain, beyond those that were skipped. A filter that keeps a row of each
# group is then tested no more; until then it decodes its columns twice.
_IN_VAIN = 4


class RowGroupProbe:
    """The conjuncts of a scan's predicate that compare a column with constants, for tests of values.

    Only integers, and texts for equality, are compared: statistics need an order of all values, these tests
    need one value at a time. ``columns``: those to read for the tests.
    """

    def __init__(self, schema: pa.Schema, comparisons: Sequence[tuple[str, str, tuple[Any, ...]]]) -> None:
        self._tests: list[tuple[str, str, pa.Array]] = []
        for name, operator, values in comparisons:
            kind = schema.field(name).type
            constants = _constants(kind, operator, values)
            if constants is not None:
                self._tests.append((name, operator, constants))
        self.columns = list(dict.fromkeys(name for name, _, _ in self._tests))
        self._left = _IN_VAIN

    @property
    def is_worth(self) -> bool:
        """Whether to test the next row group: there is a test, and it has skipped enough."""
        return bool(self._tests) and self._left > 0

    def learn(self, *, skipped: bool) -> None:
        """Learn what the test of a row group has led to."""
        self._left += 1 if skipped else -1

    def passes(self, batch: pa.RecordBatch) -> bool:
        """Return whether some row passes all tests."""
        mask: pa.Array | None = None
        for name, operator, constants in self._tests:
            found = _compared(batch.column(name), operator, constants)
            mask = found if mask is None else pc.and_kleene(mask, found)
            # a dictionary without the value, or no row: the other columns need no test
            if not pc.any(mask).as_py():
                return False
        return True


def _constants(kind: pa.DataType, operator: str, values: tuple[Any, ...]) -> pa.Array | None:
    """Return constants as values of a column's type; ``None`` where they are not compared."""
    if not (pa.types.is_integer(kind) or (operator == "equal" and kind == pa.string())):
        return None
    # nothing equals NULL
    values = tuple(value for value in values if value is not None)
    # not ``pa.array``, which imports pandas: half a second before the first row
    if not values:
        return None
    if kind == pa.string():
        return texts(list(values)) if all(type(value) is str for value in values) else None
    if not all(type(value) is int for value in values):
        return None
    try:
        return array_of(np.array(values, kind.to_pandas_dtype()))
    # a number too great for the type: the filter itself decides
    except OverflowError:
        return None


def _compared(column: pa.Array, operator: str, constants: pa.Array) -> pa.Array:
    # each value of a dictionary once; its rows only where one passes
    if isinstance(column, pa.DictionaryArray):
        found = _compared(column.dictionary, operator, constants)
        return found.take(column.indices) if pc.any(found).as_py() else pa.repeat(False, len(column))
    if operator == "equal" and len(constants) != 1:
        return pc.is_in(column, constants)
    return pc.call_function(operator, [column, constants[0]])
