"""Aggregate inputs: the rows of a batch that an accumulator reads, and the values of its arguments.
RowPartials are the aggregates of single rows.

An argument that is a bare column costs nothing and does not load the expression compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import to_arrow
from penstock.engine.api.arrow_numpy import array_of, is_true
from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.aggregates.registry import input_arguments, input_type, is_distinct, needs_value
from penstock.planner.expressions.nodes import AggregateCall, Column, Expression

Reader = Callable[[pa.RecordBatch], pa.Array]


def reader(expression: Expression, zone: str) -> Reader:
    """Return a function from a batch to the expression's column; ``zone`` is the session's time zone.
    Raises as compiled expressions do.
    """
    if isinstance(expression, Column):
        index = expression.index
        return lambda batch: batch.column(index)
    # only computed arguments need the compiler
    from penstock.engine.expressions.compiler import compile_expression
    from penstock.engine.expressions.kernel_factory import EvaluationContext

    return compile_expression(expression, EvaluationContext(zone))


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What is known of one batch: the masks of filters, and the columns of arguments. Several aggregates may
    have the same: it is evaluated once.
    """

    masks: dict[Expression, np.ndarray] = field(default_factory=dict)
    columns: dict[Expression, pa.Array] = field(default_factory=dict)


Rows = tuple[np.ndarray, pa.Array | None, np.ndarray]
"""Slots, values and weights."""


@dataclass(frozen=True, eq=False)
class AggregateFilter:
    """The FILTER of an aggregate: the rows for which an expression is TRUE."""

    expression: Expression
    keep: Reader

    def mask(self, batch: pa.RecordBatch, masks: dict[Expression, np.ndarray]) -> np.ndarray:
        """Return which rows of a batch the filter accepts."""
        # TRUE only: FALSE and NULL drop the row.
        if self.expression not in masks:
            masks[self.expression] = is_true(self.keep(batch))
        return masks[self.expression]


@dataclass(frozen=True, eq=False)
class Argument:
    """An argument of an aggregate. ``shared``: it is computed, and has one value for a row however often it
    is evaluated.
    """

    expression: Expression
    read: Reader
    shared: bool

    @classmethod
    def of(cls, expression: Expression, zone: str) -> Argument:
        """Return the argument of an expression."""
        if isinstance(expression, Column):
            return cls(expression, reader(expression, zone), shared=False)
        # as for the compiler: only computed arguments need it
        from penstock.engine.expressions.shared_subexpressions import has_one_value

        return cls(expression, reader(expression, zone), has_one_value(expression))

    def column(self, batch: pa.RecordBatch, columns: dict[Expression, pa.Array]) -> pa.Array:
        """Return the argument's values; ``columns`` are those that the batch was asked for before."""
        if not self.shared:
            return self.read(batch)
        if self.expression not in columns:
            columns[self.expression] = self.read(batch)
        return columns[self.expression]


