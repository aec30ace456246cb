"""Kernel factories: a factory builds the kernel of one call from its constants and the evaluation context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import DataType
from penstock.engine.api.arrow_numpy import array_of, truths
from penstock.engine.api.clock import Clock
from penstock.engine.expressions.datum import Datum, Kernel, aligned
from penstock.engine.expressions.evaluation_errors import one_array
from penstock.planner.expressions.nodes import Call


@dataclass(frozen=True)
class EvaluationContext:
    """The inputs of expressions besides columns: the session time zone, and the clock for
    ``current_timestamp`` and its kin.
    """

    zone: str = "UTC"
    clock: Clock | None = None


@dataclass(frozen=True)
class BoundCall:
    """A call at compile time. ``constants`` has a scalar for each constant argument, else ``None``."""

    call: Call
    constants: tuple[pa.Scalar | None, ...]
    context: EvaluationContext

    @property
    def kinds(self) -> tuple[DataType, ...]:
        """The types of the arguments."""
        return tuple(arg.type for arg in self.call.args)

    def constant(self, position: int) -> object:
        """Return the value of a constant argument. ``None`` when it is NULL, absent or not constant."""
        scalar = self.constants[position] if position < len(self.constants) else None
        return None if scalar is None else scalar.as_py()

    def is_constant(self, *positions: int) -> bool:
        """Return whether these arguments (absent ones count) are constants other than NULL."""
        scalars = [self.constants[p] for p in positions if p < len(self.constants)]
        return all(scalar is not None and scalar.is_valid for scalar in scalars)


Factory = Callable[[BoundCall], Kernel]


def plain(kernel: Kernel) -> Factory:
    """Return the factory of a kernel that does not depend on the call."""
    return lambda bound: kernel


FIRST_ROWS = 2_000
"""Rows of a call that its general kernel computes, before machine code is loaded, or even compiled."""
_ROWS_OF_A_BATCH = 100
"""A batch counts as so many rows at least. DuckDB computes some: a millisecond a batch, also of one row."""


def compiled_later(general: Kernel, compiled: Kernel) -> Kernel:
    """Return a kernel that is the general one for the first rows, then the compiled one. Both have the same
    results. One thread calls it.
    """
    rows = 0

    def kernel(*data: Datum) -> Datum:
        nonlocal rows
        if rows < FIRST_ROWS:
            lengths = (len(datum) for datum in data if isinstance(datum, pa.Array))
            rows += max([_ROWS_OF_A_BATCH, *lengths])
        return (general if rows < FIRST_ROWS else compiled)(*data)

    return kernel


# Combined codes stay below this, so that the next column's factor cannot overflow 64 bits unnoticed.
_CODES_MAX = 1 << 62


def by_value(compute: Callable[..., Any], kind: pa.DataType) -> Factory:
    """Return the factory of a Python function's kernel. The function runs once per distinct combination of
    arguments. The result is NULL where an argument is NULL or the function returns ``None``.
    """

    def kernel(*data: Any) -> pa.Array:
        columns = aligned(*data)
        # one row, in a tenth of the time
        if len(columns[0]) == 1:
            values = [column[0].as_py() for column in columns]
            result = None if any(value is None for value in values) else compute(*values)
            return one_array(pa.array([result], kind))
        # Rows with a NULL share the code -1: the function never sees them.
        codes, known = _combinations(columns)
        _, firsts, inverse = np.unique(np.where(known, codes, -1), return_index=True, return_inverse=True)
        first_rows = array_of(firsts)
        arguments = zip(*(column.take(first_rows).to_pylist() for column in columns), strict=True)
        results = [
            compute(*values) if wanted else None
            for values, wanted in zip(arguments, known[firsts].tolist(), strict=True)
        ]
        return one_array(pa.array(results, kind)).take(array_of(inverse))

    return plain(kernel)


def _combinations(columns: list[pa.Array]) -> tuple[np.ndarray, np.ndarray]:
    """Return a code per row, equal for equal values of all columns, and a mask of the rows without NULL."""
    # count: how many different codes there may be so far
    codes, known, count = np.zeros(len(columns[0]), np.int64), np.ones(len(columns[0]), np.bool_), 1
    for column in columns:
        encoded = pc.dictionary_encode(column)
        known &= truths(pc.is_valid(encoded.indices))
        size = max(1, len(encoded.dictionary))
        if count * size > _CODES_MAX:  # numbered anew, there are no more of them than rows
            codes = np.unique(codes, return_inverse=True)[1]
            count = len(codes)
        # A mixed-radix number: one digit per column.
        codes = codes * size + pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
        count *= size
    return codes, known
