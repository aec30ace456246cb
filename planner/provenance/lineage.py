"""Lineage: which rows of each scan made the rows of a plan that meet a condition. The plan is rewritten
backwards, node by node, from the result to its scans.

For every operator the lineage is what the definition of Cui and Widom gives: filters and projections pass a
row on, a group is made by all its rows, a pair by both its rows, a rank by the rows before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import BIGINT, BOOLEAN, INT
from penstock.planner.expressions.expression_properties import CLOCK_FUNCTIONS, is_deterministic
from penstock.planner.expressions.nodes import (
    AggregateCall,
    Call,
    Column,
    Expression,
    Literal,
    conjunction,
    conjuncts,
)
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.changelog_normalize import ChangelogNormalize
from penstock.planner.logical.emit import Emit
from penstock.planner.logical.joins.join import BinaryJoin, JoinKind
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.match_recognize import Fact, MatchFact, MatchRecognize
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.process_table import ProcessTable
from penstock.planner.logical.projection import Filter, Project, column_of, select_columns
from penstock.planner.logical.recursive_query import RecursiveQuery
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.set_operations import Repeat, Union
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import Limit, Sort, TemporalSort, TopN
from penstock.planner.logical.time_attributes import ProcessingTime, WatermarkAssign
from penstock.planner.logical.unnest import Unnest
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import AttachedWindow
from penstock.planner.provenance.frames import rows_of_frames, rows_up_to_rank
from penstock.planner.provenance.late_rows import LateFilter, SplitWatermarks
from penstock.planner.provenance.read_rows import ReadRows
from penstock.planner.provenance.recursion import DerivedRows, ancestors, one_step
from penstock.planner.provenance.restrictions import (
    Restriction,
    Restrictions,
    field_column,
    moved,
    no_lineage,
    restrict,
    rows_like,
    same_rows,
    split_by_columns,
    widened,
)

Leaf = tuple[Scan | Values, Restrictions]
"""A leaf of a plan, and which of its rows belong to the lineage."""

PASSING = (Sink, Emit, WatermarkAssign, Sort, TemporalSort, ProcessingTime, Limit, ChangelogNormalize)
"""Nodes that pass rows on as they are, or drop some."""


def trace_lineage(plan: LogicalPlan, restrictions: Restrictions) -> list[Leaf]:
    """Return the leaves of a bound plan with the restrictions to the rows that made those rows of the plan
    that meet ``restrictions``. A table that is read twice is there twice.

    Raises WHY-7101 for a plan whose rows differ from run to run, WHY-7102 for an operator without a lineage.
    """
    for node in plan.walk():
        node.map_expressions(_check_deterministic)
        if node.unsteady_function is not None:
            raise _not_repeatable(node.unsteady_function, None)
    return list(_trace(plan, restrictions))


def _check_deterministic(expression: Expression) -> Expression:
    if not is_deterministic(expression.transform(_without_clock)):
        raise _not_repeatable(str(expression), expression.span)
    return expression


def _not_repeatable(what: str, span: Span | None) -> PenstockError:
    return PenstockError(
        "WHY-7101",
        f"{what} has another value in each run, so the rows that made a row cannot be found again",
        span=span,
        hint="write the value into a table first, and read that table",
        sqlstate="0A000",
    )


def _without_clock(node: Expression) -> Expression:
    # the clock is read once for a query; a PROCTIME() column is compared nowhere
    is_clock = isinstance(node, Call) and node.function in CLOCK_FUNCTIONS
    return Literal(node.type, True, value=None) if is_clock else node


def _trace(node: LogicalPlan, restrictions: Restrictions) -> Iterator[Leaf]:
    match node:
        case Scan() | Values():
            yield node, restrictions
        case Union():
            for branch in node.branches:
                yield from _trace(branch, restrictions)
        case ReadRows():
            assert node.residual is not None
            yield from _trace(node.left, (Restriction(node.residual, node.right), *restrictions))
        case BinaryJoin():
            yield from _trace_join(node, restrictions)
        case TemporalJoin():
            yield from _trace_pairs(node, node.kind, restrictions)
        case LookupJoin():
            yield from _trace_lookup(node, restrictions)
        case RecursiveQuery():
            yield from _trace_recursion(node, restrictions)
        # a step of a recursion: the rows it reads are traced with the recursion
        case DerivedRows():
            pass
        case ProcessTable():
            for port, table in enumerate(node.tables):
                yield from _trace(table, _rows_of_partitions(node, port, restrictions))
        case _:
            below = node.inputs[0] if len(node.inputs) == 1 else None
            step = _STEPS.get(type(node))
            if below is None or (step is None and not isinstance(node, PASSING)):
                raise no_lineage(node)
            yield from _trace(below, restrictions if step is None else step(node, restrictions))


def _filter(node: LogicalPlan, restrictions: Restrictions) -> Restrictions:
    assert isinstance(node, Filter)
    # the filter first: what was written behind it may fail for rows that it drops
    return (*(Restriction(part) for part in conjuncts(node.predicate)), *restrictions)


def _project(node: LogicalPlan, restrictions: Restrictions) -> Restrictions:
    assert isinstance(node, Project)
    return moved(restrictions, node.expressions, len(node.input.schema))


def _aggregate(node: LogicalPlan, restrictions: Restrictions) -> Restrictions:
    """All rows of the groups. A DISTINCT row is made by all rows that are equal to it."""
    assert isinstance(node, Aggregate)
    return _rows_of_groups(node, node.input, dict(enumerate(node.keys)), restrictions)


def _window_aggregate(node: LogicalPlan, restrictions: Restrictions) -> Restrictions:
    """All rows of the groups in their windows."""
    assert isinstance(node, WindowAggregate)
    assert isinstance(node.window, AttachedWindow)
    first = len(node.keys) + len(node.aggregates)
    bounds = {first: node.window.start_column, first + 1: node.window.end_column}
    return _rows_of_groups(node, node.input, dict(enumerate(node.keys)) | bounds, restrictions)


def _rows_of_partitions(node: ProcessTable, port: int, restrictions: Restrictions) -> Restrictions:
    """All rows of a table's partitions: what a function keeps of them is its own. Of a table that is
    processed row by row the row itself, whose columns pass through.
    """
    table, keys, alone = node.tables[port], node.partitions[port], not node.declarations[port].set_semantics
    if alone and not node.function.passes_columns:
        raise no_lineage(node)
    carried = range(len(node.names[port])) if alone else keys
    if node.function.passes_columns:
        columns = {i: i for i in carried}
    else:
        # the partition's columns are there once for each table
        columns = dict(enumerate(keys * len(node.tables)))
    return _rows_of_groups(node, table, columns, restrictions)


def _rows_of_groups(
    node: LogicalPlan, source: LogicalPlan, columns: dict[int, int], restrictions: Restrictions
) -> Restrictions:
    """Return the restrictions of an input to the rows of some groups. ``columns``: the input column of each
    column of the output that a group is made by.
    """
    width = len(node.schema)
    of_groups, others = split_by_columns(restrictions, width, columns)
    inputs = {i: column_of(source, column) for i, column in columns.items()}
    below = moved(of_groups, [inputs.get(i) for i in range(width)], len(source.schema))
    # HAVING, or a condition on an aggregate: the groups are computed, then their rows are found
    if others:
        groups = restrict(node, restrictions)
        # one group of all rows: no column tells it, and a relation needs one
        groups = select_columns(groups, list(columns)) if columns else groups
        pairs = ((column, i) for i, column in enumerate(inputs.values()))
        below += (rows_like(pairs, len(source.schema), groups),)
    return below


def _window_table(node: LogicalPlan, restrictions: Restrictions) -> Restrictions:
    """The rows in their windows; of sessions all rows, since each of them makes the session's bounds."""
    assert isinstance(node, WindowTable)
    rows = restrict(node, restrictions)
    if node.window.merging:
        width = len(node.schema)
        # the session: its keys and its start
        session = (*node.window.partition_keys, len(node.input.schema))
        found = select_columns(rows, session)
        rows = restrict(
            node, (rows_like(((column_of(node, c), i) for i, c in enumerate(session)), width, found),)
        )
    return (same_rows(node.input, rows),)


