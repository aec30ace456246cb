"""Tables as far as a checkpoint has read them: bounded scans whose rows are those of its positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, BOOLEAN, INT, STRING
from penstock.planner.expressions.nodes import Call, Column, Literal, conjunction
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import column_of, select_columns
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.provenance.source_positions import with_positions

_FILES = Schema((Field("path", STRING, False), Field("rows", BIGINT, False)))
_PARTITIONS = Schema(
    (Field("topic", STRING, False), Field("partition", INT, False), Field("offset", BIGINT, False))
)


@dataclass(frozen=True)
class ReadRows(Join):
    """The rows of a scan with positions that a checkpoint has read: a semi-join with the files it has read
    and the number of rows of each, or with partitions and their next offsets.
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
    """Return a plan whose scans of files and topics have the rows that a checkpoint has read. ``read``: by
    table, the path of each file and how many of its rows were read, or ``topic-partition`` and its offset.
    """

    def bounded(node: LogicalPlan) -> LogicalPlan:
        if not isinstance(node, Scan) or node.table.name not in read:
            return node
        match node.table.connector:
            case "filesystem":
                return _read_rows(node, _FILES, read[node.table.name])
            case "kafka":
                splits = ((split.rpartition("-"), offset) for split, offset in read[node.table.name])
                return _read_rows(node, _PARTITIONS, [(topic, int(n), at) for (topic, _, n), at in splits])
        return node

    return plan.transform(bounded)


def _read_rows(node: Scan, positions: Schema, read: Sequence[tuple[str | int, ...]]) -> LogicalPlan:
    """Return the rows of a scan whose position is before that of its file or partition in ``read``: equal in
    all columns of ``positions`` but the last, and less in that.
    """
    scan, width = with_positions(node), len(node.schema)
    wide, first = len(scan.schema), len(scan.schema) - len(positions)
    parts = []
    for place, field in enumerate(positions):
        other = Column(field.type, False, index=wide + place, name=field.name)
        function = "less" if place == len(positions) - 1 else "equal"
        parts.append(Call(BOOLEAN, True, function=function, args=(column_of(scan, first + place), other)))
    rows = tuple(
        tuple(Literal(field.type, False, value=value) for field, value in zip(positions, row, strict=True))
        for row in read
    )
    joined = ReadRows(scan, Values(rows, positions), JoinKind.SEMI, (), (), conjunction(tuple(parts)))
    return select_columns(joined, range(width))
