"""Missing answers: at which operator an expected row of a result was let go. The conditions on the row are
pushed down the plan; the rows that meet them are its candidates, and each operator says how many it leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.expressions.expression_properties import is_movable, reads_only, without
from penstock.planner.expressions.nodes import Expression, conjunction, conjuncts, inline
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.joins.join import BinaryJoin, JoinKind
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.match_recognize import MatchRecognize
from penstock.planner.logical.node_text import expression_text
from penstock.planner.logical.plan import Conditions, LogicalPlan
from penstock.planner.logical.process_table import ProcessTable
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.recursive_query import RecursiveQuery
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.set_operations import Repeat, Union
from penstock.planner.logical.unnest import Unnest
from penstock.planner.logical.windows import AttachedWindow
from penstock.planner.provenance.late_rows import LateFilter, SplitWatermarks
from penstock.planner.provenance.lineage import PASSING
from penstock.planner.provenance.read_rows import ReadRows
from penstock.planner.provenance.restrictions import no_lineage


@dataclass(frozen=True)
class CandidateStep:
    """An operator with the candidates that it leaves. ``before``: the candidates of its input, in the input's
    columns. ``below``: the steps of its inputs; ``needed``: those without whose candidates it has none.

    ``tested`` is the condition that the operator tests, over its input, for operators that test one.
    ``values`` are conditions that only the output of the node can meet.
    """

    node: LogicalPlan
    text: str
    candidates: LogicalPlan
    before: LogicalPlan
    below: tuple[CandidateStep, ...] = ()
    needed: tuple[int, ...] = ()
    tested: Expression | None = None
    values: Conditions = ()

    def walk(self) -> Iterator[CandidateStep]:
        """Yield the steps below this one, then itself: from the sources to the result."""
        for step in self.below:
            yield from step.walk()
        yield self


def trace_candidates(plan: LogicalPlan, conditions: Conditions) -> CandidateStep:
    """Return the steps of a bound plan for an expected row. The last one leaves the rows of the result that
    meet all conditions.
    """
    return _step(plan, conditions)


def first_loss(last: CandidateStep, counts: Mapping[int, int]) -> CandidateStep:
    """Return the first step that leaves no candidate, though those it needs have some. ``counts``: the
    candidates of each step, by its number in ``walk``. The last step has none.
    """
    numbers = {id(step): number for number, step in enumerate(last.walk())}
    step = last
    while True:
        empty = [step.below[i] for i in step.needed if not counts[numbers[id(step.below[i])]]]
        # of a union each branch may have given the row: only where all are empty it is below
        if not empty or (isinstance(step.node, Union) and len(empty) < len(step.below)):
            return step
        step = empty[0]


def _step(node: LogicalPlan, conditions: Conditions) -> CandidateStep:
    match node:
        case Scan() | Values():
            text = f"Scan {node.table.name}" if isinstance(node, Scan) else node.text()
            return CandidateStep(node, text, _meeting(node, conditions), node)
        case LateFilter():
            return _tested(node, _step(node.input, _movable(conditions)), (node.predicate,), conditions)
        case Filter():
            return _tested(
                node, _step(node.input, _movable(conditions)), conjuncts(node.predicate), conditions
            )
        case Repeat():
            return _step(node.input, conditions)
        case Project():
            # a projection keeps its rows: it is no step
            return _step(node.input, tuple(inline(part, node.expressions) for part in conditions))
        case Union():
            below = tuple(_step(branch, conditions) for branch in node.branches)
            return CandidateStep(
                node, node.text(), _meeting(node, conditions), node, below, tuple(range(len(below)))
            )
        case ReadRows():
            scanned = _step(node.left, conditions)
            return CandidateStep(node, node.text(), _meeting(node, conditions), node.left, (scanned,), (0,))
        case BinaryJoin():
            return _join(node, conditions)
        case SplitWatermarks():
            return _step(node.input, conditions)
        # what derives a row that is not there is not known: the rows themselves are the first step
        case RecursiveQuery():
            return CandidateStep(node, node.text(), _meeting(node, conditions), node)
        case _ if (columns := _columns_of_input(node)) is not None:
            return _unary(node, columns, conditions)
    if not isinstance(node, PASSING):
        raise no_lineage(node)
    # an operator that keeps its rows, such as Sort, is no step
    return _step(node.inputs[0], conditions)


def _meeting(node: LogicalPlan, conditions: Conditions) -> LogicalPlan:
    return Filter(node, conjunction(conditions)) if conditions else node


def _movable(conditions: Conditions) -> Conditions:
    # a part that may fail is not tested on rows that a filter has dropped
    return tuple(filter(is_movable, conditions))


def _tested(node: Filter, below: CandidateStep, parts: Conditions, conditions: Conditions) -> CandidateStep:
    """The steps of a filter, one for each ANDed part of its predicate."""
    source = node.input
    for number, part in enumerate(parts):
        known = _movable(conditions)
        before = _meeting(source, (*parts[:number], *known))
        candidates = _meeting(source, (*parts[: number + 1], *known))
        text = (
            node.text() if isinstance(node, LateFilter) else f"Filter {expression_text(part, source.schema)}"
        )
        below = CandidateStep(node, text, candidates, before, (below,), (0,), part)
    return _with_values(node, below, conditions, _movable(conditions))


def _with_values(
    node: LogicalPlan, below: CandidateStep, conditions: Conditions, known: Conditions
) -> CandidateStep:
    """Return a step more for conditions that only the output of a node can meet, such as on an aggregate."""
    values = without(conditions, known)
    if not values:
        return below
    text = f"Row with {expression_text(conjunction(values), node.schema)}"
    before = _meeting(node, known)
    return CandidateStep(node, text, _meeting(node, conditions), before, (below,), (0,), None, values)


_Columns = Mapping[int, int]


def _columns_of_input(node: LogicalPlan) -> _Columns | None:
    """Return which column of the input each column of the output is, for a node that may drop or make rows;
    None for other nodes.
    """
    match node:
        case Aggregate():
            return dict(enumerate(node.keys))
        case WindowAggregate(window=AttachedWindow() as window):
            first = len(node.keys) + len(node.aggregates)
            return dict(enumerate(node.keys)) | {first: window.start_column, first + 1: window.end_column}
        case Unnest():
            return dict(enumerate(node.keep))
        case MatchRecognize():
            carried = range(len(node.input.schema)) if node.all_rows else node.partition
            return dict(enumerate(carried))
        case TemporalJoin() | LookupJoin():
            return {i: i for i in range(len(node.left.schema))}
        case ProcessTable(partitions=(keys,)):
            return {i: i for i in keys} if node.function.passes_columns else dict(enumerate(keys))
    keeps_all = len(node.inputs) == 1 and len(node.schema) >= len(node.inputs[0].schema)
    # rows that stay as they are, perhaps with columns behind them: windows, OVER, Top-N, LIMIT
    if keeps_all and type(node).__name__ in _DROPPING:
        return {i: i for i in range(len(node.inputs[0].schema))}
    return None


_DROPPING = frozenset({"WindowTable", "Over", "PartitionTop", "TopN", "Limit"})


def _unary(node: LogicalPlan, columns: _Columns, conditions: Conditions) -> CandidateStep:
    known = tuple(part for part in conditions if reads_only(part, columns.keys()) and is_movable(part))
    source, moved = node.inputs[0], tuple(part.remap(dict(columns)) for part in known)
    below = _step(source, moved)
    # an aggregate of all rows has its row even if there are none
    needed = () if isinstance(node, Aggregate) and not node.keys else (0,)
    step = CandidateStep(node, node.text(), _meeting(node, known), _meeting(source, moved), (below,), needed)
    return _with_values(node, step, conditions, known)


def _join(node: BinaryJoin, conditions: Conditions) -> CandidateStep:
    width = len(node.left.schema)
    both = node.kind not in (JoinKind.SEMI, JoinKind.ANTI)
    left = {i: i for i in range(width)}
    right = {width + i: i for i in range(len(node.right.schema))} if both else {}
    equal = dict(zip(node.left_keys, node.right_keys, strict=True))
    below = tuple(
        _step(side, _of_side(conditions, columns))
        for side, columns in (
            # a condition on a key holds for the key of the other side too
            (node.left, left | {width + b: a for a, b in equal.items()} if both else left),
            (node.right, equal | right),
        )
    )
    needed = {
        JoinKind.INNER: (0, 1),
        JoinKind.SEMI: (0, 1),
        JoinKind.RIGHT: (1,),
        JoinKind.FULL: (),
    }.get(node.kind, (0,))
    known = tuple(
        part
        for part in conditions
        if is_movable(part) and (reads_only(part, left.keys()) or reads_only(part, right.keys()))
    )
    step = CandidateStep(node, node.text(), _meeting(node, known), node, below, needed)
    return _with_values(node, step, conditions, known)


def _of_side(conditions: Conditions, columns: _Columns) -> Conditions:
    return tuple(
        part.remap(dict(columns))
        for part in conditions
        if part.columns() and reads_only(part, columns.keys()) and is_movable(part)
    )
