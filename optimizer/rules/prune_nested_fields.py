"""Of the rows inside of rows only those fields are read that somebody asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import Row
from penstock.planner.expressions.nodes import Call, Column, Expression, Literal
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.node_digest import table_text
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.time_attributes import WatermarkAssign

Fields = frozenset[int] | None
"""Which fields of a row are read; ``None``: the row as a whole."""
Uses = Mapping[int, Fields]


@dataclass(frozen=True)
class _Narrowed:
    """A column of rows with fewer fields, and where the fields that stay went."""

    row: Row
    places: Mapping[int, int]


def narrow_rows(plan: LogicalPlan) -> LogicalPlan:
    """Give the ROW columns of scans those fields only that are read above them, where the format can leave
    the others out (parquet).

    All scans of a table in a plan are narrowed alike, so that one source still serves them.
    """
    wanted: dict[tuple[str, int], Fields] = {}
    _collect(plan, {}, wanted)
    # No ROW column of which fields only are read.
    if not any(fields for fields in wanted.values()):
        return plan
    return _rewritten(plan, wanted)[0]


def _prunes_fields(table: CatalogTable) -> bool:
    return table.connector == "filesystem" and table.options.get("format") == "parquet"


def _merged(a: Uses, b: Iterable[tuple[int, Fields]]) -> dict[int, Fields]:
    merged = dict(a)
    for index, fields in b:
        known = merged.get(index, frozenset())
        # None, the row as a whole, absorbs fields.
        merged[index] = None if known is None or fields is None else known | fields
    return merged


def _read_by(expression: Expression) -> list[tuple[int, Fields]]:
    """The fields an expression reads, column by column."""
    # The column itself, such as a key or an output: all its fields.
    if isinstance(expression, Column):
        return [(expression.index, None)]
    if (
        isinstance(expression, Call)
        and expression.function == "field"
        and isinstance(expression.args[0], Column)
    ):
        return [(expression.args[0].index, frozenset({_position(expression)}))]
    return [use for child in expression.children for use in _read_by(child)]


def _position(call: Call) -> int:
    place = call.args[1]
    assert isinstance(place, Literal) and isinstance(place.value, int)
    return place.value


def _collect(node: LogicalPlan, above: Uses, wanted: dict[tuple[str, int], Fields]) -> None:
    """Collect what is read of the scans below a node. ``above`` is what is read of the node's own columns."""
    match node:
        # A column passed on is read as those above read it; a computed one, by its expression.
        case Project(input=inner, expressions=expressions):
            passed = [
                (e.index, above.get(i, frozenset()))
                for i, e in enumerate(expressions)
                if isinstance(e, Column)
            ]
            computed = [use for e in expressions if not isinstance(e, Column) for use in _read_by(e)]
            _collect(inner, _merged({}, [*passed, *computed]), wanted)
        # Rows pass on with all their columns.
        case Filter(input=inner, predicate=expression) | WatermarkAssign(input=inner, watermark=expression):
            _collect(inner, _merged(above, _read_by(expression)), wanted)
        case (
            Aggregate(input=inner, keys=keys, aggregates=calls)
            | WindowAggregate(input=inner, keys=keys, aggregates=calls)
        ):
            read = [
                part
                for call in calls
                for part in (*call.args, *(() if call.filter is None else (call.filter,)))
            ]
            # Groups are compared by whole keys.
            whole: list[tuple[int, Fields]] = [(key, None) for key in keys]
            _collect(inner, _merged({}, [*whole, *(use for part in read for use in _read_by(part))]), wanted)
        # The union over all scans of the table: another scan may have asked for other fields.
        case Scan(table=table, columns=columns, predicate=predicate):
            uses = above if predicate is None else _merged(above, _read_by(predicate))
            for i, column in enumerate(columns):
                if isinstance(table.source_schema[column].type, Row):
                    key = (table_text(table), column)
                    fields = uses.get(i, frozenset()) if _prunes_fields(table) else None
                    wanted[key] = _merged({0: wanted[key]}, [(0, fields)])[0] if key in wanted else fields
        # Other nodes, such as joins, are not looked into: they read every column as a whole.
        case _:
            for child in node.inputs:
                _collect(child, dict.fromkeys(range(len(child.schema))), wanted)


def _rewritten(
    node: LogicalPlan, wanted: Mapping[tuple[str, int], Fields]
) -> tuple[LogicalPlan, dict[int, _Narrowed]]:
    """Return the node over narrowed scans, and which of its columns are narrowed."""
    if isinstance(node, Scan):
        return _narrowed_scan(node, wanted)
    rewritten = [_rewritten(child, wanted) for child in node.inputs]
    # Nothing below was narrowed.
    if all(new is old for (new, _), old in zip(rewritten, node.inputs, strict=True)):
        return node, {}
    above = node.with_inputs(tuple(child for child, _ in rewritten))
    changed = above.map_expressions(lambda e: _moved(e, rewritten[0][1]))
    # Their outputs are keys, which are whole, and aggregates: no narrowed column passes.
    if isinstance(node, Aggregate | WindowAggregate):
        return changed, {}
    if not isinstance(node, Project):
        return changed, rewritten[0][1]
    below = rewritten[0][1]
    return changed, {
        i: below[e.index]
        for i, e in enumerate(node.expressions)
        if isinstance(e, Column) and e.index in below
    }


def _narrowed_scan(
    node: Scan, wanted: Mapping[tuple[str, int], Fields]
) -> tuple[LogicalPlan, dict[int, _Narrowed]]:
    source, text = node.table.source_schema, table_text(node.table)
    found: dict[int, _Narrowed] = {}
    fields = list(source.fields)
    for i, column in enumerate(node.columns):
        kind, kept = source[column].type, wanted.get((text, column))
        if isinstance(kind, Row) and kept and len(kept) < len(kind.fields):
            order = sorted(kept)
            found[i] = _Narrowed(
                Row(tuple(kind.fields[place] for place in order)), {old: new for new, old in enumerate(order)}
            )
            fields[column] = replace(fields[column], type=found[i].row)
    if not found:
        return node, {}
    predicate = None if node.predicate is None else _moved(node.predicate, found)
    return replace(
        node, table=replace(node.table, source_schema=Schema(tuple(fields))), predicate=predicate
    ), found


def _moved(expression: Expression, narrowed: Mapping[int, _Narrowed]) -> Expression:
    """Return an expression over narrowed columns."""

    def moved(node: Expression) -> Expression:
        if isinstance(node, Column) and node.index in narrowed:
            return replace(node, type=narrowed[node.index].row)
        if (
            isinstance(node, Call)
            and node.function == "field"
            and isinstance(node.args[0], Column)
            and node.args[0].index in narrowed
        ):
            row, place = node.args
            assert isinstance(row, Column) and isinstance(place, Literal)
            return replace(
                node, args=(row, replace(place, value=narrowed[row.index].places[_position(node)]))
            )
        return node

    return expression.transform(moved) if narrowed else expression
