"""AND, OR and CASE: what stands behind a condition is not computed where the condition says no, as far as
anyone can tell.

All operands are computed on all rows first, which is the fast way and gives the same values. When an operand
faults on some row, the operands are computed once more, each only on the rows that are still undecided: a
fault that is left is a real one. A guard that had to help once goes the careful way at once from then on.
"""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import to_arrow
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.expressions.datum import (
    Datum,
    Evaluate,
    Rows,
    Selection,
    aligned,
    repeated,
    spread,
    truth,
)
from penstock.engine.expressions.evaluation_errors import Fault
from penstock.planner.expressions.nodes import Call, Case, Expression

_KLEENE = {"and": pc.and_kleene, "or": pc.or_kleene}


def flattened(call: Call) -> tuple[Expression, ...]:
    """Return the operands of a chain of one connective, left to right."""
    parts: list[Expression] = []
    waiting: list[Expression] = [call]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call) and part.function == call.function:
            waiting.extend(reversed(part.args))
        else:
            parts.append(part)
    return tuple(parts)


def _adaptive(eager: Evaluate, careful: Evaluate) -> Evaluate:
    faulted = False

    def evaluate(rows: Rows) -> Datum:
        nonlocal faulted
        if not faulted:
            try:
                return eager(rows)
            except Fault:
                faulted = True
        return careful(rows)

    return evaluate


def connective(function: str, parts: tuple[Expression, ...], operands: tuple[Evaluate, ...]) -> Evaluate:
    """Return AND or OR over operands in three-valued logic; an operand is not asked about rows that an
    earlier one has decided.
    """
    combine = _KLEENE[function]
    decided = function == "or"

    def eager(rows: Rows) -> Datum:
        return functools.reduce(combine, (operand(rows) for operand in operands))

    def careful(rows: Rows) -> Datum:
        result: pa.Array = _column(operands[0](rows), rows.num_rows)
        for operand in operands[1:]:
            undecided = np.flatnonzero(~truth(pc.equal(result, decided)))
            if not len(undecided):
                break
            part = operand(Selection(rows, undecided))
            result = combine(result, spread(part, undecided, rows.num_rows))
        return result

    return _adaptive(eager, careful)


def case(expression: Case, whens: tuple[tuple[Evaluate, Evaluate], ...], default: Evaluate) -> Evaluate:
    """Return a CASE: conditions in order, a branch only for the rows whose condition is the first to hold."""
    kind = to_arrow(expression.type)

    def eager(rows: Rows) -> Datum:
        result = default(rows)
        for condition, value in reversed(whens):
            result = _choose(condition(rows), value(rows), result)
        return result

    def careful(rows: Rows) -> Datum:
        pending = np.arange(rows.num_rows)
        pieces: list[pa.Array] = []
        positions: list[np.ndarray] = []
        for condition, value in (*whens, (_always, default)):
            if not len(pending):
                break
            part = Selection(rows, pending)
            hit = truth(_column(condition(part), len(pending)))
            if hit.any():
                chosen = pending[hit]
                pieces.append(_column(value(Selection(rows, chosen)), len(chosen)).cast(kind))
                positions.append(chosen)
            pending = pending[~hit]
        order = np.empty(rows.num_rows, np.int64)
        order[np.concatenate(positions)] = np.arange(rows.num_rows)
        return pa.concat_arrays(pieces).take(array_of(order))

    return _adaptive(eager, careful)


def _always(rows: Rows) -> Datum:
    return pa.scalar(True)


def _choose(condition: Datum, value: Datum, otherwise: Datum) -> Datum:
    """Take ``value`` where the condition is TRUE; a constant condition chooses whole columns."""
    if isinstance(condition, pa.Scalar):
        return value if condition.as_py() is True else otherwise
    if condition.null_count:
        condition = pc.fill_null(condition, False)
    if pa.types.is_nested(value.type):
        _, value, otherwise = aligned(condition, value, otherwise)
    return pc.if_else(condition, value, otherwise)


def _column(datum: Datum, length: int) -> pa.Array:
    return repeated(datum, length) if isinstance(datum, pa.Scalar) else datum
