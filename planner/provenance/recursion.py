"""Lineage through WITH RECURSIVE: the rows that a row derives from, and one step of the query as a plan."""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BOOLEAN
from penstock.planner.expressions.nodes import Call, Column, Expression, Literal, conjunction
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, select_columns
from penstock.planner.logical.recursive_query import (
    RecursiveQuery,
    TermInput,
    WorkTable,
    with_last_column,
)
from penstock.planner.provenance.restrictions import Restrictions, restrict


@dataclass(frozen=True)
class DerivedRows(Filter):
    """The rows of a recursive query as one of its steps reads them. Their lineage is that of the query, and
    is not followed a second time.
    """

    def text(self) -> str:
        return "Derived rows"


def derived_rows(node: RecursiveQuery) -> DerivedRows:
    """Return the rows of a recursive query as its steps read them."""
    return DerivedRows(node, Literal(BOOLEAN, False, value=True))


def one_step(node: RecursiveQuery) -> LogicalPlan:
    """Return the rows that one step derives from all rows of the query, as a plan without a work table."""
    return _plugged(node, node.term, derived_rows(node))


def ancestors(node: RecursiveQuery, restrictions: Restrictions) -> LogicalPlan:
    """Return the rows of a recursive query from which those that meet the restrictions derive, in one step or
    in many, with these rows themselves, each once.

    It is a recursion backwards over the pairs of a row and the row that one step derived it from. Cycles end
    it: a row that has been met leads to no new one.
    """
    found, pairs = restrict(node, restrictions), _pairs(node)
    width = len(node.schema)
    work = WorkTable(_plain(node.schema))
    known = TermInput(1, _plain(pairs.schema), tuple(range(len(pairs.schema))))
    same = [_same(work.schema[i], i, width + i) for i in range(width)]
    # rows that are met JOIN pairs ON the derived row is the row that is met: the row it derived from
    joined = Join(work, known, JoinKind.INNER, (), (), conjunction(tuple(same)))
    term = select_columns(joined, range(2 * width, 3 * width))
    return RecursiveQuery(found, (pairs,), term, True, node.max_iterations)


def _pairs(node: RecursiveQuery) -> LogicalPlan:
    """Return each row that a step derives, with the row of the query it derives from behind it."""
    width, term = len(node.schema), node.term
    for field in node.schema:
        term = with_last_column(term, replace(field, name=f"of_{field.name}", role=None))
    rows = select_columns(derived_rows(node), [*range(width), *range(width)])
    return _plugged(node, term, rows)


def _plugged(node: RecursiveQuery, term: LogicalPlan, rows: LogicalPlan) -> LogicalPlan:
    """Return a term that reads rows in place of its work table, and the node's inputs themselves."""
    if isinstance(term, WorkTable):
        return rows
    if isinstance(term, TermInput):
        return select_columns(node.others[term.port - 1], term.kept)
    return term.with_inputs(tuple(_plugged(node, below, rows) for below in term.inputs))


def _plain(schema: Schema) -> Schema:
    return Schema(tuple(replace(field, role=None) for field in schema))


def _same(field: Field, left: int, right: int) -> Expression:
    sides = tuple(Column(field.type, field.nullable, index=i, name=field.name) for i in (left, right))
    return Call(BOOLEAN, False, function="null_safe_equal" if field.nullable else "equal", args=sides)
