"""Late rows in bounded plans: which rows a stream would drop, since their window had closed when they came.

A row is late by the watermark of its own split, the greatest watermark of the rows before it. So what is late
depends on the contents of the split alone, and a bounded plan can compute it.
"""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import BOOLEAN
from penstock.planner.expressions.nodes import AggregateCall, Call, SortKey
from penstock.planner.logical.emit import Emit
from penstock.planner.logical.over import Frame, FrameUnit, Over
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project, column_of, select_columns
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.provenance.read_rows import ReadRows
from penstock.planner.provenance.source_positions import with_positions, without_positions

# connectors whose positions are a split, then the place in whose order its rows are read
_ORDERED = ("filesystem", "kafka")


@dataclass(frozen=True)
class LateFilter(Filter):
    """Keep the rows whose window was open when they came. The last two columns are the watermark of the row's
    split before it, and the end of the window.
    """

    def text(self) -> str:
        return "Late rows"


@dataclass(frozen=True)
class SplitWatermarks(Over):
    """Each row with the watermark of its split before it, as its last column."""


def drop_late_rows(plan: LogicalPlan) -> LogicalPlan:
    """Return a bound plan without the rows that a stream would drop as late for their window. It covers
    TUMBLE, HOP and CUMULATE over files and Kafka; other rows stay.
    """
    # windows that correct themselves take rows until the lateness has passed too
    if any(isinstance(node, Emit) and node.emission.lateness_us for node in plan.walk()):
        return plan
    return plan.transform(_drop_late)


def _drop_late(node: LogicalPlan) -> LogicalPlan:
    if not isinstance(node, WindowTable) or node.window.merging or not node.closes:
        return node
    wide = _with_watermark(node.input)
    if wide is None:
        return node
    width, windows = len(node.input.schema), WindowTable(wide, node.window)
    # the columns of the node, then the watermark and the end of the window
    order = [*range(width), *range(width + 1, width + 4), width, width + 2]
    rows = select_columns(windows, order, [*node.schema.names, "watermark", "closes"])
    watermark, end = column_of(rows, width + 3), column_of(rows, width + 4)
    is_open = Call(
        BOOLEAN,
        False,
        function="or",
        args=(
            Call(BOOLEAN, False, function="is_null", args=(watermark,)),
            Call(BOOLEAN, True, function="greater", args=(end, watermark)),
        ),
    )
    return select_columns(LateFilter(rows, is_open), range(width + 3), node.schema.names)


def _with_watermark(node: LogicalPlan) -> LogicalPlan | None:
    """Return a plan with the watermark before each row as its last column; None where it cannot be known."""
    match node:
        case WatermarkAssign():
            return _watermarks(node)
        case Filter():
            below = _with_watermark(node.input)
            return None if below is None else Filter(below, node.predicate)
        case Project():
            below = _with_watermark(node.input)
            return None if below is None else _carrying(node, below, 1)
    return None


def _carrying(node: Project, below: LogicalPlan, count: int) -> Project:
    """Return a projection that also passes on the last columns of its input."""
    last = range(len(below.schema) - count, len(below.schema))
    expressions = (*node.expressions, *(column_of(below, i) for i in last))
    return Project(below, expressions, (*node.names, *(below.schema[i].name for i in last)))


def _watermarks(node: WatermarkAssign) -> LogicalPlan | None:
    located = _located(node.input)
    if located is None:
        return None
    rows, count = located
    width = len(node.input.schema)
    *split, place = range(width, width + count)
    greatest = AggregateCall("max", (node.watermark,), node.watermark.type)
    over = SplitWatermarks(
        rows,
        tuple(split),
        (SortKey(column_of(rows, place)),),
        Frame(FrameUnit.ROWS, None, -1),
        (greatest,),
        ("watermark",),
    )
    known = select_columns(over, [*range(width), width + count])
    return WatermarkAssign(known, node.time_column, node.watermark)


def _located(node: LogicalPlan) -> tuple[LogicalPlan, int] | None:
    """Return the rows below a watermark with the parts of their positions as last columns, and how many."""
    match node:
        case Scan() if node.table.connector in _ORDERED:
            scan = with_positions(node)
            return scan, len(scan.schema) - len(node.schema)
        case ReadRows():
            return node, len(node.schema) - len(without_positions(node.schema))
        case Project():
            below = _located(node.input)
            return None if below is None else (_carrying(node, *below), below[1])
    return None
