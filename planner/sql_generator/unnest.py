"""UNNEST as SQL: the elements of arrays and maps as rows."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from penstock.catalog.types import BIGINT, INT, Array, DataType, Map, Row
from penstock.planner.expressions.nodes import Call, Column, Literal
from penstock.planner.logical.unnest import Unnest
from penstock.planner.sql_generator.dialect import Flavour, binary, cast, function, integer
from penstock.planner.sql_generator.expressions import expression_sql
from penstock.planner.sql_generator.windows import aliased, column, named


def unnest_select(plan: Unnest, source: str, flavour: Flavour, add: Callable[[exp.Expr], str]) -> exp.Expr:
    """Return the select of an Unnest over a CTE. ``add`` appends the CTE of input rows with each element
    ``v`` and its index ``p`` from 0.
    """
    arg, kind = plan.call.args[0], plan.call.args[0].type
    array = expression_sql(arg, column, flavour)
    # UNNEST(map) is UNNEST of its entries
    if isinstance(kind, Map):
        array, kind = function("map_entries", array), Array(Row((("key", kind.key), ("value", kind.value))))
    assert isinstance(kind, Array)
    kept = [exp.alias_(column(old), f"c{new}") for new, old in enumerate(plan.keep)]
    exploded = add(exp.select(*kept, *flavour.explode_array(array, plan.outer)).from_(aliased(source)))
    given = _columns(plan, kind.element, flavour)
    items = [column(i) for i in range(len(plan.keep))] + [given[i] for i in plan.gives]
    if plan.ordinality:
        items.append(cast(binary(exp.Add, named("p"), integer(1)), flavour.kind(BIGINT)))
    return exp.select(*(exp.alias_(item, f"c{i}") for i, item in enumerate(items))).from_(aliased(exploded))


def _columns(plan: Unnest, element: DataType, flavour: Flavour) -> list[exp.Expr]:
    """All output columns of the function, read or not."""
    as_fields = plan.call.function == "unnest" or isinstance(plan.call.args[0].type, Map)
    values: list[exp.Expr] = [named("v")]
    if as_fields and isinstance(element, Row):
        values = [_field(element, i, flavour) for i in range(len(element.fields))]
    return [named("p"), *values] if plan.call.function == "posexplode" else values


def _field(row: Row, position: int, flavour: Flavour) -> exp.Expr:
    call = Call(
        row.fields[position][1],
        True,
        function="field",
        args=(Column(row, True), Literal(INT, False, value=position)),
    )
    return flavour.spell(call, [named("v"), integer(position)])
