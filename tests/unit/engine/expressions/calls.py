"""Build typed calls over named test columns and run them, as the binder and an operator would."""

from __future__ import annotations

import pyarrow as pa

from penstock.catalog.functions.registry import resolve
from penstock.catalog.types import DataType, from_arrow, to_arrow
from penstock.engine.expressions import EvaluationContext, compile_expression
from penstock.planner.expressions.nodes import Call, Cast, Column, Expression, Literal


def lit(value: object, kind: DataType) -> Literal:
    return Literal(kind, value is None, value=value)


def col(batch: pa.RecordBatch, name: str, kind: DataType | None = None) -> Column:
    index = batch.schema.get_field_index(name)
    return Column(kind or from_arrow(batch.schema.field(index).type), True, index=index, name=name)


def cast(arg: Expression, kind: DataType, safe: bool = False) -> Expression:
    return arg if arg.type == kind and not safe else Cast(kind, arg.nullable or safe, arg=arg, safe=safe)


def call(name: str, *args: Expression) -> Call:
    signature = resolve(name, args)
    coerced = tuple(cast(arg, kind) for arg, kind in zip(args, signature.arg_types, strict=True))
    nullable = any(arg.nullable for arg in args) if signature.nullable is None else signature.nullable
    return Call(signature.result, nullable, function=signature.canonical, args=coerced)


def run(expression: Expression, batch: pa.RecordBatch, zone: str = "UTC") -> pa.Array:
    result = compile_expression(expression, EvaluationContext(zone))(batch)
    assert result.type == to_arrow(expression.type), (result.type, expression.type)
    assert len(result) == batch.num_rows
    return result


def values(name: str, *columns: list | tuple, kinds: tuple[DataType, ...]) -> list:
    """Call a function over columns given as lists."""
    arrays = [pa.array(column, to_arrow(kind)) for column, kind in zip(columns, kinds, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])
    return run(call(name, *[col(batch, f"c{i}", kind) for i, kind in enumerate(kinds)]), batch).to_pylist()
