"""Parameters of a prepared statement: which there are, and the types that the binder derives for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import BIGINT, NULL, STRING, DataType, Null
from penstock.planner.binder.parameters import OpenParameter, Parameters, TypedValue
from penstock.planner.expressions.nodes import Cast, Column, Expression, Literal, Parameter
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.sort import Limit, Sort
from penstock.planner.statements import nodes
from penstock.planner.statements.nodes import Statement

Bind = Callable[[Parameters], LogicalPlan]


@dataclass(frozen=True)
class ParameterList:
    """The parameters of a statement in the order of their values. ``names`` are those of ``:name``, of ``$1``
    (which is named 1), or the numbers of ``?`` from 0; ``positional`` says which.
    """

    names: tuple[str, ...] = ()
    positional: bool = True
    row_counts: frozenset[str] = frozenset()
    """The parameters of LIMIT and OFFSET."""

    def bound(self, values: Sequence[object]) -> Parameters:
        """Return the values as the binder takes them."""
        # $1 and $3: the value of $2 is not asked for
        return list(values) if self.positional else dict(zip(self.names, values, strict=True))

    def ordered(self, params: Parameters) -> list[object] | None:
        """Return the values in the order of ``names``; None where they are not those of the statement."""
        if isinstance(params, Mapping):
            return [params[name] for name in self.names] if set(params) == set(self.names) else None
        if self.positional or not all(name.isdigit() for name in self.names):
            return list(params) if self.positional and len(params) == len(self.names) else None
        # $3 takes the third value, also where there is no $2
        numbers = [int(name) for name in self.names]
        return [params[number - 1] for number in numbers] if max(numbers) <= len(params) else None


def parameters_of(statement: Statement) -> ParameterList:
    """Return the parameters of a statement; those of a view or of a declaration are refused when it runs."""
    found = [node for tree in _trees(statement) for node in tree.find_all(exp.Placeholder)]
    positional = not any(node.this for node in found)
    # a clause that the parser copies has its placeholder twice
    keys = dict.fromkeys(map(_key, found))
    numbered = all(key.isdigit() for key in keys)
    names = tuple(sorted(keys, key=int) if numbered else keys)
    counts = {_key(node) for node in found if node.arg_key in ("limit", "offset")}
    return ParameterList(names, positional, frozenset(counts))


def infer_types(
    parameters: ParameterList,
    bind: Bind,
    given: Sequence[DataType | None] = (),
    otherwise: Sequence[DataType | None] = (),
) -> tuple[DataType, ...]:
    """Return the type of each parameter: the ``given`` one, or that of the first place that asks for one.
    Where none does it is that of ``otherwise``, and STRING where that has none.
    """
    declared = [given[i] if i < len(given) else None for i in range(len(parameters.names))]
    if all(declared):
        return tuple(kind for kind in declared if kind is not None)
    asked: dict[str, DataType] = dict.fromkeys(parameters.row_counts, BIGINT)
    # of the type NULL, which every place takes: the binder casts it to what the place asks for
    plan = bind(open_values(parameters, [kind or NULL for kind in declared]))

    def note(expression: Expression) -> Expression:
        for node in expression.walk():
            if isinstance(node, Cast) and isinstance(node.arg, Parameter) and not isinstance(node.type, Null):
                asked.setdefault(node.arg.name, node.type)
        return expression

    for node in plan.walk():
        node.map_expressions(note)
        _note_inserted(node, asked)
    last = [otherwise[i] if i < len(otherwise) else None for i in range(len(parameters.names))]
    return tuple(
        kind or asked.get(name) or default or STRING
        for name, kind, default in zip(parameters.names, declared, last, strict=True)
    )


def _note_inserted(node: LogicalPlan, asked: dict[str, DataType]) -> None:
    """Note the types of parameters in the rows of ``INSERT .. VALUES (?, ?)``, which the table's columns ask
    for: the casts to them are above the rows.
    """
    if not isinstance(node, Project):
        return
    for expression in node.expressions:
        if isinstance(expression, Cast) and isinstance(column := expression.arg, Column):
            for name in _names_behind(node.input, column.index):
                asked.setdefault(name, expression.type)


def _names_behind(plan: LogicalPlan, index: int) -> Iterator[str]:
    """Yield the names of the parameters that are a column of a plan."""
    if isinstance(plan, Project):
        expression = plan.expressions[index]
        if isinstance(expression, Parameter) and isinstance(expression.type, Null):
            yield expression.name
        elif isinstance(expression, Column):
            yield from _names_behind(plan.input, expression.index)
    # rows of several parameters are a union of projections
    elif isinstance(plan, Union | Filter | Sort | Limit):
        for each in plan.inputs:
            yield from _names_behind(each, index)


def open_values(parameters: ParameterList, types: Sequence[DataType]) -> Parameters:
    """Return values that stand for the parameters, by which a statement is bound before it has any."""
    pairs = zip(parameters.names, types, strict=True)
    return parameters.bound([OpenParameter(name, kind) for name, kind in pairs])


def typed_values(
    parameters: ParameterList, types: Sequence[DataType], values: Sequence[object]
) -> Parameters:
    """Return the values of an execution, each of its parameter's type."""
    return parameters.bound([TypedValue(kind, value) for kind, value in zip(types, values, strict=True)])


def open_parameters(plan: LogicalPlan) -> frozenset[str]:
    """Return the names of the parameters in the expressions of a plan."""
    found: set[str] = set()

    def note(expression: Expression) -> Expression:
        found.update(node.name for node in expression.walk() if isinstance(node, Parameter))
        return expression

    for node in plan.walk():
        node.map_expressions(note)
    return frozenset(found)


def substitute(plan: LogicalPlan, values: Mapping[str, Expression]) -> LogicalPlan:
    """Return a plan with its parameters replaced by the values of their names."""

    def value_of(node: Expression) -> Expression:
        if not isinstance(node, Parameter):
            return node
        value = values[node.name]
        # the place in the text is that of the parameter: an error of the value is shown there
        return replace(value, span=node.span) if isinstance(value, Literal) else value

    return plan.transform(
        lambda node: node.map_expressions(lambda expression: expression.transform(value_of))
    )


def _key(node: exp.Expr) -> str:
    return node.name if node.this else str(node.meta["index"])


def _trees(statement: Statement) -> list[exp.Expr]:
    match statement:
        case nodes.Query(tree=tree):
            return [tree]
        case nodes.Insert(query=query) | nodes.Subscribe(query=query) | nodes.CreateTableAs(query=query):
            return [query.tree]
        case nodes.ExecuteStatementSet(inserts=inserts):
            return [insert.query.tree for insert in inserts]
        case nodes.Explain(statement=inner):
            return _trees(inner)
    return []
