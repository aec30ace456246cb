"""Evaluation faults: errors of a value, and their translation to the user's error with the row."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.filesystem import LIKELY_NULL_LITERALS
from penstock.catalog.errors import PenstockError
from penstock.engine.api.row_pieces import LIMITS, is_capacity
from penstock.planner.expressions.nodes import Column, Expression

# An error shows at most this many columns of the row, and this many characters of a value.
_SHOWN_COLUMNS = 8
_SHOWN_WIDTH = 80
# What functions that make much of little may give for one batch, so that a slip of a digit does not take all
# memory.
MOST = {"elements": 1 << 25, "bytes": 1 << 29}
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE")
# texts that people mean as values of these types, and how they are read
_SPELLINGS = (
    (_NUMBERS, re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?"), "CAST(REPLACE(x, ',', '') AS {kind})"),
    (
        _NUMBERS,
        re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d*"),
        "CAST(REPLACE(REPLACE(x, '.', ''), ',', '.') AS {kind})",
    ),
    (_NUMBERS, re.compile(r"[+-]?\d*,\d+"), "CAST(REPLACE(x, ',', '.') AS {kind})"),
    (("DATE",), re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"), "TO_DATE(x, 'dd.MM.yyyy')"),
    (("DATE",), re.compile(r"\d{1,2}/\d{1,2}/\d{4}"), "TO_DATE(x, 'MM/dd/yyyy'), or 'dd/MM/yyyy',"),
    (("TIMESTAMP",), re.compile(r"\d{1,2}\.\d{1,2}\.\d{4} .*"), "TO_TIMESTAMP(x, 'dd.MM.yyyy HH:mm:ss')"),
    (("TIMESTAMP",), re.compile(r"\d{1,2}/\d{1,2}/\d{4} .*"), "TO_TIMESTAMP(x, 'MM/dd/yyyy HH:mm:ss')"),
)


class Fault(Exception):
    """An evaluation error of a value that an expression rejects. ``expression`` is the innermost expression
    that raised it. A fault does not know its row: ``compile_expression`` locates the row in the batch
    afterwards.
    """

    def __init__(self, code: str, sqlstate: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.sqlstate = sqlstate
        self.message = message
        self.hint = hint
        self.of_batch = False  # it is no single row's
        self.expression: Expression | None = None

    def within(self, expression: Expression) -> Fault:
        """Set the expression in which the fault arose, unless an inner expression is already set."""
        if self.expression is None:
            self.expression = expression
        return self

    def of_one_row(self) -> Fault:
        """Return a batch's fault with the hint for a batch of one row, which cannot be made smaller."""
        self.message = self.message.replace("the values of one batch", "one value")
        self.hint = "check the size before the call"
        return self


class BatchTooLarge(PenstockError):
    """RUN-2006 for a whole batch, not for a single row. A batch of fewer rows may succeed."""


def division_by_zero() -> Fault:
    """Return the fault of ``x / 0``."""
    return Fault(
        "RUN-2001",
        "22012",
        "division by zero",
        "guard it: CASE WHEN divisor <> 0 THEN .. END, or NULLIF(divisor, 0)",
    )


def out_of_range(kind: object, value: object = None) -> Fault:
    """Return the fault of a number too large for its type."""
    shown = "value" if value is None else f"value {value}"
    return Fault(
        "RUN-2002", "22003", f"{shown} out of range for {kind}", "CAST the operands to a wider type first"
    )


def bad_cast(value: object, kind: object) -> Fault:
    """Return the fault of a value that cannot be read as a type."""
    shown = repr(value) if isinstance(value, str) else str(value)
    return Fault(
        "RUN-2003",
        "22018",
        f"cannot cast {_cut(shown)} to {kind}",
        _reading_hint(value, str(kind)),
    )


def _reading_hint(value: object, kind: str) -> str:
    """Return how a text is read as a type, where it is a common spelling that CAST does not read."""
    for kinds, spelling, reading in _SPELLINGS:
        if isinstance(value, str) and kind.startswith(kinds) and spelling.fullmatch(value.strip()):
            return f"write {reading.format(kind=kind)} for the column x, or TRY_CAST to get NULL"
    if value in LIKELY_NULL_LITERALS:
        return (
            "write TRY_CAST to get NULL; in csv 'csv.null-literal' = "
            f"'{value}' of the table, or nullstr => '{value}' of read_csv, reads it as NULL"
        )
    return "write TRY_CAST to get NULL for what cannot be read"


def bad_argument(message: str, hint: str | None = None) -> Fault:
    """Return the fault of an argument outside the function's domain."""
    return Fault("RUN-2004", "22023", message, hint)


def too_many_iterations(most: int) -> Fault:
    """Return the fault of a recursive query that still has rows after the most iterations."""
    return Fault(
        "RUN-2025",
        "54001",
        f"a recursive query still has rows after {most:,} iterations",
        "write UNION instead of UNION ALL, bound the steps in WHERE, or SET 'recursion.max-iterations'",
    )


