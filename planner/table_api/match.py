"""MATCH_RECOGNIZE of the Table API: its clauses as a syntax tree and as SQL text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.relations.tables import bind_source
from penstock.planner.parser.row_pattern_parser import parse_pattern
from penstock.planner.parser.syntax_nodes import (
    AfterMatch,
    RowDefinition,
    RowMatches,
    RowPattern,
    RowSubset,
)
from penstock.planner.table_api.from_clause import FromItems, FromTable
from penstock.planner.table_api.pieces import Item, Pieces, SqlPiece
from penstock.planner.table_api.sql_text import Lines, expression_text, indented, name_text, names_text
from penstock.planner.table_api.windows import Length, length_tree

_AFTER = re.compile(r"(PAST LAST ROW|TO NEXT ROW)|TO (?:(FIRST|LAST) )?([A-Za-z_]\w*)", re.IGNORECASE)


def matched(
    source: FromTable,
    context: BindContext,
    origin: int,
    *,
    partition_by: Sequence[Item],
    order_by: Sequence[Item],
    measures: Mapping[str, Item],
    pattern: str,
    define: Mapping[str, Item],
    after: str,
    within: Length | None,
    subset: Mapping[str, Sequence[str]],
    all_rows: bool,
) -> FromTable:
    """Return the matches of a row pattern in a table, as a table of FROM. Errors quote their clause."""
    items = FromItems(source)
    # the pattern has a grammar of its own; parsed before it becomes a part of a text
    with Pieces([pattern]):
        parse_pattern(pattern, 0)
    skip = _skip(after)
    keys, order = Pieces(partition_by), Pieces(order_by)
    values, conditions = Pieces([], measures), Pieces([], define)
    with keys, order, values, conditions:
        parts = keys.expressions(items.qualify)
        sorts = order.sort_items(items.qualify)
        columns = values.items(items.qualify)
        defines = conditions.items(items.qualify)
        node = RowMatches(
            this=source.tree(0),
            partition=[piece.tree for piece in parts],
            order=[piece.tree for piece in sorts],
            measures=[piece.tree for piece in columns],
            all_rows=all_rows,
            skip=skip,
            pattern=RowPattern(this=pattern),
            within=None if within is None else length_tree(within),
            subsets=[_subset(name, members) for name, members in subset.items()],
            defines=[
                RowDefinition(this=piece.tree.this, alias=piece.tree.args["alias"]) for piece in defines
            ],
        )
        relation = bind_source(node, items.context(context)).relation
    lines: list[str] = []
    for word, pieces in (("PARTITION BY", parts), ("ORDER BY", sorts), ("MEASURES", columns)):
        if pieces:
            lines.append(f"{word} {_listed(pieces)}")
    lines += [f"{'ALL ROWS' if all_rows else 'ONE ROW'} PER MATCH", f"AFTER MATCH SKIP {_skip_text(skip)}"]
    lines.append(f"PATTERN ({pattern})")
    if within is not None:
        lines.append(f"WITHIN {expression_text(length_tree(within))}")
    if subset:
        members = [f"{name_text(name)} = ({names_text(names)})" for name, names in subset.items()]
        lines.append(f"SUBSET {', '.join(members)}")
    # the name comes first here, unlike in a select list
    conditions_text = [f"{name_text(piece.name or '')} AS {piece.expression}" for piece in defines]
    lines.append(f"DEFINE {', '.join(conditions_text)}")
    return FromTable(
        source.name, relation, _clause(source, tuple(lines)), None, origin, items.origins() - {origin}
    )


def _clause(source: FromTable, lines: Lines) -> Lines:
    *above, last = source.text()
    return (*above, f"{last} MATCH_RECOGNIZE (", *indented(lines), ")")


def _listed(pieces: Sequence[SqlPiece]) -> str:
    return ", ".join(piece.sql for piece in pieces)


def _subset(name: str, members: Sequence[str]) -> RowSubset:
    identifiers = [exp.Identifier(this=member, quoted=True) for member in members]
    return RowSubset(this=exp.Identifier(this=name, quoted=True), expressions=identifiers)


def _skip(after: str) -> AfterMatch:
    found = _AFTER.fullmatch(" ".join(after.split()))
    if found is None:
        message = f"after a match the search skips to a row, not {after!r}"
        hint = "write 'PAST LAST ROW', 'TO NEXT ROW', 'TO FIRST A' or 'TO LAST A'"
        raise PenstockError("SQL-1601", message, hint=hint, sqlstate="42601")
    if found[1]:
        return AfterMatch(kind="past" if found[1].upper().startswith("PAST") else "next")
    # TO A is TO LAST A
    return AfterMatch(this=exp.Identifier(this=found[3], quoted=True), kind=(found[2] or "last").lower())


def _skip_text(skip: AfterMatch) -> str:
    kind = skip.args["kind"]
    if kind in ("past", "next"):
        return "PAST LAST ROW" if kind == "past" else "TO NEXT ROW"
    return f"TO {kind.upper()} {name_text(skip.this.name)}"