@dataclass(frozen=True, eq=False)
class AggregateInput:
    """The input of one part: its arguments, for the rows that a filter accepts. No arguments: whole rows;
    several, or one nested one: structs.

    Those ``needed`` must not be NULL. ``apart``: weights are int64 [filter, row], 0 where a filter rejects a
    row. Otherwise there is one filter, and weights are by row. ``counts``: the value of no argument is read,
    so rows that do not count stay with a weight of 0.
    """

    arguments: tuple[Argument, ...]
    needed: tuple[int, ...]
    kind: pa.DataType | None
    filters: tuple[AggregateFilter | None, ...]
    apart: bool
    counts: bool

    def rows(
        self, slots: np.ndarray, batch: pa.RecordBatch, weights: np.ndarray, evaluated: Evaluated
    ) -> Rows:
        """Return the rows that some filter accepts and whose needed arguments are not NULL. A count keeps the
        other rows, with weight 0.
        """
        columns = [argument.column(batch, evaluated.columns) for argument in self.arguments]
        # None as a filter: all rows.
        masks = [None if one is None else one.mask(batch, evaluated.masks) for one in self.filters]
        mask = _any(masks)
        # A needed argument that is NULL drops the row, as SQL ignores NULLs in aggregates.
        for column in (columns[i] for i in self.needed if i < len(columns)):
            if column.null_count:
                valid = col.validity(column).view(np.bool_)
                mask = valid if mask is None else mask & valid
        if self.counts:
            # a row that is left out costs a misprediction, a weight of 0 nothing: 13 us a batch, not 240
            signs = weights if mask is None else mask * weights if weights.size else mask.astype(np.int64)
            return slots, None, signs
        values = None
        if columns:
            assert self.kind is not None
            values = (
                # Several arguments are one struct, so that values stay together through sorting and counting.
                pa.StructArray.from_arrays(columns, fields=list(self.kind))
                if pa.types.is_struct(self.kind)
                else columns[0]
            )
        # DISTINCT with several filters: one row of weights a filter, so each value is looked up once
        if self.apart:
            weights = _by_filter(masks, weights, slots.size)
        if mask is None or mask.all():
            # Empty weights stay empty: +1 each.
            return slots, values, weights
        values = None if values is None else values.filter(array_of(mask))
        return slots[mask], values, np.ascontiguousarray(weights[..., mask]) if weights.size else weights


def aggregate_input(call: AggregateCall, filters: Sequence[Expression | None], zone: str) -> AggregateInput:
    """Return the input of an aggregate's accumulator, for each of some filters (None: all rows)."""
    aggregate_filters = tuple(
        None if one is None else AggregateFilter(one, reader(one, zone)) for one in filters
    )
    return AggregateInput(
        tuple(Argument.of(arg, zone) for arg in input_arguments(call)),
        needs_value(call),
        input_type(call),
        aggregate_filters,
        is_distinct(call),
        call.function == "count" and not is_distinct(call),
    )


def _any(masks: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Return which rows some mask accepts, None for all."""
    united: np.ndarray | None = None
    for mask in masks:
        # An aggregate without a filter accepts every row.
        if mask is None:
            return None
        united = mask if united is None else united | mask
    return united


def _by_filter(masks: Sequence[np.ndarray | None], weights: np.ndarray, rows: int) -> np.ndarray:
    out = np.empty((len(masks), rows), np.int64)
    for k, mask in enumerate(masks):
        # Empty weights: +1 each, where the filter accepts the row.
        signed = weights if weights.size else 1
        out[k] = signed if mask is None else mask * signed
    return out


class RowPartials:
    """The aggregates a split leaves to its LOCAL part, over single rows: COUNT, SUM, SUM0, MIN, MAX,
    BOOL_AND, BOOL_OR, BIT_AND, BIT_OR, BIT_XOR.

    None of them DISTINCT.
    """

    def __init__(self, calls: Sequence[AggregateCall], zone: str) -> None:
        self._calls = tuple(calls)
        self._arguments = [Argument.of(call.args[0], zone) if call.args else None for call in calls]
        self._filters = [None if call.filter is None else reader(call.filter, zone) for call in calls]

    def columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return one column per aggregate, of exactly its Arrow type."""
        evaluated = Evaluated()
        return [self._column(index, rows, evaluated) for index in range(len(self._calls))]

    def _column(self, index: int, rows: pa.RecordBatch, evaluated: Evaluated) -> pa.Array:
        call, argument, keep = self._calls[index], self._arguments[index], self._filters[index]
        # COUNT(*) counts ones.
        values = (
            array_of(np.ones(rows.num_rows, np.int64))
            if argument is None
            else argument.column(rows, evaluated.columns)
        )
        if keep is not None:
            # A row that the filter rejects is NULL, which the aggregate ignores.
            values = pc.if_else(keep(rows).fill_null(False), values, pa.scalar(None, values.type))
        if call.function == "count":
            # COUNT(x) of a single row: 1 or 0.
            return values.is_valid().cast(pa.int64()) if values.null_count or argument is not None else values
        values = values.cast(to_arrow(call.type))
        # SUM0 of nothing is 0, not NULL.
        return values.fill_null(0) if call.function == "sum0" else values
