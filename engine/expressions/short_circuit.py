"""AND, OR and CASE: an operand's faults only count on rows that need the operand.

All operands are first computed on all rows, which is fast and gives the same values. When an operand faults,
the operands are computed again, each only on the rows that are still undecided. A fault that remains is real.
After its first fault, a node only uses this second evaluation.
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
    # A stack, not recursion: a long chain of AND is as deep as it is long.
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
        # The flag is per compiled node: after one fault, later batches skip the attempt.
        if not faulted:
            try:
                return eager(rows)
            except Fault:
                faulted = True
        return careful(rows)

    return evaluate


def connective(function: str, parts: tuple[Expression, ...], operands: tuple[Evaluate, ...]) -> Evaluate:
    """Return AND or OR over operands in three-valued logic. A later operand cannot fault on rows that an
    earlier one has decided.
    """
    combine = _KLEENE[function]
    decided = function == "or"

    def eager(rows: Rows) -> Datum:
        return functools.reduce(combine, (operand(rows) for operand in operands))

    def careful(rows: Rows) -> Datum:
        result: pa.Array = _column(operands[0](rows), rows.num_rows)
        for operand in operands[1:]:
            # FALSE decides AND, TRUE decides OR; NULL stays undecided.
            undecided = np.flatnonzero(~truth(pc.equal(result, decided)))
            if not len(undecided):
                break
            part = operand(Selection(rows, undecided))
            result = combine(result, spread(part, undecided, rows.num_rows))
        return result

    return _adaptive(eager, careful)


def case(expression: Case, whens: tuple[tuple[Evaluate, Evaluate], ...], default: Evaluate) -> Evaluate:
    """Return a CASE: each row takes the branch of its first TRUE condition. Other branches cannot fault on
    it.
    """
    kind = to_arrow(expression.type)

    def eager(rows: Rows) -> Datum:
        result = default(rows)
        # From the last WHEN to the first, so that the first TRUE condition wins.
        for condition, value in reversed(whens):
            result = _choose(condition(rows), value(rows), result)
        return result

    def careful(rows: Rows) -> Datum:
        pending = np.arange(rows.num_rows)
        pieces: list[pa.Array] = []
        positions: list[np.ndarray] = []
        # Each WHEN only sees the rows that no earlier WHEN has taken; ELSE takes the rest.
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
        # The inverse permutation puts the pieces back in row order.
        order = np.empty(rows.num_rows, np.int64)
        order[np.concatenate(positions)] = np.arange(rows.num_rows)
        return pa.concat_arrays(pieces).take(array_of(order))

    return _adaptive(eager, careful)


def _always(rows: Rows) -> Datum:
    return pa.scalar(True)


def _choose(condition: Datum, value: Datum, otherwise: Datum) -> Datum:
    """Return ``value`` where the condition is TRUE, else ``otherwise``. A constant condition selects a whole
    column.
    """
    if isinstance(condition, pa.Scalar):
        return value if condition.as_py() is True else otherwise
    # if_else would return NULL for a NULL condition; CASE takes the next branch.
    if condition.null_count:
        condition = pc.fill_null(condition, False)
    # Nested scalars become columns before if_else.
    if pa.types.is_nested(value.type):
        _, value, otherwise = aligned(condition, value, otherwise)
    return pc.if_else(condition, value, otherwise)


def _column(datum: Datum, length: int) -> pa.Array:
    return repeated(datum, length) if isinstance(datum, pa.Scalar) else datum
