"""SELECT: filter, groups, projection and DISTINCT. Its ORDER BY may read columns that are not in the select
list.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import field as dataclass_field
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, without_event_time
from penstock.planner.binder.column_sets import with_column_sets
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.function_rewrites import GroupingMark
from penstock.planner.binder.expressions.nested_access import orderable
from penstock.planner.binder.group_by import AggregateList, AggregateResult, Groups, group, has_aggregate
from penstock.planner.binder.grouping_sets import group_sets
from penstock.planner.binder.relations.joins import bind_from, push_time_conditions
from penstock.planner.binder.relations.tables import literal_rows, one_row
from penstock.planner.binder.scope import FromClause, Relation, Scope
from penstock.planner.binder.select_hints import BlockHints
from penstock.planner.binder.select_items import Item, list_items, without_results
from penstock.planner.binder.select_list import item_name, with_generator
from penstock.planner.binder.subqueries.correlation import has_subquery
from penstock.planner.binder.subqueries.scalar_subqueries import Attached, SubqueryValues, attach
from penstock.planner.binder.subqueries.semi_joins import filtered, joins_bounded
from penstock.planner.binder.windows.group_windows import windowed
from penstock.planner.binder.windows.over import OverList, OverResult, append_over
from penstock.planner.expressions.nodes import (
    Column,
    Expression,
    SortKey,
    conjunction,
    conjuncts,
    expression_role,
)
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.parser.syntax_nodes import GroupingSets, Reference, consume, span_of


class PreProjection:
    """The input of a projection, aggregate or Over node. Subqueries of its keys, arguments and calls are
    joined to it.
    """

    def __init__(self, plan: LogicalPlan, fields: Sequence[Field]) -> None:
        self._bottom = plan
        self._fields = fields
        self._attached = Attached(plan)

    def over(self, expression: Expression) -> Expression:
        """Return an expression with its subqueries replaced by columns joined at the end of the input."""
        return self._attached.over(expression)

    def rows(self) -> tuple[LogicalPlan, Sequence[Field]]:
        """Return the plan joined so far and its fields."""
        plan = self._attached.plan
        # No subquery was joined: the input's own fields, with their time roles, are still right.
        if plan is self._bottom:
            return plan, self._fields
        # A subquery over a stream emits rows when its own input changes, after their event time.
        known = self._fields if joins_bounded(plan, self._bottom) else without_event_time(tuple(self._fields))
        added = (Field(f.name, f.type, f.nullable) for f in plan.schema.fields[len(known) :])
        return plan, [*known, *added]


@dataclasses.dataclass
class BoundSelect:
    """A bound SELECT before its ORDER BY: its input plan, the select list, and the binder for one more
    expression over the same input.

    ``hints``: those of the SELECT, for DISTINCT and for subqueries of the list.
    """

    rows: LogicalPlan
    fields: Sequence[Field]
    items: list[Item]
    outputs: list[Expression]
    groups: Groups | None
    aggregates: AggregateList
    binder: ExpressionBinder
    distinct: bool
    over: OverList = dataclass_field(default_factory=OverList)
    hints: BlockHints = dataclass_field(default_factory=BlockHints)

    def over_rows(self, tree: exp.Expr) -> Expression:
        """Bind an expression over the same input as the select list."""
        bound = self.binder.bind(tree)
        return bound if self.groups is None else self.groups.over(bound)

    @property
    def names(self) -> tuple[str, ...]:
        """The output column names."""
        return tuple(item.name for item in self.items)

    def relation(self, extra: Sequence[Expression] = ()) -> Relation:
        """Return the projection with the ``extra`` columns behind the select list, and DISTINCT on top."""
        names = self.names + tuple(f"order{i + 1}" for i in range(len(extra)))
        # Subqueries in the select list become joins beneath the projection.
        rows, expressions = attach(self.rows, (*self.outputs, *extra))
        fields = tuple(
            self._field(name, expression) for name, expression in zip(names, expressions, strict=True)
        )
        if not joins_bounded(rows, self.rows):
            fields = without_event_time(fields)
        plan = self._projected(rows, expressions, names)
        if self.distinct:
            # SELECT DISTINCT groups by every column, without aggregates.
            ttl_ms, subtasks = self.hints.on_distinct(), self.hints.subtasks.on_distinct()
            plan = Aggregate(plan, tuple(range(len(fields))), (), (), ttl_ms=ttl_ms, subtasks=subtasks)
            fields = tuple(replace(field, role=None) for field in fields)
        # SELECT /*+ PARALLELISM(4) */: every operator of the SELECT is there now
        plan = self.hints.subtasks.on_select(plan)
        self.hints.check_used()
        for note in self.hints.notes:
            self.binder.context.note(note)
        return Relation(plan, fields)

    def _projected(
        self, rows: LogicalPlan, expressions: tuple[Expression, ...], names: tuple[str, ...]
    ) -> LogicalPlan:
        """Return the projection. An identity projection is left out, and constants without FROM become
        literal rows.
        """
        # SELECT * over one table needs no projection.
        if names == tuple(rows.schema.names) and all(
            isinstance(e, Column) and e.index == i for i, e in enumerate(expressions)
        ):
            return rows
        # SELECT 1 is a row of VALUES, not a projection of a dummy row.
        if not self.fields and rows == one_row():
            return literal_rows([expressions], names)
        return Project(rows, expressions, names)

    def _field(self, name: str, expression: Expression) -> Field:
        return Field(name, expression.type, expression.nullable, expression_role(expression, self.fields))


def bind_select(tree: exp.Select, context: BindContext, order: Sequence[exp.Expr]) -> BoundSelect:
    """Return a bound SELECT. ``order`` are the expressions of its ORDER BY, whose aggregates are computed
    with those of the list.
    """
    hints = BlockHints.of(tree)
    # hints name tables of FROM, so FROM is bound with them; ``relation`` refuses what nothing used
    source = _source(tree, context, hints)
    bound = _over_source(tree, context, order, source)
    return replace(bound, rows=hints.on_block(bound.rows, source.plan), hints=hints)


def _over_source(
    tree: exp.Select, context: BindContext, order: Sequence[exp.Expr], source: FromClause
) -> BoundSelect:
    # Clauses of the query around this SELECT; ``bind_query`` binds them.
    after = ("order", "limit", "offset", "with_", "emit", "late_rows", "history")
    consume(
        tree,
        "expressions",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "qualify",
        "distinct",
        "group_window",
        *after,
    )
    # SELECT k, SUM(v) + 1: the list is bound over ungrouped rows, with a placeholder for SUM(v)
    aggregates = AggregateList()
    plan = source.plan
    # SQL's order of evaluation: WHERE, windows of GROUP BY, the select list, OVER, QUALIFY, groups.
    if tree.args.get("where") is not None:
        source = _where(source, tree, context)
        plan = source.plan
    if tree.args.get("group_window") is not None:
        source = windowed(source, tree, _row_fields(plan, source.scope), context)
        plan = source.plan
    # A table function in the list, such as explode(..), multiplies the rows before the list is bound.
    source, listed = with_generator(source, tree, context)
    # min(COLUMNS(*)) is an item for each column
    listed = with_column_sets(listed, source.scope, context)
    plan = source.plan
    over = OverList()
    binder = ExpressionBinder(
        source.scope, context, "SELECT", aggregates, windows=over, subqueries=SubqueryValues(filtered)
    )
    items = list_items(listed, binder)
    fields = _row_fields(plan, source.scope)
    # groups is None: no GROUP BY was met yet, so outputs are over the rows of FROM
    bound = BoundSelect(
        plan,
        fields,
        items,
        [item.expression for item in items],
        None,
        aggregates,
        binder,
        bool(tree.args.get("distinct")),
        over,
    )
    # QUALIFY may add calls with OVER, so it is bound before the Over nodes are built
    condition = _qualified(tree, bound)
    having = tree.args.get("having")
    # SELECT .. FROM t ORDER BY COUNT(*) aggregates too, though its list has no aggregate.
    ordered_by_one = any(has_aggregate(node, context.is_aggregate) for node in order)
    if tree.args.get("group") is None and having is None and not aggregates.calls and not ordered_by_one:
        _refuse_marks(bound.outputs)
        return _with_over(bound, condition)
    return _with_over(_grouped(bound, tree, order), condition)


def _qualified(tree: exp.Select, bound: BoundSelect) -> Expression | None:
    """Return the bound condition of QUALIFY, or None. Raises SQL-1068 unless it or the list has a call with
    OVER.
    """
    clause = tree.args.get("qualify")
    if clause is None:
        return None
    # QUALIFY n = 1, where n is ROW_NUMBER() OVER (..) AS n in the list
    binder = replace(bound.binder, clause="QUALIFY")
    condition = binder.condition(_aliases_replaced(clause, bound.items, binder.scope))
    if not bound.over.calls:
        hint = "use WHERE, or HAVING behind GROUP BY"
        raise PenstockError(
            "SQL-1068",
            "QUALIFY filters by calls with OVER, and there is none",
            span=span_of(clause),
            hint=hint,
            sqlstate="42P20",
        )
    return condition


def _with_over(bound: BoundSelect, condition: Expression | None) -> BoundSelect:
    """Return the SELECT with its calls with OVER computed over the rows or groups, and QUALIFY as a filter
    above.

    Later clauses read the results by name only.
    """
    known = without_results(bound.binder.aliases, OverResult)
    closed = replace(bound, binder=replace(bound.binder, clause="ORDER BY", windows=None, aliases=known))
    if not bound.over.calls:
        return closed
    # without FROM there is one column nobody reads
    below = PreProjection(bound.rows, bound.fields or bound.rows.schema.fields)
    # SUM(SUM(v)) OVER (ORDER BY k) .. GROUP BY k: its argument is the group's SUM(v)
    calls = [
        call.map(lambda e: below.over(e if bound.groups is None else bound.groups.over(e)))
        for call in bound.over.calls
    ]
    # Partition keys, order keys and arguments are over the groups if there are any.
    plan, fields, positions = append_over(*below.rows(), calls)

    # positions[i]: the column of the i-th call's result
    def over_column(node: Expression) -> Expression:
        if not isinstance(node, OverResult):
            return node
        field = fields[positions[node.index]]
        return Column(
            field.type, field.nullable, index=positions[node.index], name=field.name, span=node.span
        )

    if condition is not None:
        predicate = condition if bound.groups is None else bound.groups.over(condition)
        # A subquery in QUALIFY is joined above the OVER node, because it may read a call's result.
        plan, (predicate,) = attach(plan, [predicate.transform(over_column)])
        plan = Filter(plan, predicate)
    return replace(
        closed, rows=plan, fields=fields, outputs=[output.transform(over_column) for output in bound.outputs]
    )


def _refuse_marks(expressions: Sequence[Expression]) -> None:
    for node in (node for expression in expressions for node in expression.walk()):
        if isinstance(node, GroupingMark):
            raise PenstockError(
                "SQL-1063",
                "GROUPING goes with GROUP BY",
                span=node.span,
                hint="add GROUP BY ROLLUP (..)",
                sqlstate="42803",
            )


def _with_alias_hint(error: PenstockError, tree: exp.Select) -> PenstockError:
    """Say of an unknown column of WHERE that it is an alias of the select list, if it is one."""
    if error.code == "SQL-1042":
        aliases = {item.alias.lower() for item in tree.expressions if item.alias}
        for name in tree.args["where"].find_all(exp.Identifier):
            if span_of(name) == error.span and name.name.lower() in aliases:
                error.hint = f"{name.name} is an alias of the select list: repeat its expression in WHERE"
    return error


def _where(source: FromClause, select: exp.Select, context: BindContext) -> FromClause:
    tree = select.args["where"]
    try:
        # Each subquery becomes a semi-join, an anti-join or a joined value.
        if has_subquery(tree):
            return filtered(source, [tree], context)
        # no binder of subqueries and no aggregates: WHERE allows neither here
        condition = ExpressionBinder(source.scope, context, "WHERE").condition(tree)
    except PenstockError as error:
        raise _with_alias_hint(error, select) from None
    # FROM a, b WHERE a.ts BETWEEN b.ts - .. AND b.ts bounds a join's time, though it is not in ON.
    joined, remaining = push_time_conditions(source, conjuncts(condition))
    # Nothing was pushed: one filter with the whole condition.
    if joined is source:
        return FromClause(Filter(source.plan, condition), source.scope)
    return FromClause(Filter(joined.plan, conjunction(remaining)) if remaining else joined.plan, joined.scope)


def _source(tree: exp.Select, context: BindContext, hints: BlockHints) -> FromClause:
    from_ = tree.args.get("from_")
    if from_ is None:
        # SELECT 1: one row without columns that have a name
        return FromClause(one_row(), Scope())
    return bind_from(from_.this, tree.args.get("joins") or [], context, hints)


def _row_fields(plan: LogicalPlan, scope: Scope) -> list[Field]:
    # Roles come from the scope: FROM may have dropped them although the plan's schema has them.
    fields = [replace(field, role=None) for field in plan.schema]
    # a scope without columns has no fields at all: SELECT 1
    for column in scope.columns:
        fields[column.index] = column.field
    return fields if scope.columns else []


# groups


def _grouped(bound: BoundSelect, tree: exp.Select, order: Sequence[exp.Expr]) -> BoundSelect:
    scope, context = bound.binder.scope, bound.binder.context
    clause = tree.args.get("group")
    # a key is over the rows: SUM(v) or a call with OVER among the keys is refused by the clause's name
    of_rows = without_results(bound.binder.aliases, AggregateResult, GroupingMark, OverResult)
    key_binder = replace(bound.binder, clause="GROUP BY", aggregates=None, windows=None, aliases=of_rows)
    sets = [_keys(nodes, bound.items, key_binder) for nodes in _sets(clause, bound.items)]
    if clause is not None and clause.expressions and clause.expressions[0].args.get("distinct"):
        # GROUP BY DISTINCT ROLLUP (a, b), ROLLUP (a): sets of the same keys in any order are equal
        sets = list({frozenset(keys): keys for keys in reversed(sets)}.values())[::-1]
    having = tree.args.get("having")
    condition = None
    if having is not None:
        # HAVING COUNT(*) > 1: its aggregates join those of the list, equal ones are computed once
        condition = replace(bound.binder, clause="HAVING", windows=None).condition(
            _aliases_replaced(having, bound.items, scope)
        )
    # Aggregates that only ORDER BY reads are computed with the others.
    for node in order:
        if has_aggregate(node, context.is_aggregate):
            bound.binder.bind(node)
    # every aggregate of list, HAVING and ORDER BY is known now, so the node can be built
    groups = _groups(bound, sets)
    plan = groups.plan
    if condition is not None:
        # HAVING is a filter above the groups; its subqueries are joined there.
        plan, (condition,) = attach(plan, [groups.over(condition)])
        plan = Filter(plan, condition)
    outputs = [groups.over(expression) for expression in bound.outputs]
    return replace(
        bound,
        rows=plan,
        fields=groups.fields or [Field("", f.type) for f in plan.schema],
        outputs=outputs,
        groups=groups,
    )


def _groups(bound: BoundSelect, sets: Sequence[Sequence[Expression]]) -> Groups:
    """Return the input grouped by the keys of each set. Subqueries in keys and aggregates are
    joined beneath.
    """
    # without FROM there is one column nobody reads
    below = PreProjection(bound.rows, bound.fields or bound.rows.schema.fields)
    # A key may be shared by several sets; its subquery is joined once.
    over_column = {key: below.over(key) for keys in sets for key in keys}
    calls = [call.map(below.over) for call in bound.aggregates.calls]
    rows, fields = below.rows()
    if len(sets) == 1:
        groups = group(
            rows, fields, [over_column[key] for key in sets[0]], [str(key) for key in sets[0]], calls
        )
    else:
        groups = group_sets(rows, fields, [[over_column[key] for key in keys] for keys in sets], calls)
    # The select list compares itself with the keys as they were written, before subqueries were joined.
    written = {at: key for key, at in over_column.items()}
    return replace(
        groups,
        keys=tuple((written[key], i) for key, i in groups.keys),
        marks=tuple((written[key], i) for key, i in groups.marks),
    )


def _sets(clause: exp.Expr | None, items: Sequence[Item]) -> list[list[exp.Expr]]:
    """Return the grouping sets of GROUP BY as trees: a single one without GROUPING SETS, ROLLUP or CUBE."""
    if clause is None:
        # SELECT SUM(v) FROM t: one set without keys, which has one row even for no input
        return [[]]
    # GROUP BY ALL: the position of each item of the list that is not computed of groups
    if clause.args.get("all"):
        own = (AggregateResult, GroupingMark, OverResult)
        return [
            [
                exp.Literal.number(position)
                for position, item in enumerate(items, 1)
                if not any(isinstance(node, own) for node in item.expression.walk())
            ]
        ]
    if isinstance(clause.expressions[0], GroupingSets):
        return [list(row.expressions) for row in clause.expressions[0].expressions]
    return [clause.expressions]


def _keys(nodes: Sequence[exp.Expr], items: Sequence[Item], binder: ExpressionBinder) -> list[Expression]:
    keys: list[Expression] = []
    for node in nodes:
        key = _key(node, items, binder)
        # GROUP BY a, a
        if key not in keys:
            keys.append(key)
    return keys


def _key(node: exp.Expr, items: Sequence[Item], binder: ExpressionBinder) -> Expression:
    """Bind one key of GROUP BY: a column, an alias of the list, a position in the list, or an expression. A
    column wins over an alias of its name.
    """
    # GROUP BY 2 is the second item of the list. It is bound again, since a key allows no aggregate.
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        item = items[position_of(node, len(items), "GROUP BY")]
        # a column of * has no tree; its expression is a plain column
        if item.tree is not None:
            return binder.bind(item.tree)
        return item.expression
    # A name that is no column of FROM may be an alias of the list.
    if isinstance(node, Reference) and len(node.expressions) == 1:
        name = node.expressions[0].name
        if not binder.scope.find(name):
            for item in items:
                if item.aliased and item.tree is not None and item.name.lower() == name.lower():
                    return binder.bind(item.tree)
    return binder.bind(node)


def position_of(node: exp.Expr, count: int, clause: str) -> int:
    """Return the index of a 1-based position in the select list; raise SQL-1050 outside of it."""
    position = int(node.name)
    if not 1 <= position <= count:
        message = f"{clause} {position} is no position in a list of {count} column{'s' if count != 1 else ''}"
        raise PenstockError(
            "SQL-1050", message, span=span_of(node), hint=f"positions go from 1 to {count}", sqlstate="42P10"
        )
    return position - 1


def _aliases_replaced(tree: exp.Expr, items: Sequence[Item], scope: Scope) -> exp.Expr:
    """Return a HAVING or QUALIFY condition with the select list's aliases, unless they name columns, replaced
    by their expressions.
    """

    def replaced(node: exp.Expr) -> exp.Expr:
        # A name inside a subquery is the subquery's own.
        # t.x with a table's name is never an alias of the list
        inside = isinstance(node, Reference) and node.find_ancestor(exp.Select) is None
        if inside and len(node.expressions) == 1 and not scope.find(node.expressions[0].name):
            for item in items:
                if (
                    item.aliased
                    and item.tree is not None
                    and item.name.lower() == node.expressions[0].name.lower()
                ):
                    # copied, because binding consumes the arguments of a tree
                    return item.tree.copy()
        return node

    return tree.transform(replaced)


# order


def sort_keys(order: exp.Expr, bound: BoundSelect) -> tuple[list[SortKey], list[Expression]]:
    """Return the keys of ORDER BY over the projection, and the extra columns that they need behind the select
    list.
    """
    extra: list[Expression] = []
    keys = []
    for node in order.expressions:
        consume(node, "this", "desc", "nulls_first")
        index = _output_index(node.this, bound, extra)
        # index < len(outputs): a column of the list; else one of extra, which a projection above drops
        expression = (*bound.outputs, *extra)[index]
        name = bound.names[index] if index < len(bound.names) else sort_name(node.this, bound)
        column = Column(expression.type, expression.nullable, index=index, name=name, span=span_of(node.this))
        keys.append(
            SortKey(
                orderable(column, node.this), bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
            )
        )
    return keys, extra


def sort_name(node: exp.Expr, bound: BoundSelect) -> str:
    """Return the column name of a sort key that is not in the select list."""
    return item_name(node, bound.binder.context)


def _output_index(node: exp.Expr, bound: BoundSelect, extra: list[Expression]) -> int:
    # ORDER BY 2 is the second item of the list.
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return position_of(node, len(bound.items), "ORDER BY")
    # A name of the list wins over a column of FROM. Several items of one name must be the same expression.
    if isinstance(node, Reference) and len(node.expressions) == 1:
        named = [
            i for i, item in enumerate(bound.items) if item.name.lower() == node.expressions[0].name.lower()
        ]
        if len(named) == 1 or (named and len({id(bound.outputs[i]) for i in named}) == 1):
            return named[0]
    # Other expressions are over the input. One that is in the list already adds no column.
    expression = bound.over_rows(_outputs_replaced(node, bound))
    for index, known in enumerate((*bound.outputs, *extra)):
        if known == expression:
            return index
    # DISTINCT merges rows, so a column outside the list has no single value.
    if bound.distinct:
        hint = "add it to the list, or order by what is there"
        raise PenstockError(
            "SQL-1051",
            "ORDER BY of a SELECT DISTINCT reads a column of its list",
            span=span_of(node),
            hint=hint,
            sqlstate="42P10",
        )
    extra.append(expression)
    return len(bound.outputs) + len(extra) - 1


def _outputs_replaced(tree: exp.Expr, bound: BoundSelect) -> exp.Expr:
    return _aliases_replaced(tree, bound.items, bound.binder.scope)