def several_rows() -> Fault:
    """Return the fault of a scalar subquery that has more than one row."""
    return Fault(
        "RUN-2026",
        "21000",
        "a subquery that is used as a value has several rows",
        "aggregate it, as in SELECT max(..), or add ORDER BY .. LIMIT 1",
    )


def conflicting_rows() -> Fault:
    """Return the fault of ON CONFLICT DO ERROR: several rows have one primary key."""
    return Fault(
        "RUN-2027",
        "23505",
        "several rows have one primary key, and the statement says ON CONFLICT DO ERROR",
        "write DO NOTHING for the first row of each key, DO DEDUPLICATE for the last, or GROUP BY the key",
    )


def check_sizes(function: str, sizes: np.ndarray, unit: str) -> None:
    """Check the size of a function's result against ``MOST``. ``sizes`` (int64) has the elements or bytes
    (``unit``) of each row. Raise Fault RUN-2006 when one row, or all rows of the batch together, exceed the
    limit.
    """
    most = MOST[unit]
    if not sizes.size or int(sizes.sum(dtype=np.float64)) <= most:
        return
    # One row alone is too large: fewer rows per batch would not help, so the hint is another.
    largest = int(sizes.max())
    if largest > most:
        raise Fault(
            "RUN-2006",
            "54000",
            f"{function} would return {largest:,} {unit}, over the limit of {most:,}",
            "check the size before the call",
        )
    fault = Fault(
        "RUN-2006",
        "54000",
        f"{function} would return {int(sizes.sum()):,} {unit} for {sizes.size:,} rows, over the limit "
        f"of {most:,}",
    )
    fault.hint = "SET 'execution.batch.max-rows' to fewer rows"
    fault.of_batch = True
    raise fault


def out_of_memory(expression: Expression) -> Fault:
    """Return the fault of a value that memory cannot hold."""
    fault = Fault(
        "RUN-2006",
        "53200",
        f"there is not enough memory for a value of {expression.type}",
        "SET 'execution.batch.max-rows' to fewer rows",
    )
    fault.of_batch = True
    return fault.within(expression)


def over_capacity() -> Fault:
    """Return the fault of more text or elements than one Arrow array can hold."""
    fault = Fault(
        "RUN-2006",
        "54000",
        f"the values of one batch would take more than {LIMITS.array_bytes:,} bytes, the limit of one column",
        "SET 'execution.batch.max-rows' to fewer rows",
    )
    fault.of_batch = True
    return fault


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a kernel's values as one array. Raise Fault RUN-2006 for more than one array can hold: Arrow
    makes such values a chunked array.
    """
    if values.nbytes > LIMITS.array_bytes:
        raise over_capacity()
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def from_arrow(error: pa.ArrowException, expression: Expression) -> Fault:
    """Return the fault for an Arrow kernel's error. It reads Arrow's message to tell the cases apart."""
    text = str(error)
    if is_capacity(error):
        return over_capacity().within(expression)
    if "divide by zero" in text:
        return division_by_zero().within(expression)
    # Three wordings of Arrow for a number that its type cannot hold.
    if "overflow" in text or "out of bounds" in text or "fit in precision" in text:
        return out_of_range(expression.type).within(expression)
    return bad_argument(text.split("\n", maxsplit=1)[0]).within(expression)


def to_error(fault: Fault, whole: Expression, row: pa.RecordBatch | None) -> PenstockError:
    """Return the user's error for a fault of ``whole``. ``row`` is a batch of length 1, or ``None`` when no
    single row is at fault.
    """
    part = fault.expression if fault.expression is not None else whole
    # the innermost expression, then the columns of the row that the whole expression reads
    facts = [f"in {_cut(str(part), 200)}"]
    if row is not None:
        shown = [
            f"{_name(row, whole, index)} = {_shown(row.column(index)[0])}"
            for index in sorted(whole.columns())[:_SHOWN_COLUMNS]
        ]
        if shown:
            facts.append("row: " + ", ".join(shown))
    # an expression that a rewrite has made has no position of its own
    span = part.span if part.span is not None else whole.span
    kind = BatchTooLarge if fault.of_batch else PenstockError
    return kind(
        fault.code,
        fault.message,
        detail="\n".join(facts),
        hint=fault.hint,
        span=span,
        sqlstate=fault.sqlstate,
    )


def _name(row: pa.RecordBatch, whole: Expression, index: int) -> str:
    names = (
        node.name for node in whole.walk() if isinstance(node, Column) and node.index == index and node.name
    )
    return next(names, row.schema.field(index).name)


def _shown(value: pa.Scalar) -> str:
    if not value.is_valid:
        return "NULL"
    plain = value.cast(pa.string(), safe=False).as_py() if pa.types.is_temporal(value.type) else value.as_py()
    return _cut(repr(plain) if isinstance(plain, str) else str(plain))


def _cut(text: str, width: int = _SHOWN_WIDTH) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
