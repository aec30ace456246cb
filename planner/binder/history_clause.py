"""WITH HISTORY and the hint BACKFILL: which statements allow them, and the history option they declare."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.planner.logical.sink import HistoryOption
from penstock.planner.parser.hints import SelectHint
from penstock.planner.parser.syntax_nodes import span_of

BACKENDS = ("spark", "duckdb")


def resolve_history_option(tree: exp.Expr) -> HistoryOption | None:
    """Return the history option of an INSERT's query, or None without one. Raises BND-5000 for an unknown
    backend.
    """
    backend, span = None, None
    # The clause or the hint may be inside parentheses around the query.
    for part in _unwrapped(tree):
        for hint in _hints(part):
            ((backend, span),) = hint.values
        clause = part.args.get("history")
        # an error points to the clause where both are written
        span = span if clause is None else span_of(clause)
    if span is None:
        return None
    # BACKFILL('sprak')
    if backend is not None and backend not in BACKENDS:
        hint_text = did_you_mean(backend, BACKENDS, others=True)
        raise PenstockError("BND-5000", f"there is no bounded backend '{backend}'", span=span, hint=hint_text)
    return HistoryOption(backend, span)


def refuse_history(tree: exp.Expr) -> None:
    """Refuse WITH HISTORY and BACKFILL outside of an INSERT's own query; SQL-1714."""
    # only an INSERT loads history
    clause = tree.args.get("history")
    spans = [span_of(clause)] if clause is not None else [hint.span for hint in _hints(tree)]
    if spans:
        message = (
            "WITH HISTORY is the last clause of an INSERT"
            if clause is not None
            else "BACKFILL follows the first SELECT of an INSERT"
        )
        hint = "write INSERT INTO .. SELECT .. WITH HISTORY"
        raise PenstockError("SQL-1714", message, span=spans[0], hint=hint, sqlstate="42601")


def _unwrapped(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield a query and, inside its parentheses, the nested ones."""
    yield tree
    while isinstance(tree, exp.Subquery):
        tree = tree.this
        yield tree


def _hints(tree: exp.Expr) -> Iterator[SelectHint]:
    return (hint for hint in tree.meta.get("hints", ()) if hint.name == "BACKFILL")


def reject_mixed_history(requests: list[HistoryOption | None]) -> None:
    """Refuse a statement set in which only some INSERTs load their history, or load it by different backends;
    SQL-1714.
    """
    # sinks of one job share their sources, which cannot begin in two places
    requested = [request for request in requests if request is not None]
    if requested and (len(requested) < len(requests) or len({request.backend for request in requested}) > 1):
        hint = (
            "write WITH HISTORY behind every INSERT of the set, or behind none; or run them as jobs of "
            "their own"
        )
        span: Span = requested[0].span
        raise PenstockError(
            "SQL-1714",
            "the INSERTs of a set begin at one point, with their history or without",
            span=span,
            hint=hint,
            sqlstate="0A000",
        )
