"""Higher-order functions: a lambda runs once over the elements of all arrays of a batch. Outer columns are
repeated for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api import arrow_numpy
from penstock.engine.expressions.datum import Datum, Evaluate, Rows, either, repeated
from penstock.engine.expressions.nested.lists import Lists, lists_of, member, picked
from penstock.engine.expressions.nested.map_functions import checked_keys


class Elements:
    """The rows a lambda runs on: one per element. Columns of the outer rows keep their positions; parameter
    ``number`` is column -1 - ``number``.
    """

    def __init__(self, rows: Rows, parents: np.ndarray, variables: Mapping[int, pa.Array]) -> None:
        self._rows = rows
        self._count = parents.size
        self._parents = arrow_numpy.array_of(parents)
        self._columns = {-1 - number: column for number, column in variables.items()}

    @property
    def num_rows(self) -> int:
        """The number of elements."""
        return self._count

    def column(self, i: int) -> pa.Array:
        """Return a column."""
        # An outer column is repeated only when the lambda reads it, and once.
        repeated_column = self._columns.get(i)
        if repeated_column is None:
            repeated_column = self._columns[i] = self._rows.column(i).take(self._parents)
        return repeated_column


@dataclass(frozen=True)
class Body:
    """A compiled lambda: the numbers of its parameters, its body and its result type."""

    parameters: tuple[int, ...]
    evaluate: Evaluate
    kind: pa.DataType

    def of(self, rows: Rows, parents: np.ndarray, *arguments: pa.Array) -> pa.Array:
        """Return the lambda's results for elements. ``parents`` is the outer row of each element. Arguments
        without a parameter are ignored.
        """
        # arrays without any element: the lambda is not evaluated, and cannot fault
        if not parents.size:
            return pa.nulls(0, self.kind)
        # x -> .. has one parameter, (x, i) -> .. has two: more arguments than parameters are fine
        result = self.evaluate(Elements(rows, parents, dict(zip(self.parameters, arguments, strict=False))))
        column = repeated(result, parents.size) if isinstance(result, pa.Scalar) else result
        return column if column.type == self.kind else column.cast(self.kind)


Kernel = Callable[[Rows, list[pa.Array], Sequence[Body]], pa.Array]


def with_functions(function: str, values: Sequence[Evaluate], bodies: Sequence[Body]) -> Evaluate:
    """Return the evaluation of a call with value arguments and lambdas."""
    kernel = LAMBDA_KERNELS[function]

    def evaluate(rows: Rows) -> Datum:
        data = [value(rows) for value in values]
        return kernel(
            rows,
            [repeated(datum, rows.num_rows) if isinstance(datum, pa.Scalar) else datum for datum in data],
            bodies,
        )

    return evaluate


def _mapped(rows: Rows, lists: Lists, body: Body) -> pa.Array:
    # the element and its position, from 0
    return body.of(rows, lists.parents, lists.flat, arrow_numpy.array_of(lists.nth.astype(np.int32)))


def _transform(rows: Rows, columns: list[pa.Array], bodies: Sequence[Body]) -> pa.Array:
    lists = lists_of(columns[0])
    return Lists(_mapped(rows, lists, bodies[0]), lists.lengths, lists.missing).column()


def _filter(rows: Rows, columns: list[pa.Array], bodies: Sequence[Body]) -> pa.Array:
    lists = lists_of(columns[0])
    # NULL does not pass, as in WHERE
    return lists.filter(arrow_numpy.is_true(_mapped(rows, lists, bodies[0]))).column()


def _decided(value: bool) -> Kernel:
    """EXISTS is decided by one TRUE, FORALL by one FALSE. Undecided, a NULL makes the result NULL."""

    def kernel(rows: Rows, columns: list[pa.Array], bodies: Sequence[Body]) -> pa.Array:
        lists = lists_of(columns[0])
        verdicts = _mapped(rows, lists, bodies[0])
        decided = lists.any(arrow_numpy.is_true(pc.equal(verdicts, value)))
        # exists([1, NULL], x -> x > 5): NULL > 5 is NULL, so the answer is unknown
        opened = lists.any(arrow_numpy.truths(verdicts.is_null())) & ~decided
        return arrow_numpy.array_of(decided == value, either(opened, lists.missing))

    return kernel


def _zip_with(rows: Rows, columns: list[pa.Array], bodies: Sequence[Body]) -> pa.Array:
    left, right = map(lists_of, columns)
    # The shorter array is filled up with NULLs; a NULL array makes the row NULL, with no elements.
    missing = either(left.missing, right.missing)
    lengths = np.maximum(left.lengths, right.lengths)
    if missing is not None:
        lengths = np.where(missing, 0, lengths)
    pairs = Lists(pa.nulls(int(lengths.sum())), lengths, missing)
    beside = [
        picked(side.flat, side.starts[pairs.parents] + pairs.nth, pairs.nth >= side.lengths[pairs.parents])
        for side in (left, right)
    ]
    return Lists(bodies[0].of(rows, pairs.parents, *beside), lengths, missing).column()


def _aggregate(rows: Rows, columns: list[pa.Array], bodies: Sequence[Body]) -> pa.Array:
    """Run the merge lambda once per element position. Arrays are sorted by length, longest first, so the
    arrays that still have an element are a prefix.
    """
    lists, value = lists_of(columns[0]), columns[1]
    order = np.argsort(-lists.lengths, kind="stable")
    lengths, value = lists.lengths[order], value.take(arrow_numpy.array_of(order))
    done: list[pa.Array] = []
    # Arrays of length ``position`` are finished: they are the tail of ``value``.
    for position in range(int(lists.lengths.max(initial=0))):
        active = int(np.searchsorted(-lengths, -position, side="left"))
        done.append(value.slice(active))
        parents = order[:active]
        element = picked(lists.flat, lists.starts[parents] + position, None)
        value = bodies[0].of(rows, parents, value.slice(0, active), element)
    # The pieces are back in sorted order; ``back`` restores the order of the rows.
    together = pa.concat_arrays([value, *done[::-1]])
    back = np.empty(order.size, np.int64)
    back[order] = np.arange(order.size)
    result = together.take(arrow_numpy.array_of(back, lists.missing))
    if len(bodies) == 1:
        return result
    # The finish lambda does not run for NULL arrays.
    there = np.arange(order.size) if lists.missing is None else np.flatnonzero(~lists.missing)
    finished = bodies[1].of(rows, there, result.take(arrow_numpy.array_of(there)))
    if lists.missing is None:
        return finished
    return finished.take(
        arrow_numpy.array_of(np.where(lists.missing, 0, np.cumsum(~lists.missing) - 1), lists.missing)
    )


def _entries_of(column: pa.Array) -> tuple[Lists, pa.Array, pa.Array]:
    lists = lists_of(column)
    return lists, member(lists.flat, 0), member(lists.flat, 1)


def _map_filter(rows: Rows, columns: list[pa.Array], bodies: Sequence[Body]) -> pa.Array:
    lists, keys, values = _entries_of(columns[0])
    return lists.filter(arrow_numpy.is_true(bodies[0].of(rows, lists.parents, keys, values))).maps()


def _transform_keys(rows: Rows, columns: list[pa.Array], bodies: Sequence[Body]) -> pa.Array:
    lists, keys, values = _entries_of(columns[0])
    changed = bodies[0].of(rows, lists.parents, keys, values)
    # The lambda may map two keys to one, or a key to NULL.
    checked_keys(Lists(changed, lists.lengths))
    return Lists(
        pa.StructArray.from_arrays([changed, values], ["key", "value"]), lists.lengths, lists.missing
    ).maps()


def _transform_values(rows: Rows, columns: list[pa.Array], bodies: Sequence[Body]) -> pa.Array:
    lists, keys, values = _entries_of(columns[0])
    changed = bodies[0].of(rows, lists.parents, keys, values)
    return Lists(
        pa.StructArray.from_arrays([keys, changed], ["key", "value"]), lists.lengths, lists.missing
    ).maps()


LAMBDA_KERNELS: dict[str, Kernel] = {
    "transform": _transform,
    "filter": _filter,
    "exists": _decided(True),
    "forall": _decided(False),
    "aggregate": _aggregate,
    "zip_with": _zip_with,
    "map_filter": _map_filter,
    "transform_keys": _transform_keys,
    "transform_values": _transform_values,
}
