"""Tables as far as a checkpoint has read them: bounded scans whose rows are those of its positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, BOOLEAN, STRING
from penstock.planner.expressions.nodes import Call, Column, Literal, conjunction
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import column_of, select_columns
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.provenance.source_positions import with_positions

_ROWS = Schema((Field("path", STRING, False), Field("rows", BIGINT, False)))


@dataclass(frozen=True)
class ReadRows(Join):
    """The rows of a scan with positions that a checkpoint has read: a semi-join with the files it has read
    and the number of rows of each.
    """

    def text(self) -> str:
        return "Rows that the checkpoint has read"


def ended(plan: LogicalPlan) -> LogicalPlan:
    """Return a plan whose scans end with the files, or the messages, that are there now."""

    def end(node: LogicalPlan) -> LogicalPlan:
        if not isinstance(node, Scan):
            return node
        options = dict(node.table.options)
        options.pop("source.monitor-interval", None)
        if node.table.connector == "kafka":
            options["scan.bounded.mode"] = "latest-offset"
        return (
            node
            if options == node.table.options
            else replace(node, table=replace(node.table, options=options))
        )

    return plan.transform(end)


def up_to_positions(plan: LogicalPlan, read: Mapping[str, Sequence[tuple[str, int]]]) -> LogicalPlan:
    """Return a plan whose scans of files have the rows that a checkpoint has read. ``read``: by table, the
    path of each file and how many of its rows were read.
    """

    def bounded(node: LogicalPlan) -> LogicalPlan:
        if not isinstance(node, Scan) or node.table.connector != "filesystem" or node.table.name not in read:
            return node
        scan = with_positions(node)
        width, wide = len(node.schema), len(scan.schema)
        rows = tuple(
            (Literal(STRING, False, value=path), Literal(BIGINT, False, value=count))
            for path, count in read[node.table.name]
        )
        path, row = column_of(scan, wide - 2), column_of(scan, wide - 1)
        condition = conjunction(
            (
                Call(
                    BOOLEAN,
                    True,
                    function="equal",
                    args=(path, Column(STRING, False, index=wide, name="path")),
                ),
                Call(
                    BOOLEAN,
                    True,
                    function="less",
                    args=(row, Column(BIGINT, False, index=wide + 1, name="rows")),
                ),
            )
        )
        joined = ReadRows(scan, Values(rows, _ROWS), JoinKind.SEMI, (), (), condition)
        return select_columns(joined, range(width))

    return plan.transform(bounded)
