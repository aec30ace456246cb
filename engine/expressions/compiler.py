"""Compiles a typed expression into closures over Arrow kernels. It compiles once and runs once per batch."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.functions.registry import is_deterministic
from penstock.catalog.types import YearMonthInterval, to_arrow
from penstock.engine.api.arrow_numpy import scalar_of
from penstock.engine.api.row_pieces import TooLarge, is_capacity
from penstock.engine.expressions import short_circuit
from penstock.engine.expressions.casts.cast import cast_kernel
from penstock.engine.expressions.datum import Datum, Evaluate, Kernel, Rows, repeated
from penstock.engine.expressions.evaluation_errors import (
    BatchTooLarge,
    Fault,
    from_arrow,
    out_of_memory,
    over_capacity,
    to_error,
)
from penstock.engine.expressions.kernel_factory import BoundCall, EvaluationContext
from penstock.engine.expressions.lambdas import LAMBDA_KERNELS, Body, with_functions
from penstock.engine.expressions.python_calls import RowsKernel, python_kernel
from penstock.engine.expressions.registry import CLOCK_FUNCTIONS, KERNELS
from penstock.planner.expressions.nodes import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Lambda,
    LambdaVariable,
    Literal,
)
from penstock.planner.expressions.python_calls import PythonCall

DEFAULT_CONTEXT = EvaluationContext()


@dataclass(frozen=True)
class Compiled:
    """A compiled node. ``constant`` is its value when every row has the same value."""

    evaluate: Evaluate
    constant: pa.Scalar | None = None


def compile_expression(
    expression: Expression, context: EvaluationContext = DEFAULT_CONTEXT
) -> Callable[[pa.RecordBatch], pa.Array]:
    """Return a function from a batch to the expression's column, of exactly its Arrow type.

    The function raises PenstockError RUN-2001 (division by zero), RUN-2002 (out of range), RUN-2003 (bad
    cast), RUN-2004 (bad argument), RUN-2006 (too large).
    """
    kind = to_arrow(expression.type)
    if isinstance(expression, Column):
        # A plain column needs no closure over kernels and cannot fault.
        index = expression.index
        return lambda batch: batch.column(index)
    compiled = _compile(expression, context)
    if compiled.constant is not None:
        # the same value for every row: repeated, not evaluated
        value = compiled.constant
        return lambda batch: _compute_column(lambda: repeated(value, batch.num_rows), expression)
    evaluate = compiled.evaluate
    fixed_width = pa.types.is_primitive(kind) or pa.types.is_decimal(kind)

    def halves(batch: pa.RecordBatch) -> pa.Array:
        # CHAR_LENGTH of texts too large for one batch: the results are small and can be joined again
        middle = batch.num_rows // 2
        return pa.concat_arrays([run(batch.slice(0, middle)), run(batch.slice(middle))])

    def run(batch: pa.RecordBatch) -> pa.Array:
        # kernels need no care for empty batches
        if batch.num_rows == 0:
            return pa.nulls(0, kind)
        try:
            # the whole batch first: the row at fault is searched for only when there is a fault
            result = evaluate(batch)
        except Fault as fault:
            # The batch as a whole is too large: no row to search for.
            if fault.of_batch:
                if batch.num_rows > 1 and fixed_width:
                    return halves(batch)
                fault = fault.of_one_row() if batch.num_rows == 1 else fault
                raise to_error(fault, expression, None) from None
            raise _located(evaluate, batch, fault, expression) from None
        except pa.ArrowException as error:  # of a guard, which puts the branches of a CASE together
            if not is_capacity(error):
                raise
            if batch.num_rows > 1 and fixed_width:
                return halves(batch)
            raise to_error(over_capacity().within(expression), expression, None) from None
        # the current time, say: one value that only a run knows
        if isinstance(result, pa.Scalar):
            value = result
            result = _compute_column(lambda: repeated(value, batch.num_rows), expression)
        return result if result.type == kind else result.cast(kind)

    return run


def _compute_column(compute: Callable[[], pa.Array], whole: Expression) -> pa.Array:
    """Compute a column; report its faults without a row, since none is at fault alone."""
    try:
        return compute()
    except Fault as fault:
        raise to_error(fault, whole, None) from None


def compile_predicate(
    expression: Expression, context: EvaluationContext = DEFAULT_CONTEXT
) -> Callable[[pa.RecordBatch], pa.BooleanArray]:
    """Return a function from a batch to a BOOLEAN column; rows with NULL do not pass.

    It raises as ``compile_expression`` does. When the batch is too large, it splits the batch in halves
    first.
    """
    evaluate = compile_expression(expression, context)

    def holds(batch: pa.RecordBatch) -> pa.BooleanArray:
        try:
            return evaluate(batch)
        except (BatchTooLarge, TooLarge):
            if batch.num_rows < 2:
                raise
        # Halves of a predicate's result can be joined again: BOOLEAN columns are small.
        middle = batch.num_rows // 2
        return pa.concat_arrays([holds(batch.slice(0, middle)), holds(batch.slice(middle))])

    return holds


def _located(evaluate: Evaluate, batch: pa.RecordBatch, fault: Fault, whole: Expression) -> PenstockError:
    """Return the error of the first row that faults. The search halves the batch."""
    while batch.num_rows > 1:
        half = batch.num_rows // 2
        head, tail = batch.slice(0, half), batch.slice(half)
        # The first row that faults is in the head if the head faults at all.
        head_fault = _fault_of(evaluate, head)
        # the halves shrink: all steps together evaluate at most twice the rows of the batch
        batch = tail if head_fault is None else head
        fault = head_fault or _fault_of(evaluate, tail) or fault
    return to_error(fault, whole, batch)


def _fault_of(evaluate: Evaluate, batch: pa.RecordBatch) -> Fault | None:
    try:
        evaluate(batch)
    except Fault as fault:
        return fault
    return None


def _compile(expression: Expression, context: EvaluationContext) -> Compiled:
    match expression:
        case Column():
            index = expression.index
            return Compiled(lambda rows: rows.column(index))
        # 42, 'text', DATE '2024-01-01': a constant, known at compile time.
        case Literal():
            return _constant(literal_scalar(expression))
        # CAST(x AS type), TRY_CAST; no kernel means that the type changes but the values do not.
        case Cast():
            arg = _compile(expression.arg, context)
            kernel = cast_kernel(expression.arg.type, expression.type, expression.safe, context.zone)
            return arg if kernel is None else _applied(expression, kernel, (arg,), True)
        # CASE WHEN .. THEN .. ELSE .. END: evaluation may skip branches, so operands stay closures.
        case Case():
            whens = tuple(
                (_compile(c, context).evaluate, _compile(v, context).evaluate) for c, v in expression.whens
            )
            default = _compile(expression.default, context).evaluate
            return Compiled(short_circuit.case(expression, whens, default))
        # a AND b AND c is one node of three operands: each can skip the rows decided by earlier ones.
        case Call(function="and" | "or"):
            parts = short_circuit.flattened(expression)
            return Compiled(
                short_circuit.connective(
                    expression.function, parts, tuple(_compile(part, context).evaluate for part in parts)
                )
            )
        # A Python function may have no column argument, so it needs the number of rows.
        case PythonCall():
            args = tuple(_compile(arg, context) for arg in expression.args)
            return _over_rows(expression, python_kernel(expression), args)
        # transform(a, x -> ..): the lambda's body is compiled as an expression over elements.
        case Call(function=function) if function in LAMBDA_KERNELS:
            return _with_functions(expression, context)
        case Call():
            return _call(expression, context)
        # A lambda's parameter is a column below zero: see ``Elements``.
        case LambdaVariable(number=number):
            return Compiled(lambda rows: rows.column(-1 - number))
    raise PenstockError(
        "INT-9002", f"cannot compile {type(expression).__name__}", kind=Kind.INTERNAL, sqlstate="XX000"
    )


def _with_functions(call: Call, context: EvaluationContext) -> Compiled:
    # arrays and start values are evaluated on the rows, lambdas on the elements
    values = [_compile(arg, context).evaluate for arg in call.args if not isinstance(arg, Lambda)]
    lambda_args = [arg for arg in call.args if isinstance(arg, Lambda)]
    bodies = [
        Body(
            tuple(p.number for p in one.parameters), _compile(one.body, context).evaluate, to_arrow(one.type)
        )
        for one in lambda_args
    ]
    evaluate = with_functions(call.function, values, bodies)

    def located(rows: Rows) -> Datum:
        try:
            return evaluate(rows)
        except Fault as fault:
            raise fault.within(call) from None

    return Compiled(located)


def _call(call: Call, context: EvaluationContext) -> Compiled:
    # CURRENT_TIMESTAMP reads the clock per batch, so it is never folded.
    if (now := CLOCK_FUNCTIONS.get(call.function)) is not None:
        return Compiled(lambda rows: now(context))
    args = tuple(_compile(arg, context) for arg in call.args)
    factory = KERNELS.get(call.function)
    if factory is None:
        raise PenstockError(
            "INT-9002", f"function {call.function} has no kernel", kind=Kind.INTERNAL, sqlstate="XX000"
        )
    try:
        kernel = factory(BoundCall(call, tuple(arg.constant for arg in args), context))
    # A bad constant argument, such as an invalid pattern, is an error at compile time.
    except Fault as fault:
        raise to_error(fault.within(call), call, None) from None
    return _applied(call, kernel, args, is_deterministic(call.function))


def _applied(expression: Expression, kernel: Kernel, args: tuple[Compiled, ...], foldable: bool) -> Compiled:
    """Return the node that runs a kernel over its operands. Constant operands are evaluated once."""
    run = _guarded(expression, kernel)
    constants = [arg.constant for arg in args]
    # 1 + 2 is computed once; a call that is not deterministic never is
    if foldable and all(constant is not None for constant in constants):
        return _folded(run, constants)
    evaluates = [arg.evaluate for arg in args]

    def evaluate(rows: Rows) -> Datum:
        data = [each(rows) for each in evaluates]
        # Only a run tells whether an operand that is not constant is one value for all rows.
        if any(
            constant is None and isinstance(datum, pa.Scalar)
            for datum, constant in zip(data, constants, strict=True)
        ):
            return _with_late_constants(run, data, constants)
        return run(*data)

    return Compiled(evaluate)


def _with_late_constants(run: Kernel, data: list[Datum], constants: list[pa.Scalar | None]) -> Datum:
    """Run a kernel over operands that turn out to be scalars at run time, such as the current time.

    Kernels were built for columns there, so each such scalar becomes a column. If no other operand is a
    column, the result is a scalar again.
    """
    length = next((len(datum) for datum in data if isinstance(datum, pa.Array)), None)
    columns = [
        repeated(datum, 1 if length is None else length)
        if constant is None and isinstance(datum, pa.Scalar)
        else datum
        for datum, constant in zip(data, constants, strict=True)
    ]
    result = run(*columns)
    return result[0] if length is None and isinstance(result, pa.Array) else result


def _over_rows(expression: Expression, kernel: RowsKernel, args: tuple[Compiled, ...]) -> Compiled:
    """Return the node of a kernel that needs the number of rows, even without column operands."""

    def evaluate(rows: Rows) -> Datum:
        try:
            return kernel(rows.num_rows, [arg.evaluate(rows) for arg in args])
        except Fault as fault:
            raise fault.within(expression) from None

    return Compiled(evaluate)


def _folded(run: Kernel, constants: list[pa.Scalar | None]) -> Compiled:
    """Compute a constant at compile time. If that faults, compute it per batch, so that it only faults on
    rows.
    """

    def evaluate(rows: Rows) -> Datum:
        result = run(*[pa.repeat(constant, 1) for constant in constants])
        return result[0] if isinstance(result, pa.Array) else result

    try:
        # Constants read no column, so an empty batch will do.
        value = evaluate(pa.RecordBatch.from_arrays([], names=[]))
    except Fault:
        return Compiled(evaluate)
    return _constant(value)


def _guarded(expression: Expression, kernel: Kernel) -> Kernel:
    def run(*data: Datum) -> Datum:
        try:
            return kernel(*data)
        except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
            raise from_arrow(error, expression) from None
        # texts that a compiled loop wrote do not fit into one array
        except TooLarge:
            raise over_capacity().within(expression) from None
        except MemoryError:
            raise out_of_memory(expression) from None
        except Fault as fault:
            raise fault.within(expression) from None

    return run


def _constant(value: pa.Scalar) -> Compiled:
    return Compiled(lambda rows: value, value)


def literal_scalar(literal: Literal) -> pa.Scalar:
    """Return a literal as an Arrow scalar of its type. Raise INT-9002 for a year-month interval that is no
    number of months.
    """
    value = literal.value
    if isinstance(literal.type, YearMonthInterval) and isinstance(value, timedelta):
        raise PenstockError(
            "INT-9002", "a year-month interval counts months", kind=Kind.INTERNAL, sqlstate="XX000"
        )
    return scalar_of(value, to_arrow(literal.type))
