"""FOR SYSTEM_TIME AS OF: a join with the row version at an event time, or with a table as of processing time.
It also derives which inputs are versioned tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Role
from penstock.catalog.types import INT, DataType
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.scope import Scope
from penstock.planner.expressions.nodes import Call, Cast, Column, Expression, Literal, expression_role
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.over import Over
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan, bounded
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.parser.syntax_nodes import AsOf, span_of


@dataclass(frozen=True)
class Versions:
    """A plan whose rows are versions, with column positions: ``keys`` identify the row, ``time`` is when the
    version begins, ``ties`` order versions of equal time.

    The plan may have columns behind those of its relation.
    """

    plan: LogicalPlan
    keys: tuple[int, ...]
    time: int
    ties: tuple[int, ...]


def versions_of(plan: LogicalPlan) -> Versions | None:
    """Return a plan as row versions, or None when it has none.

    Versions are a table with a primary key and a watermark, or a deduplication that keeps the last row per
    key by event time. Every input row of the deduplication is a version. Projections and filters may be above
    both.
    """
    match plan:
        # A projection passes versions on, with key, time and ties appended where it drops them.
        case Project():
            return _projected(plan)
        # rank = 1 above ROW_NUMBER() is the deduplication; any other filter filters versions.
        case Filter(input=inner, predicate=predicate):
            deduplicated = _before_deduplication(inner, predicate)
            if deduplicated is not None:
                return deduplicated
            below = versions_of(inner)
            return None if below is None else replace(below, plan=Filter(below.plan, predicate))
        # A table with a PRIMARY KEY and a WATERMARK
        case WatermarkAssign():
            return _of_table(plan)
    return None


def _projected(plan: Project) -> Versions | None:
    below = versions_of(plan.input)
    return None if below is None else _through(below, plan)


def _through(below: Versions, plan: Project) -> Versions:
    """Return versions under a projection. Key, time and tie columns that it drops are appended behind its own
    columns.
    """
    expressions, names = list(plan.expressions), list(plan.names)
    positions = {e.index: i for i, e in reversed(list(enumerate(expressions))) if isinstance(e, Column)}
    for index in (*below.keys, below.time, *below.ties):
        # SELECT rate FROM versions: key and time are needed although the view drops them
        if index not in positions:
            field = below.plan.schema[index]
            positions[index] = len(expressions)
            expressions.append(Column(field.type, field.nullable, index=index, name=field.name))
            names.append(field.name)
    moved = Project(below.plan, tuple(expressions), tuple(names))
    return Versions(
        moved,
        tuple(positions[key] for key in below.keys),
        positions[below.time],
        tuple(positions[tie] for tie in below.ties),
    )


def _of_table(plan: WatermarkAssign) -> Versions | None:
    scan = next((node for node in plan.walk() if isinstance(node, Scan)), None)
    if scan is None or not scan.table.primary_key:
        return None
    keys = [plan.schema.index_of(name) for name in scan.table.primary_key]
    # A key column that the scan does not read cannot identify a version.
    known = tuple(key for key in keys if key is not None)
    return (
        Versions(plan, known, plan.time_column, tuple(range(len(plan.schema))))
        if len(known) == len(keys)
        else None
    )


def _before_deduplication(plan: LogicalPlan, predicate: Expression) -> Versions | None:
    """Return the versions beneath a filter on ``ROW_NUMBER() OVER (PARTITION BY .. ORDER BY time DESC) = 1``,
    or None.
    """
    # WHERE n = 1, or n <= 1
    rank = _first_by(predicate)
    if rank is None:
        return None
    projections: list[Project] = []
    # Follow the rank column down through projections to the OVER node.
    while isinstance(plan, Project):
        expression = plan.expressions[rank]
        if not isinstance(expression, Column):
            return None
        rank = expression.index
        projections.append(plan)
        plan = plan.input
    # the rank is the first column that OVER appends
    if not isinstance(plan, Over) or rank != len(plan.input.schema) or not _keeps_last(plan):
        return None
    versioned = Versions(
        _numbered_one(plan), plan.partition, plan.time_column, tuple(range(len(plan.input.schema)))
    )
    # Apply the skipped projections to the versions again, innermost first.
    for project in reversed(projections):
        versioned = _through(versioned, project)
    return versioned


def _first_by(predicate: Expression) -> int | None:
    """Return the column that a predicate requires to be 1, or None."""
    if (
        not isinstance(predicate, Call)
        or predicate.function not in ("equal", "less_equal")
        or len(predicate.args) != 2
    ):
        return None
    # The literal may have been cast to the rank's type, or the rank to the literal's.
    rank, one = (arg.arg if isinstance(arg, Cast) else arg for arg in predicate.args)
    return rank.index if isinstance(rank, Column) and isinstance(one, Literal) and one.value == 1 else None


def _keeps_last(over: Over) -> bool:
    if (
        [call.function for call in over.calls] != ["row_number"]
        or len(over.order) != 1
        or not over.order[0].descending
    ):
        return False
    timed = over.time_column >= 0 and over.input.schema[over.time_column].is_event_time
    # A regular join emits rows after their event time, so its versions would be out of order.
    return timed and not any(type(node) is Join for node in over.input.walk())


def _numbered_one(over: Over) -> LogicalPlan:
    fields: Sequence = over.input.schema.fields
    columns = [Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(fields)]
    # Every input row is a version, so the rank column is the constant 1.
    one = Literal(INT, False, value=1)
    return Project(over.input, (*columns, one), (*(f.name for f in fields), over.names[0]))


_KINDS = (JoinKind.INNER, JoinKind.LEFT)
Keys = Sequence[tuple[Expression, Expression]]


def as_of_column(
    tree: AsOf, scope: Scope, right: LogicalPlan, kind: JoinKind, context: BindContext
) -> Column | None:
    """Return the event-time column a temporal join reads as of. Return None for a processing time: the right
    side is then looked up.

    Raises SQL-1721 for a join other than INNER and LEFT. Raises SQL-1722 for an expression that is no time
    attribute of the left side, SQL-1723 for a stream as of processing time.
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
    # FOR SYSTEM_TIME AS OF o.ts: roles are in the scope, because FROM may have dropped them
    matches = [column for column in scope.columns if isinstance(time, Column) and column.index == time.index]
    if matches and matches[0].field.is_event_time:
        assert isinstance(time, Column)
        return time
    # FOR SYSTEM_TIME AS OF PROCTIME(), or of a column that is one
    if expression_role(time) is Role.PROCESSING_TIME or (
        matches and matches[0].field.role is Role.PROCESSING_TIME
    ):
        _refuse_stream(right, tree)
        return None
    # The error suggests the left side's time attributes.
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
    """Return the right side as versions. Raises SQL-1724 for a table that has none, SQL-1727 when the two
    times differ in type.
    """
    versioned = versions_of(right)
    if versioned is None:
        message = "this is no versioned table"
        hint = (
            "declare a PRIMARY KEY and a WATERMARK, or join a view that keeps the last row of each "
            "key: ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts"
            " DESC) = 1"
        )
        raise PenstockError("SQL-1724", message, span=span_of(tree.this), hint=hint, sqlstate="42809")
    theirs = versioned.plan.schema[versioned.time]
    # TIMESTAMP and TIMESTAMP_LTZ are not compared: their difference depends on the zone
    if type(theirs.type) is not type(kind):
        message = f"the versions have times of type {theirs.type}, the left side is of {kind}"
        hint = f"declare {theirs.name} and the left time alike, both TIMESTAMP or both TIMESTAMP_LTZ"
        raise PenstockError("SQL-1727", message, span=span_of(tree.expression), hint=hint, sqlstate="42804")
    return versioned


def split_keys(pairs: Keys, of_version: Versions, tree: AsOf) -> tuple[list[int], list[int]]:
    """Return the equalities on the versions' key, in key order, and the other equalities, both by index.
    Raises SQL-1725 for a key column without an equality.
    """
    # INT = BIGINT casts one side; the column beneath the cast is still the key.
    rights = [right.arg if isinstance(right, Cast) else right for _, right in pairs]
    pair_of = {right.index: i for i, right in reversed(list(enumerate(rights))) if isinstance(right, Column)}
    # on part of the key several rows are valid at one time
    missing = [of_version.plan.schema[key].name for key in of_version.keys if key not in pair_of]
    if missing:
        message = (
            f"a temporal join compares the whole key of the versioned table; {', '.join(missing)} is missing"
        )
        raise PenstockError(
            "SQL-1725", message, span=span_of(tree), hint=f"add AND .. = {missing[0]} to ON", sqlstate="42809"
        )
    keyed = [pair_of[key] for key in of_version.keys]
    return keyed, [i for i in range(len(pairs)) if i not in keyed]
