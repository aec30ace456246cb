"""UNNEST, LATERAL TABLE, LATERAL VIEW: table functions in FROM, which read columns of the relations before
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.functions.table import resolve_table
from penstock.catalog.functions.type_rules import Operand
from penstock.catalog.process_table_functions import PythonProcessTable
from penstock.catalog.python_functions import PythonTable
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.json import tuple_fields
from penstock.planner.binder.scope import Scope, ScopeColumn
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import TRUE, Expression, Literal
from penstock.planner.expressions.python_calls import arguments
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.unnest import TableCall, Unnest
from penstock.planner.logical.windows import WINDOW_FUNCTIONS
from penstock.planner.parser.syntax_nodes import TableFunctionCall, consume, span_of


def bind_table_function(
    plan: LogicalPlan, scope: Scope, tree: TableFunctionCall, context: BindContext, outer: bool
) -> tuple[LogicalPlan, Scope]:
    """Return the input joined to a table function's rows, and the scope of the function's columns over that
    plan. ``scope`` is the scope of its arguments.
    """
    consume(tree, "this", "expressions", "alias", "ordinality", "outer")
    span = span_of(tree)
    binder = ExpressionBinder(scope, context, "the arguments of a table function")
    args = [binder.bind(arg) for arg in tree.expressions]
    python = context.catalog.functions.find(str(tree.this), span)
    # A registered Python function shadows a built-in one.
    if isinstance(python, PythonTable):
        return _python_table(plan, tree, python, args, outer)
    if isinstance(python, PythonProcessTable):
        message = f"{tree.this} takes tables, and is called without one"
        hint = f"write FROM {python.usage}"
        raise PenstockError("SQL-1107", message, span=span, hint=hint, sqlstate="42809")
    # the result columns depend on the types: explode(MAP) gives key and value
    signature = resolve_table(str(tree.this), [_operand(arg) for arg in args], span, tuple(WINDOW_FUNCTIONS))
    typed = tuple(coerced(arg, kind) for arg, kind in zip(args, signature.arg_types, strict=True))
    # json_tuple(text, 'a', 'b') runs as stack(1, get_json_object(..), ..).
    if signature.function.name == "json_tuple":
        typed = tuple_fields(typed, binder.call, span)
    call = TableCall(signature.function.runs, typed, signature.columns)
    return _beside(plan, tree, call, outer or signature.function.outer or bool(tree.args.get("outer")))


def _python_table(
    plan: LogicalPlan, tree: TableFunctionCall, function: PythonTable, args: Sequence[Expression], outer: bool
) -> tuple[LogicalPlan, Scope]:
    # f() reads nothing; the constant tells how many rows call it
    typed = arguments(function, args, span_of(tree)) or (TRUE,)
    call = TableCall(function.name.lower(), typed, function.result.fields, function)
    return _beside(plan, tree, call, outer or bool(tree.args.get("outer")))


def _beside(
    plan: LogicalPlan, tree: TableFunctionCall, call: TableCall, outer: bool
) -> tuple[LogicalPlan, Scope]:
    """Return the Unnest node of a call and the scope of its columns, renamed by the alias."""
    count, ordinality = (
        len(call.columns),
        [Field("ordinality", BIGINT, False)] if tree.args.get("ordinality") else [],
    )
    name, shown = _named([*call.columns, *ordinality], tree)
    width = len(plan.schema)
    call = replace(call, columns=tuple(shown[:count]))
    # all columns at first; prune_columns drops what nobody reads
    node = Unnest(plan, call, tuple(range(width)), tuple(range(count)), outer, bool(ordinality))
    fields = [replace(field, nullable=field.nullable or outer) for field in shown]
    return node, Scope(tuple(ScopeColumn(width + i, field, name) for i, field in enumerate(fields)))


def _operand(arg: Expression) -> Operand:
    return Operand(arg.type, isinstance(arg, Literal), arg.value if isinstance(arg, Literal) else None)


def _named(columns: Sequence[Field], tree: TableFunctionCall) -> tuple[str | None, list[Field]]:
    """Return the table alias and the renamed columns. A function's only column has the name of the alias
    itself.
    """
    alias = tree.args.get("alias")
    if alias is None:
        return None, list(columns)
    names: list[exp.Identifier] = alias.args.get("columns") or []
    if not names:
        # UNNEST(a) AS x: x names the table and its column.
        single = len(columns) == 1 and columns[0].name in ("col", "value", "id")
        return alias.this.name, [columns[0].renamed(alias.this.name)] if single else list(columns)
    if len(names) != len(columns):
        message = (
            f"{len(names)} column name{'s are' if len(names) != 1 else ' is'} given for {len(columns)} "
            f"column{'s' if len(columns) != 1 else ''}"
        )
        hint = f"the columns are {', '.join(field.name for field in columns)}"
        raise PenstockError("SQL-1046", message, span=span_of(alias), hint=hint, sqlstate="42P10")
    seen: set[str] = set()
    for column in names:
        if column.name.lower() in seen:
            raise PenstockError(
                "SQL-1045",
                f'column name "{column.name}" is given twice',
                span=span_of(column),
                sqlstate="42701",
            )
        seen.add(column.name.lower())
    return alias.this.name, [field.renamed(column.name) for field, column in zip(columns, names, strict=True)]
