"""LATE ROWS INTO: rows that arrive too late for the query's window are written to a second table by the same
job.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.connectors.registry import connector_of
from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.tables import CatalogTable
from penstock.planner.binder.ddl.insert import storable
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import Column, Expression, Literal
from penstock.planner.logical.aggregate import WindowAggregate
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.sink import Sink, StatementSet
from penstock.planner.logical.window_table import LateMark, WindowTable, late_part, timely_part
from penstock.planner.logical.windows import window_functions_text
from penstock.planner.parser.syntax_nodes import span_of


def refuse_late_rows(tree: exp.Expr) -> None:
    """Refuse LATE ROWS INTO outside of INSERT; SQL-1712."""
    clause = tree.args.get("late_rows")
    if clause is not None:
        hint = "write INSERT INTO .. SELECT .. LATE ROWS INTO .."
        raise PenstockError(
            "SQL-1712",
            "LATE ROWS INTO is the last clause of an INSERT",
            span=span_of(clause),
            hint=hint,
            sqlstate="42601",
        )


def with_late_rows(sink: Sink, table: CatalogTable, clause: exp.Expr) -> StatementSet:
    """Return the INSERT's sink and a second one that writes the rows late for its window.

    Raises SQL-1712 unless the query has exactly one window. For the late table it raises SQL-1094 and
    SQL-1042.
    """
    # By identity: a shared subplan is walked several times but is one window.
    windows = {id(node): node for node in sink.walk() if isinstance(node, WindowTable) and node.closes}
    if len(windows) != 1:
        count = "none" if not windows else str(len(windows))
        hint = f"the query reads rows through one window function, {window_functions_text('or')}"
        raise PenstockError(
            "SQL-1712",
            f"LATE ROWS INTO needs exactly one window, here are {count}",
            span=span_of(clause),
            hint=hint,
            sqlstate="0A000",
        )
    (window,) = windows.values()
    # A row is late when it misses the window with its allowed lateness (EMIT .. WITH LATENESS).
    lateness_us = max(
        (node.emission.lateness_us for node in sink.walk() if isinstance(node, WindowAggregate)), default=0
    )
    # the mark appends three columns: late, window_end, watermark
    marked = LateMark(window.input, window.window, lateness_us)
    # The input is marked once: timely rows go on to the window, late ones to the second sink.
    timely = _first_columns(timely_part(marked), len(window.input.schema))
    main_sink = sink.transform(lambda node: WindowTable(timely, window.window) if node is window else node)
    assert isinstance(main_sink, Sink)
    return StatementSet((main_sink, _late_sink(marked, table, clause)))


def _first_columns(plan: LogicalPlan, count: int) -> LogicalPlan:
    fields = plan.schema.fields[:count]
    columns = tuple(
        Column(field.type, field.nullable, index=i, name=field.name) for i, field in enumerate(fields)
    )
    return Project(plan, columns, tuple(field.name for field in fields))


def _late_sink(marked: LateMark, table: CatalogTable, clause: exp.Expr) -> Sink:
    """Return the sink of the late rows. By name, its columns are the window's input columns, ``window_end``
    and ``watermark``; nullable columns of other names are NULL.
    """
    span = span_of(clause)
    if not connector_of(table).sink:
        message = f'table "{table.name}" cannot be written: connector {table.connector} is a source only'
        raise PenstockError(
            "SQL-1094",
            message,
            span=span,
            hint="write to a table whose connector takes rows",
            sqlstate="42809",
        )
    # Reversed, so that the first of two columns of one name wins.
    positions = {field.name.lower(): i for i, field in reversed(list(enumerate(marked.schema)))}
    # it is TRUE for every row of this table
    del positions["late"]
    expressions: list[Expression] = []
    for field in table.physical_fields:
        index = positions.get(field.name.lower())
        # a NOT NULL column that late rows do not have
        if index is None and not field.nullable:
            raise PenstockError(
                "SQL-1042",
                f'late rows have no column "{field.name}"',
                span=span,
                hint=did_you_mean(field.name, positions, others=True),
            )
        if index is None:
            expressions.append(Literal(field.type, True, value=None))
            continue
        source = marked.schema[index]
        if not storable(source.type, field.type):
            message = (
                f'column "{field.name}" of {table.name} is {field.type}, the late rows have {source.type}'
            )
            raise PenstockError(
                "SQL-1092", message, span=span, hint=f"declare it as {source.type}", sqlstate="42804"
            )
        expressions.append(
            coerced(Column(source.type, source.nullable, index=index, name=source.name), field.type)
        )
    # A table that would only receive NULLs is a mistake.
    if all(isinstance(expression, Literal) for expression in expressions):
        hint = f"late rows have the columns {', '.join(positions)}"
        raise PenstockError(
            "SQL-1042",
            f"table {table.name} has no column of the late rows",
            span=span,
            hint=hint,
            sqlstate="42703",
        )
    return Sink(
        Project(late_part(marked), tuple(expressions), tuple(field.name for field in table.physical_fields)),
        table,
    )
