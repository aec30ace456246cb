"""Access to fields of rows and elements of arrays and maps, and the field names of constructed rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.coercion import is_orderable
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.types import INT, STRING, Array, Map, Row, Variant
from penstock.planner.expressions.nodes import Call, Caller, Expression, Literal
from penstock.planner.parser.syntax_nodes import Reference, span_of


def field_of(base: Expression, name: exp.Expr, span: Span | None) -> Expression:
    """Return a field of a row by its name, ignoring case. Raises SQL-1110 for an unknown field, SQL-1108 for
    a value that is no row.
    """
    kind = base.type
    # a.x of an array, map or plain value
    if not isinstance(kind, Row):
        hint = (
            "elements are read by a[1] and m['key']"
            if isinstance(kind, Array | Map)
            else f"write v:{name.name}, or v['{name.name}']"
            if isinstance(kind, Variant)
            else "a dot reads a field of a ROW"
        )
        raise PenstockError(
            "SQL-1108",
            f'{kind} has no field "{name.name}"',
            span=span_of(name) or span,
            hint=hint,
            sqlstate="42809",
        )
    names = [field for field, _ in kind.fields]
    matches = [i for i, field in enumerate(names) if field.lower() == name.name.lower()]
    # No such field, or two that differ in case only
    if len(matches) != 1:
        many = "no" if not matches else f"{len(matches)}"
        message = f'the row has {many} field{"s" if matches else ""} "{name.name}"'
        near = did_you_mean(name.name, names, others=True)
        raise PenstockError("SQL-1110", message, span=span_of(name) or span, hint=near, sqlstate="42703")
    # the plan has the field's position; digests use its name, so that fields may come and go
    position = Literal(INT, False, value=matches[0])
    return Call(kind.fields[matches[0]][1], True, function="field", args=(base, position), span=span)


def row_fields(row: Expression, name: exp.Expr, hidden: Sequence[exp.Expr]) -> list[tuple[str, Expression]]:
    """Return all fields of a row by name, for ``r.*``. Every name in ``hidden`` (EXCEPT) must be
    one of them.
    """
    if not isinstance(row.type, Row):
        hint = "a star follows a table or a ROW"
        raise PenstockError(
            "SQL-1108", f"{row.type} has no fields", span=span_of(name), hint=hint, sqlstate="42809"
        )
    # r.* EXCEPT (x): field_of refuses an x that r does not have
    for other in hidden:
        field_of(row, other, row.span)
    return [(field, field_of(row, exp.to_identifier(field), row.span)) for field, _ in row.type.fields]


def element_of(base: Expression, index: Expression, call: Caller, span: Span | None) -> Expression:
    """Return ``a[i]`` or ``m[key]``. Raises SQL-1108 for a value without elements, SQL-1109 for a constant
    position below 1.
    """
    if isinstance(base.type, Variant):
        return _variant_part(base, index, call, span)
    # x[1] of a row or plain value
    if not isinstance(base.type, Array | Map):
        hint = (
            "a field of a row is read by row.name"
            if isinstance(base.type, Row)
            else "elements are read of an ARRAY or a MAP"
        )
        raise PenstockError(
            "SQL-1108", f"{base.type} has no elements", span=span, hint=hint, sqlstate="42809"
        )
    if isinstance(base.type, Array):
        hint = "a[1] is the first element; element_at(a, -1) is the last one, get(a, 0) counts from 0"
        _refuse_below_one(index, hint, span)
    return call("element", [base, index], span)


def _refuse_below_one(index: Expression, hint: str, span: Span | None) -> None:
    if isinstance(index, Literal) and isinstance(index.value, int) and index.value < 1:
        raise PenstockError(
            "SQL-1109",
            "elements of an array count from 1",
            span=index.span or span,
            hint=hint,
            sqlstate="2202E",
        )


def _variant_part(base: Expression, index: Expression, call: Caller, span: Span | None) -> Expression:
    """Return ``v['name']`` or ``v[1]`` of a VARIANT. As in Flink, elements count from 1 here, and from 0 in
    paths.
    """
    if not isinstance(index, Literal) or not isinstance(index.value, str | int):
        raise PenstockError(
            "SQL-1108",
            "a part of a VARIANT is read by a constant name or position",
            span=index.span or span,
            hint="CAST(v AS MAP<STRING, VARIANT>)[k] reads a name of a column, CAST(v AS ARRAY<VARIANT>)[i] "
            "a position",
            sqlstate="42809",
        )
    _refuse_below_one(index, "v[1] is the first element; v:[0] counts from 0", span)
    step = f"[{index.value - 1}]" if isinstance(index.value, int) else _quoted_step(index.value)
    return call("variant_at", [base, Literal(STRING, False, value="$" + step, span=index.span)], span)


def _quoted_step(name: str) -> str:
    """Return the step of a path that names a field."""
    quote = '"' if "'" in name else "'"
    return f"[{quote}{name}{quote}]"


def with_field_names(row: Expression, args: Sequence[exp.Expr]) -> Expression:
    """Return ``struct(..)`` with fields named after its columns; other fields are col1, col2, ..
    by position.
    """
    assert isinstance(row.type, Row)
    names = [_name(arg) or f"col{i}" for i, arg in enumerate(args, 1)]
    # struct(a.x, b.x): names would be ambiguous, so all fields are named by position.
    if len({name.lower() for name in names}) < len(names):
        names = [f"col{i}" for i in range(1, len(names) + 1)]
    return replace(
        row, type=Row(tuple((name, kind) for name, (_, kind) in zip(names, row.type.fields, strict=True)))
    )


def _name(arg: exp.Expr) -> str | None:
    # struct(a + 1 AS b): field b
    if isinstance(arg, exp.Alias):
        return arg.args["alias"].name
    # struct(t.a): field a
    if isinstance(arg, Reference):
        return arg.expressions[-1].name
    return arg.args["expression"].name if isinstance(arg, exp.Dot) else None


def orderable(expression: Expression, tree: exp.Expr) -> Expression:
    """Return a sort expression; raise SQL-1112 for a type without an order."""
    if not is_orderable(expression.type):
        hint = "order by a value in it, as m['key'], or by size(m)"
        if isinstance(expression.type, Variant):
            hint = "order by a value in it, as v:name::INT"
        raise PenstockError(
            "SQL-1112", f"{expression.type} has no order", span=span_of(tree), hint=hint, sqlstate="42883"
        )
    return expression
