"""FOR SYSTEM_TIME AS OF: joins with the version of a row that was in force at a time, or with a table as
it is when a row passes.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Role
from penstock.catalog.types import DataType
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.relations.tables import bounded
from penstock.planner.binder.relations.versioned_tables import Versions, versions_of
from penstock.planner.binder.scope import Scope
from penstock.planner.expressions.nodes import Cast, Column, Expression, expression_role
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.parser.syntax_nodes import AsOf, span_of

_KINDS = (JoinKind.INNER, JoinKind.LEFT)
Keys = Sequence[tuple[Expression, Expression]]


def as_of_column(
    tree: AsOf, scope: Scope, right: LogicalPlan, kind: JoinKind, context: BindContext
) -> Column | None:
    """Return the event time a join is made as of; None for a processing time, when the right side is looked
    up as it is.

    Raises SQL-1721 for another kind than INNER and LEFT, SQL-1722 for what is no time attribute of the left
    side, SQL-1723 for a stream as of processing time.
    """
    if kind not in _KINDS:
        message = f"FOR SYSTEM_TIME AS OF goes with JOIN and LEFT JOIN, this is a {kind.value.upper()} join"
        raise PenstockError(
            "SQL-1721",
            message,
            span=span_of(tree),
            hint="write JOIN or LEFT JOIN, the versioned table on the right",
            sqlstate="0A000",
        )
    time = ExpressionBinder(scope, context, "FOR SYSTEM_TIME AS OF").bind(tree.expression)
    found = [column for column in scope.columns if isinstance(time, Column) and column.index == time.index]
    if found and found[0].field.is_event_time:
        assert isinstance(time, Column)
        return time
    if expression_role(time) is Role.PROCESSING_TIME or (
        found and found[0].field.role is Role.PROCESSING_TIME
    ):
        _refuse_stream(right, tree)
        return None
    usable = [
        column
        for column in scope.columns
        if column.field.is_event_time or column.field.role is Role.PROCESSING_TIME
    ]
    names = [
        column.field.name if column.table is None else f"{column.table}.{column.field.name}"
        for column in usable
    ]
    hint = (
        f"write FOR SYSTEM_TIME AS OF {names[0]}"
        if names
        else "declare a WATERMARK FOR a column of the left table; a join of two streams ends its time"
    )
    message = "FOR SYSTEM_TIME AS OF takes a time attribute of the left side"
    raise PenstockError("SQL-1722", message, span=span_of(tree.expression), hint=hint, sqlstate="42804")


def _refuse_stream(right: LogicalPlan, tree: AsOf) -> None:
    if not bounded(right):
        message = "a stream cannot be looked up as of processing time"
        hint = "write FOR SYSTEM_TIME AS OF an event-time column of the left side, or look up a bounded table"
        raise PenstockError("SQL-1723", message, span=span_of(tree.this), hint=hint, sqlstate="0A000")


def versions(tree: AsOf, right: LogicalPlan, kind: DataType) -> Versions:
    """Return the right side as versions; raise SQL-1724 for a table that has none, and SQL-1727 when their
    times are of another kind.
    """
    found = versions_of(right)
    if found is None:
        message = "this is no versioned table"
        hint = (
            "declare a PRIMARY KEY and a WATERMARK, or join a view that keeps the last row of each "
            "key: ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts"
            " DESC) = 1"
        )
        raise PenstockError("SQL-1724", message, span=span_of(tree.this), hint=hint, sqlstate="42809")
    theirs = found.plan.schema[found.time]
    if type(theirs.type) is not type(kind):
        message = f"the versions have times of type {theirs.type}, the left side is of {kind}"
        hint = f"declare {theirs.name} and the left time alike, both TIMESTAMP or both TIMESTAMP_LTZ"
        raise PenstockError("SQL-1727", message, span=span_of(tree.expression), hint=hint, sqlstate="42804")
    return found


def split_keys(pairs: Keys, of_version: Versions, tree: AsOf) -> tuple[list[int], list[int]]:
    """Return which equalities name the key of the versions, in its order, and the others; raise SQL-1725
    where some key column has none.
    """
    rights = [right.arg if isinstance(right, Cast) else right for _, right in pairs]
    places = {right.index: i for i, right in reversed(list(enumerate(rights))) if isinstance(right, Column)}
    missing = [of_version.plan.schema[key].name for key in of_version.keys if key not in places]
    if missing:
        message = (
            f"a temporal join compares the whole key of the versioned table; {', '.join(missing)} is missing"
        )
        raise PenstockError(
            "SQL-1725", message, span=span_of(tree), hint=f"add AND .. = {missing[0]} to ON", sqlstate="42809"
        )
    keyed = [places[key] for key in of_version.keys]
    return keyed, [i for i in range(len(pairs)) if i not in keyed]
