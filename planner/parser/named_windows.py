"""WINDOW w AS (..): named windows put where OVER names them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.planner.parser.syntax_nodes import OverClause, place, span_of


def with_windows(node: exp.Select, windows: Mapping[str, OverClause]) -> None:
    """Give each OVER that names a window of this SELECT what the window says; SQL-1067 for a name there is
    not.
    """
    for clause in list(node.find_all(OverClause)):
        name = clause.args.get("name")
        if name is None:
            continue
        known = windows.get(name.name.lower())
        if known is None:
            hint = (
                did_you_mean(name.name, windows, others=True)
                or "write WINDOW w AS (PARTITION BY .. ORDER BY ..) behind the query, or OVER (..)"
            )
            raise PenstockError(
                "SQL-1067",
                f'there is no window "{name.name}"',
                span=span_of(name),
                hint=hint,
                sqlstate="42P20",
            )
        meant, span = known.copy(), span_of(clause)
        clause.replace(meant if span is None else place(meant, span.start, span.end))