def _watermarks(node: LogicalPlan, restrictions: Restrictions) -> Restrictions:
    """The rows alone: those before them made the watermark, and no value of the result."""
    assert isinstance(node, SplitWatermarks)
    return (same_rows(node.input, restrict(node, restrictions)),)


def _over(node: LogicalPlan, restrictions: Restrictions) -> Restrictions:
    assert isinstance(node, Over)
    return (same_rows(node.input, rows_of_frames(node, restrictions)),)


def _partition_top(node: LogicalPlan, restrictions: Restrictions) -> Restrictions:
    """The rows and those of their partition that are ranked above them."""
    assert isinstance(node, PartitionTop)
    call = AggregateCall(node.rank, (), INT, False)
    return (same_rows(node.input, rows_up_to_rank(node, node.partition, node.order, call, restrictions)),)


def _top_n(node: LogicalPlan, restrictions: Restrictions) -> Restrictions:
    assert isinstance(node, TopN)
    call = AggregateCall("row_number", (), INT, False)
    return (same_rows(node.input, rows_up_to_rank(node, (), node.keys, call, restrictions)),)


def _repeat(node: LogicalPlan, restrictions: Restrictions) -> Restrictions:
    assert isinstance(node, Repeat)
    return widened(restrictions, node, node.input)


def _unnest(node: LogicalPlan, restrictions: Restrictions) -> Restrictions:
    assert isinstance(node, Unnest)
    width, kept = len(node.input.schema), len(node.keep)
    # the same node with every column of its input, so that the input's rows are known again
    whole = replace(node, keep=tuple(range(width)))
    definitions = [
        *(column_of(whole, index) for index in node.keep),
        *(column_of(whole, width + i) for i in range(len(node.schema) - kept)),
    ]
    return (same_rows(node.input, restrict(whole, moved(restrictions, definitions, len(whole.schema)))),)


