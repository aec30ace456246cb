"""WITH RECURSIVE: a common table that reads itself, as an anchor and a term that derives rows from rows.

The term is bound over the columns of the anchor. Where its types are wider, it is bound again over these.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.relations.tables import renamed
from penstock.planner.binder.scope import Relation
from penstock.planner.binder.set_operations import alike, united
from penstock.planner.expressions.expression_properties import is_deterministic, reads_clock
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import select_columns
from penstock.planner.logical.recursive_query import (
    RecursiveQuery,
    WorkTable,
    first_not_linear,
    reads_work_table,
    refuse_not_linear,
    split_term,
)
from penstock.planner.logical.set_operations import Union
from penstock.planner.parser.syntax_nodes import span_of

# A column may become wider once for each wider type; a decimal that grows in each iteration never settles.
_WIDENINGS = 4

_BELOW_UNION = ("with_", "order", "limit", "offset", "emit", "late_rows", "history")


def reads_itself(table: exp.CTE) -> bool:
    """Return whether the query of a common table names it in a FROM."""
    return _names(table.this, table.args["alias"].this.name)


def _names(tree: exp.Expr, name: str) -> bool:
    return any(node.name.lower() == name.lower() for node in tree.find_all(exp.Table))


def bind_recursive_table(table: exp.CTE, context: BindContext) -> Relation:
    """Return a common table that reads itself.

    Raises SQL-1751 for a query of another form, SQL-1752 for a term that is not linear in its own rows,
    SQL-1753 for one that is not deterministic, SQL-1083 and SQL-1084 for other columns than the anchor's.
    """
    alias = table.args["alias"]
    name, columns = alias.this.name, alias.args.get("columns")
    anchors, terms, distinct = _branches(table.this, name)
    anchor = context.query(anchors[0]) if len(anchors) == 1 else united(anchors, "UNION", context)
    if columns:
        anchor = renamed(anchor, columns, span_of(alias.this))
    kinds = [field.type for field in anchor.fields]
    for _ in range(_WIDENINGS):
        # nullable: what a term makes of its own rows is not known before
        work = Schema(tuple(Field(n, k) for n, k in zip(anchor.names, kinds, strict=True)))
        seen = context.with_table(name, Relation(WorkTable(work), work.fields))
        bound = [seen.query(node) for node in terms]
        first, *steps = (one.plan for one in alike([anchor, *bound], [anchors[0], *terms], "UNION"))
        wider = [field.type for field in first.schema]
        if wider == kinds:
            break
        kinds = wider
    else:
        changed = next(i for i, kind in enumerate(kinds) if kind != work.fields[i].type)
        message = f'column "{anchor.names[changed]}" becomes wider in each iteration: it is {kinds[changed]}'
        hint = "CAST it to one type in the recursive term"
        raise PenstockError("SQL-1084", message, span=span_of(terms[0]), hint=hint, sqlstate="42804")
    _check(steps, terms)
    term, others = split_term(steps[0] if len(steps) == 1 else Union(tuple(steps)))
    most = context.settings.get("recursion.max-iterations")
    assert isinstance(most, int)
    # the rows have the names of the work table, wherever they come from
    named = select_columns(first, range(len(kinds)), anchor.names)
    plan = RecursiveQuery(named, others, term, distinct, most)
    return Relation(plan, tuple(Field(n, f.type) for n, f in zip(anchor.names, plan.schema, strict=True)))


def _branches(tree: exp.Expr, name: str) -> tuple[list[exp.Expr], list[exp.Expr], bool]:
    """Return the branches that do not read the table, those that do, and whether rows are distinct."""
    while isinstance(tree, exp.Subquery) and not any(tree.args.get(key) for key in _BELOW_UNION):
        tree = tree.this
    branches: list[exp.Expr] = []
    distinct = isinstance(tree, exp.Union) and bool(tree.args.get("distinct"))
    node: exp.Expr = tree
    while isinstance(node, exp.Union) and bool(node.args.get("distinct")) == distinct:
        bounded = next((key for key in _BELOW_UNION if node.args.get(key)), None)
        if bounded is not None:
            raise _malformed(f"the UNION of {name} cannot have {_written(bounded)}", node)
        branches.append(node.args["expression"])
        node = node.this
    branches.append(node)
    branches.reverse()
    anchors = [branch for branch in branches if not _names(branch, name)]
    terms = [branch for branch in branches if _names(branch, name)]
    if not anchors:
        raise _malformed(f'"{name}" has no first rows: each of its queries reads "{name}" itself', tree)
    return anchors, terms, distinct


def _written(key: str) -> str:
    return {"with_": "WITH", "order": "ORDER BY", "late_rows": "LATE ROWS"}.get(key, key.upper())


def _malformed(message: str, node: exp.Expr) -> PenstockError:
    hint = "write r AS (SELECT the first rows UNION ALL SELECT .. FROM r JOIN ..)"
    return PenstockError("SQL-1751", message, span=span_of(node), hint=hint, sqlstate="42P19")


def _check(plans: Sequence[LogicalPlan], terms: Sequence[exp.Expr]) -> None:
    """Refuse terms that cannot be kept up to date row by row."""
    for plan, tree in zip(plans, terms, strict=True):
        if not reads_work_table(plan):
            raise _malformed("a name in FROM hides the recursive table", tree)
        node = first_not_linear(plan)
        if node is not None:
            raise refuse_not_linear(node).with_span(span_of(tree))
        for step in plan.walk():
            if reads_work_table(step):
                _check_expressions(step, tree)


def _check_expressions(node: LogicalPlan, tree: exp.Expr) -> None:
    unsteady: list[Expression] = []

    def note(expression: Expression) -> Expression:
        if reads_clock(expression) or not is_deterministic(expression):
            unsteady.append(expression)
        return expression

    node.map_expressions(note)
    if unsteady:
        raise PenstockError(
            "SQL-1753",
            "a recursive term may compute a row again, and this value would be another then",
            span=unsteady[0].span or span_of(tree),
            hint="compute it in the first SELECT, or in the query below WITH",
            sqlstate="0A000",
        )
