"""EXPLAIN WHY NOT ROW: the operators from the sources to the result with the candidates that each leaves, and
the first that let the expected row go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.catalog.coercion import is_orderable
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, INT, STRING
from penstock.client.results.result import Result, rows_result
from penstock.client.statements.explain_why import count_rows, explain_why
from penstock.client.statements.explained_query import drops_late_rows, explained_query, run_bounded
from penstock.planner.expressions.nodes import (
    AggregateCall,
    Call,
    Column,
    Expression,
    Literal,
    conjunction,
)
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.joins.join import BinaryJoin, Join, JoinKind
from penstock.planner.logical.node_text import duration_text, expression_text
from penstock.planner.logical.over import RUNNING, Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project, column_of
from penstock.planner.logical.recursive_query import RecursiveQuery
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.sort import TopN
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.provenance.late_rows import LateFilter, drop_late_rows
from penstock.planner.provenance.missing_answers import CandidateStep, first_loss, trace_candidates
from penstock.planner.provenance.read_rows import ReadRows
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.client.execution.query_pipeline import QueryPipeline
    from penstock.client.execution.session_state import SessionState

_COLUMNS = (
    Field("step", INT, False),
    Field("operator", STRING, False),
    Field("candidates", BIGINT, False),
    Field("note", STRING),
)


def explain_row(state: SessionState, pipeline: QueryPipeline, node: nodes.ExplainWhy) -> Result:
    """Run EXPLAIN WHY ROW or EXPLAIN WHY NOT ROW."""
    if node.missing:
        return explain_why_not(state, pipeline, node)
    return explain_why(state, pipeline, node)


def explain_why_not(state: SessionState, pipeline: QueryPipeline, node: nodes.ExplainWhy) -> Result:
    """Return one row for each operator, from the sources to the result: its number, the operator, the
    candidates that it leaves, and a note at the first that leaves none. Raises WHY-7105 where the row is in
    the result.
    """
    query = explained_query(state, node)
    plan = drop_late_rows(query.plan) if drops_late_rows(state, pipeline, node, query.plan) else query.plan
    last = trace_candidates(plan, query.conditions)
    steps = list(last.walk())
    counts = _counts(pipeline, steps)
    if counts[len(steps) - 1]:
        raise PenstockError(
            "WHY-7105",
            f"the result has {_number(counts[len(steps) - 1])} that meet these conditions",
            span=node.conditions[0].span,
            hint="EXPLAIN WHY ROW with the same conditions lists the input rows that made them",
            sqlstate="02000",
        )
    loss = first_loss(last, counts)
    note = _reason(pipeline, loss)
    table = pa.table(
        [
            pa.array(range(1, len(steps) + 1), pa.int32()),
            pa.array([step.text for step in steps], pa.string()),
            pa.array([counts[i] for i in range(len(steps))], pa.int64()),
            pa.array([note if step is loss else None for step in steps], pa.string()),
        ],
        schema=Schema(_COLUMNS).to_arrow(),
    )
    return replace(rows_result(table), note=note)


def _counts(pipeline: QueryPipeline, steps: list[CandidateStep]) -> dict[int, int]:
    """Return the candidates of each step, counted in one query."""
    call = AggregateCall("count", (), BIGINT, False)
    branches = []
    for number, step in enumerate(steps):
        counted = Aggregate(step.candidates, (), (call,), ("n",))
        numbered = (Literal(INT, False, value=number), column_of(counted, 0))
        branches.append(Project(counted, numbered, ("step", "n")))
    rows = run_bounded(pipeline, Union(tuple(branches)) if len(branches) > 1 else branches[0])
    return dict(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))


def _reason(pipeline: QueryPipeline, step: CandidateStep) -> str:
    """Return in one sentence why a step leaves no candidate."""
    match step.node:
        case _ if step.values:
            return _other_values(pipeline, step)
        case Scan() | Values():
            return _no_input(pipeline, step)
        case RecursiveQuery():
            return _not_derived(step)
        case LateFilter():
            return _late(pipeline, step)
        case Filter():
            return _filtered(pipeline, step)
        case ReadRows():
            return f"the job of the view has not read {_candidates(pipeline, step)} at its last checkpoint"
        case BinaryJoin():
            return _without_partner(pipeline, step, step.node)
        case TopN() | PartitionTop():
            return _below_rank(pipeline, step, step.node)
        case WindowTable():
            return f"no time, and so no window, for {_candidates(pipeline, step)}"
        case Union():
            return "no branch of the union has such a row"
    return f"{step.text} drops {_candidates(pipeline, step)}"


def _number(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _candidates(pipeline: QueryPipeline, step: CandidateStep) -> str:
    count = count_rows(pipeline, step.below[0].candidates)
    return "the only candidate" if count == 1 else f"all {count:,} candidates"


def _no_input(pipeline: QueryPipeline, step: CandidateStep) -> str:
    name = step.node.table.name if isinstance(step.node, Scan) else "VALUES"
    if not isinstance(step.candidates, Filter):
        return f"{name} has no rows"
    condition = expression_text(step.candidates.predicate, step.node.schema)
    return f"no row of {name} has {condition}"


def _not_derived(step: CandidateStep) -> str:
    if not isinstance(step.candidates, Filter):
        return "the recursion has no rows"
    condition = expression_text(step.candidates.predicate, step.node.schema)
    return f"no row that the recursion begins with or derives has {condition}"


def _other_values(pipeline: QueryPipeline, step: CandidateStep) -> str:
    """The row is there with other values: what those of its candidates are."""
    condition = expression_text(conjunction(step.values), step.node.schema)
    columns = sorted(frozenset[int]().union(*(part.columns() for part in step.values)))
    found = _ranges(pipeline, step.before, [column_of(step.node, i) for i in columns])
    values = ", ".join(
        f"{step.node.schema[i].name} is {text}" for i, text in zip(columns, found, strict=True)
    )
    if isinstance(step.node, WindowTable):
        return f"no candidate falls in a window with {condition}: {values}"
    what = "group is there" if isinstance(step.node, Aggregate | WindowAggregate) else "row is there"
    return f"the {what}, but not with {condition}: {values}"


def _ranges(pipeline: QueryPipeline, rows: LogicalPlan, values: list[Expression]) -> list[str]:
    """Return the least and the greatest of some values over rows as text, in one query."""
    calls = tuple(
        AggregateCall(function, (value,), value.type) for value in values for function in ("min", "max")
    )
    names = tuple(str(i) for i in range(len(calls)))
    (found,) = run_bounded(pipeline, Aggregate(rows, (), calls, names)).to_pylist() if calls else [{}]
    pairs = [(found[str(2 * i)], found[str(2 * i + 1)]) for i in range(len(values))]
    return [_text(least) if least == most else f"{_text(least)} to {_text(most)}" for least, most in pairs]


def _text(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def _filtered(pipeline: QueryPipeline, step: CandidateStep) -> str:
    assert step.tested is not None
    assert isinstance(step.node, Filter)
    schema = step.node.input.schema
    word = "HAVING" if _is_having(step.node) else "the filter"
    condition = expression_text(step.tested, schema)
    sentence = f"{word} {condition} drops {_candidates(pipeline, step)}"
    compared = [arg for arg in getattr(step.tested, "args", ()) if arg.columns()]
    # a comparison of one value with constants: what the value is
    if isinstance(step.tested, Call) and len(compared) == 1 and is_orderable(compared[0].type):
        (found,) = _ranges(pipeline, step.before, compared)
        sentence += f": {expression_text(compared[0], schema)} is {found}"
    return sentence


def _is_having(node: Filter) -> bool:
    below: LogicalPlan = node.input
    while isinstance(below, Project | Filter):
        below = below.input
    return isinstance(below, Aggregate | WindowAggregate)


def _late(pipeline: QueryPipeline, step: CandidateStep) -> str:
    found = run_bounded(pipeline, _bounds(step.before)).to_pylist()[0]
    late = found["watermark"] - found["closes"]
    late_us = round(late.total_seconds() * 1_000_000)
    return (
        f"late: when {_candidates(pipeline, step)} came, the watermark of the split was "
        f"{found['watermark']}, {duration_text(late_us)} past the end of the window, {found['closes']}"
    )


def _bounds(rows: LogicalPlan) -> LogicalPlan:
    """Return the least watermark and the first end of a window, the last two columns of late rows."""
    names, width = ("watermark", "closes"), len(rows.schema)
    columns = (column_of(rows, width - 2), column_of(rows, width - 1))
    return Aggregate(
        rows, (), tuple(AggregateCall("min", (column,), column.type) for column in columns), names
    )


def _without_partner(pipeline: QueryPipeline, step: CandidateStep, node: BinaryJoin) -> str:
    left, right = (below.candidates for below in step.below)
    if node.kind is JoinKind.ANTI:
        return f"excluded by a partner on the right: {_candidates(pipeline, step)}"
    # the candidates of a side with a partner in the whole other side
    paired = count_rows(pipeline, _paired(node, left, node.right))
    text = node.text()
    if not paired:
        return f"no partner on the right for {_candidates(pipeline, step)}: {text}"
    sides = f"{count_rows(pipeline, left):,} on the left, {count_rows(pipeline, right):,} on the right"
    return f"no two candidates are partners of each other: {sides}; {text}"


def _paired(node: BinaryJoin, left: LogicalPlan, right: LogicalPlan) -> LogicalPlan:
    return Join(left, right, JoinKind.SEMI, node.left_keys, node.right_keys, node.residual)


def _below_rank(pipeline: QueryPipeline, step: CandidateStep, node: TopN | PartitionTop) -> str:
    partition = () if isinstance(node, TopN) else node.partition
    order, rank = (node.keys, "row_number") if isinstance(node, TopN) else (node.order, node.rank)
    call = AggregateCall(rank, (), INT, False)
    ranked = Over(node.input, partition, order, RUNNING, (call,), ("rank",))
    width = len(node.input.schema)
    # the candidates' own conditions, over the rows with their rank
    conditions = step.before.predicate if isinstance(step.before, Filter) else None
    rows = ranked if conditions is None else Filter(ranked, conditions)
    (found,) = _ranges(pipeline, rows, [Column(INT, False, index=width, name="rank")])
    limit = node.limit + (node.offset if isinstance(node, TopN) else 0)
    return f"not among the first {limit:,}: the rank of {_candidates(pipeline, step)} is {found}"