def _matches(node: LogicalPlan, restrictions: Restrictions) -> Restrictions:
    """The rows of the matches, found by the same pattern with ALL ROWS PER MATCH and their numbers."""
    assert isinstance(node, MatchRecognize)
    width = len(node.input.schema)
    # ONE ROW PER MATCH reads the whole match, its rows in ALL ROWS read it with FINAL
    values = node.values if node.all_rows else tuple(replace(value, final=True) for value in node.values)
    number = MatchFact(BIGINT, False, fact=Fact.NUMBER)
    every = replace(
        node,
        all_rows=True,
        values=(*values, number),
        measures=(*node.measures, Column(BIGINT, False, index=len(values), name="match")),
        names=(*node.names, "match"),
    )
    carried = range(width) if node.all_rows else node.partition
    definitions = [
        *(column_of(every, i) for i in carried),
        *(column_of(every, width + i) for i in range(len(node.measures))),
    ]
    rows = restrict(every, moved(restrictions, definitions, len(every.schema)))
    if node.all_rows:
        match = (*node.partition, len(every.schema) - 1)
        found = select_columns(rows, match)
        pairs = ((column_of(every, column), i) for i, column in enumerate(match))
        rows = restrict(every, (rows_like(pairs, len(every.schema), found),))
    return (same_rows(node.input, rows),)


def _trace_join(node: BinaryJoin, restrictions: Restrictions) -> Iterator[Leaf]:
    if node.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        yield from _trace_pairs(node, node.kind, restrictions)
        return
    rows = restrict(node, restrictions)
    yield from _trace(node.left, (same_rows(node.left, rows),))
    # EXISTS: the partners; NOT EXISTS: there are none
    if node.kind is JoinKind.SEMI:
        yield from _trace(node.right, (partners_of(node, rows),))


def partners_of(node: BinaryJoin, rows: LogicalPlan) -> Restriction:
    """Return the restriction of a join's right side to the rows that have a partner among ``rows``, which
    have the columns of its left side.
    """
    width, left = len(node.right.schema), len(node.left.schema)
    parts: list[Expression] = [
        Call(
            BOOLEAN,
            True,
            function="equal",
            args=(column_of(node.right, b), field_column(rows.schema[a], width + a)),
        )
        for a, b in zip(node.left_keys, node.right_keys, strict=True)
    ]
    if node.residual is not None:
        places = {i: width + i for i in range(left)} | {left + i: i for i in range(width)}
        parts.append(node.residual.remap(places))
    return Restriction(conjunction(tuple(parts)), rows)


def _trace_pairs(
    node: BinaryJoin | TemporalJoin, kind: JoinKind, restrictions: Restrictions
) -> Iterator[Leaf]:
    """The rows of both sides of the pairs; of a row without a partner that row alone."""
    width = len(node.left.schema)
    left = {JoinKind.RIGHT: JoinKind.INNER, JoinKind.FULL: JoinKind.LEFT}.get(kind, kind)
    right = {JoinKind.LEFT: JoinKind.INNER, JoinKind.FULL: JoinKind.RIGHT}.get(kind, kind)
    # without the padded rows of the other side: their NULLs would be taken for rows of NULLs
    pairs = restrict(replace(node, kind=left), restrictions)
    yield from _trace(node.left, (same_rows(node.left, pairs),))
    pairs = restrict(replace(node, kind=right), restrictions)
    yield from _trace(node.right, (same_rows(node.right, pairs, width),))


def _trace_recursion(node: RecursiveQuery, restrictions: Restrictions) -> Iterator[Leaf]:
    """The rows of the anchor among those that the rows derive from, and the other rows of each step that
    derived one of them.
    """
    rows = ancestors(node, restrictions)
    yield from _trace(node.anchor, (same_rows(node.anchor, rows),))
    step = one_step(node)
    yield from _trace(step, (same_rows(step, rows),))


def _trace_lookup(node: LookupJoin, restrictions: Restrictions) -> Iterator[Leaf]:
    width = len(node.left.schema)
    rows = restrict(node, restrictions)
    yield from _trace(node.left, (same_rows(node.left, rows),))
    found = restrict(replace(node, kind=JoinKind.INNER), restrictions)
    yield node.scan, (same_rows(node.scan, found, width),)


_STEPS: dict[type[LogicalPlan], Callable[[LogicalPlan, Restrictions], Restrictions]] = {
    Filter: _filter,
    Project: _project,
    Aggregate: _aggregate,
    WindowAggregate: _window_aggregate,
    WindowTable: _window_table,
    LateFilter: _filter,
    SplitWatermarks: _watermarks,
    Over: _over,
    PartitionTop: _partition_top,
    TopN: _top_n,
    Repeat: _repeat,
    Unnest: _unnest,
    MatchRecognize: _matches,
}
"""Nodes of one input, and what of their input made some of their rows."""
