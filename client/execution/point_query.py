"""Point queries: SELECT .. FROM a materialized view WHERE key = value, answered from an index of the view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.functions.registry import is_deterministic
from penstock.catalog.schema import Schema
from penstock.catalog.tables import MaterializedView
from penstock.catalog.types import STRING, DataType, Double, Float, is_integer, to_arrow
from penstock.client.results.result import Result, Shape
from penstock.client.results.result_stream import TableStream
from penstock.planner.expressions.expression_properties import CLOCK_FUNCTIONS
from penstock.planner.expressions.nodes import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    Parameter,
    conjuncts,
)
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import Sink

Evaluate = Callable[[pa.RecordBatch], pa.Array]
_MOST_ROWS, _MOST_BYTES = 100, 1 << 20
"""Of a key, that are handled in between: about a millisecond's work."""
_EVALUATED = (Call, Case, Cast, Column, Literal, Parameter)


@dataclass(frozen=True)
class PointPlan:
    """What is recognized of a plan: the view, the key columns by position, and the value each is compared
    with. ``steps`` are the filters and projections above the scan, from below.
    """

    scan: Scan
    key: tuple[int, ...]
    values: tuple[Parameter | Literal, ...]
    steps: tuple[Filter | Project, ...]
    schema: Schema

    @property
    def view(self) -> str:
        """The name of the view."""
        return self.scan.table.name


def point_plan(bound: LogicalPlan) -> PointPlan | None:
    """Return what a bound plan asks of one view, or None where it is no point query."""
    steps: list[Filter | Project] = []
    node = bound.inputs[0] if isinstance(bound, Sink) and bound.table is None else bound
    schema = node.schema
    while isinstance(node, Filter | Project):
        steps.append(node)
        node = node.inputs[0]
    if (
        not isinstance(node, Scan)
        or not isinstance(node.table, MaterializedView)
        or node.predicate is not None
        or "follow" in node.table.options
        or "snapshot" in node.table.options
        or not all(map(_is_evaluated, _expressions(steps)))
    ):
        return None
    steps.reverse()
    found = _key_of(steps, len(node.columns))
    # one of the view's whole key is enough to be fast; without any there is nothing to look up
    return PointPlan(node, *found, tuple(steps), schema) if found is not None else None


def _expressions(steps: Sequence[Filter | Project]) -> list[Expression]:
    return [
        expression
        for step in steps
        for expression in ((step.predicate,) if isinstance(step, Filter) else step.expressions)
    ]


def _is_evaluated(expression: Expression) -> bool:
    """Return whether an expression depends on its row and parameters alone."""
    return all(
        isinstance(node, _EVALUATED)
        and not (
            isinstance(node, Call)
            and (node.function in CLOCK_FUNCTIONS or not is_deterministic(node.function))
        )
        for node in expression.walk()
    )


def _key_of(
    steps: Sequence[Filter | Project], columns: int
) -> tuple[tuple[int, ...], tuple[Parameter | Literal, ...]] | None:
    """Return the scan's columns that the filters compare with one value, and the values."""
    # which column of the scan each column is, as long as it is one
    sources: list[int | None] = list(range(columns))
    found: dict[int, Parameter | Literal] = {}
    for step in steps:
        if isinstance(step, Project):
            sources = [sources[each.index] if isinstance(each, Column) else None for each in step.expressions]
            continue
        for part in conjuncts(step.predicate):
            compared = _compared(part)
            if compared is not None and (source := sources[compared[0].index]) is not None:
                found.setdefault(source, compared[1])
    if not found:
        return None
    key = tuple(sorted(found))
    return key, tuple(found[column] for column in key)


def _compared(part: Expression) -> tuple[Column, Parameter | Literal] | None:
    """Return ``column = value`` of one type, in either order."""
    if not isinstance(part, Call) or part.function != "equal":
        return None
    left, right = part.args
    if isinstance(right, Column):
        left, right = right, left
    if isinstance(left, Column) and isinstance(right, Parameter | Literal) and left.type == right.type:
        return left, right
    return None


@dataclass(frozen=True)
class PointStep:
    """A compiled filter or projection; whether it reads parameters beside the columns."""

    is_filter: bool
    compiled: list[Evaluate]
    reads_parameters: bool


def _only_compares_key(plan: PointPlan) -> bool:
    """Return whether the first step is the comparison of the key, of types whose values are equal in Python
    where they are in SQL: NaN equals NaN in SQL only.
    """
    first = plan.steps[0]
    if not isinstance(first, Filter) or len(conjuncts(first.predicate)) != len(plan.key):
        return False
    kinds = [plan.scan.schema[index].type for index in plan.key]
    return all(_compared(part) is not None for part in conjuncts(first.predicate)) and not any(
        isinstance(kind, Float | Double) for kind in kinds
    )


@dataclass(frozen=True)
class PointArguments:
    """The values of parameters by name, and those of the key, each an array of one."""

    scalars: dict[str, pa.Array]
    key: list[pa.Array]


class PointQuery:
    """A compiled point query. ``arguments`` has the key to look up, ``result`` evaluates filters and
    projections over the rows found. Values of parameters are columns beside those of the rows, so that it is
    compiled once.
    """

    def __init__(self, plan: PointPlan, zone: str) -> None:
        # the compiler loads the engine's kernels: only where there is a point query
        from penstock.engine.expressions.compiler import compile_expression
        from penstock.engine.expressions.kernel_factory import EvaluationContext

        self.plan = plan
        self._parameters = _parameters_of(plan)
        context = EvaluationContext(zone=zone)
        self._steps: list[PointStep] = []
        width = len(plan.scan.columns)
        for step in plan.steps:
            places = {name: width + i for i, name in enumerate(self._parameters)}
            expressions = (step.predicate,) if isinstance(step, Filter) else step.expressions
            compiled = [compile_expression(_with_columns(each, places), context) for each in expressions]
            reads = any(isinstance(node, Parameter) for each in expressions for node in each.walk())
            self._steps.append(PointStep(isinstance(step, Filter), compiled, reads))
            width = width if isinstance(step, Filter) else len(expressions)
        self._arrow = plan.schema.to_arrow()
        self._is_plain = _only_compares_key(plan)
        self.only_compares = _only_compares(plan, self._parameters)
        self._plain_types = _plain_types(plan) if self.only_compares else {}
        self._key_names = tuple(value.name for value in plan.values if isinstance(value, Parameter))
        self._columns = _result_columns(plan) if self._is_plain else None
        self.key_columns = tuple(plan.scan.columns[index] for index in plan.key)

    def arguments(self, values: Mapping[str, Expression]) -> PointArguments:
        """Return the values of the parameters, which are literals, and the key that they make."""
        scalars = {name: _array(values[name]) for name in self._parameters}
        key = [
            scalars[value.name] if isinstance(value, Parameter) else _array(value)
            for value in self.plan.values
        ]
        return PointArguments(scalars, key)

    def plain_arguments(self, values: Mapping[str, object]) -> PointArguments | None:
        """Return the same of Python values whose class is that of their parameter's type, which most are:
        they need no literal. None for others.
        """
        scalars = {}
        for name, (python, arrow) in self._plain_types.items():
            value = values[name]
            if type(value) is not python:
                return None
            try:
                scalars[name] = pa.array([value], arrow)
            # an integer beyond its type, or a text with half a surrogate pair
            except (pa.ArrowInvalid, OverflowError, UnicodeError):
                return None
        return PointArguments(scalars, [scalars[name] for name in self._key_names]) if scalars else None

    def result(self, found: pa.RecordBatch, arguments: PointArguments) -> Result:
        """Return the result of the rows that a lookup of the key has found."""
        return Result(Shape(self.plan.schema), TableStream(self._rows(found, arguments)))

    def _rows(self, found: pa.RecordBatch, arguments: PointArguments) -> pa.Table:
        scalars, key = arguments.scalars, arguments.key
        if self._columns is not None and found.num_rows == 1:
            # one row, compared with its key and nothing else: an eighth of what the compiled steps take
            if not _has_key(found, self.key_columns, key):
                return self._arrow.empty_table()
            return pa.Table.from_arrays([found.column(index) for index in self._columns], schema=self._arrow)
        columns = self.plan.scan.columns
        rows = pa.RecordBatch.from_arrays(
            [found.column(index) for index in columns], names=[str(i) for i in range(len(columns))]
        )
        steps = self._steps
        if self._is_plain and rows.num_rows == 1:
            # one row, and nothing but the key to compare: a tenth of what the compiled filter takes
            same = _has_key(rows, self.plan.key, key)
            rows, steps = rows if same else rows.slice(0, 0), steps[1:]
        for step in steps:
            if not rows.num_rows:
                break
            whole = _beside(rows, scalars) if step.reads_parameters else rows
            made = [evaluate(whole) for evaluate in step.compiled]
            if step.is_filter:
                rows = rows.filter(pc.fill_null(made[0], False))
            else:
                rows = pa.RecordBatch.from_arrays(made, names=[str(i) for i in range(len(made))])
        if not rows.num_rows:
            return self._arrow.empty_table()
        return pa.Table.from_arrays(rows.columns, schema=self._arrow)


def _only_compares(plan: PointPlan, parameters: Sequence[str]) -> bool:
    """Return whether each parameter is a value of the key and nothing else."""
    keys = {value.name for value in plan.values if isinstance(value, Parameter)}
    uses = [node for each in _expressions(plan.steps) for node in each.walk()]
    return keys == set(parameters) and sum(isinstance(node, Parameter) for node in uses) == len(keys)


def _plain_types(plan: PointPlan) -> dict[str, tuple[type, pa.DataType]]:
    """Return the class and the Arrow type of each parameter by name; none where a value of the key is no
    parameter, or neither an integer nor a text.
    """
    found: dict[str, tuple[type, pa.DataType]] = {}
    for value in plan.values:
        python = int if is_integer(value.type) else str if value.type == STRING else None
        if python is None or not isinstance(value, Parameter):
            return {}
        found[value.name] = python, to_arrow(value.type)
    return found


def _has_key(rows: pa.RecordBatch, columns: Sequence[int], key: Sequence[pa.Array]) -> bool:
    """Return whether the first row has the values of a key; NULL is none."""
    return all(
        rows.column(index)[0].as_py() == value[0].as_py() is not None
        for index, value in zip(columns, key, strict=True)
    )


def is_small(found: pa.RecordBatch) -> bool:
    """Return whether the rows of a key are few enough to be handled in between."""
    # the size of a slice takes as long to count as its rows to find
    return found.num_rows <= 1 or (found.num_rows <= _MOST_ROWS and found.nbytes <= _MOST_BYTES)


def _result_columns(plan: PointPlan) -> tuple[int, ...] | None:
    """Return the view's column of each result column; None where a step computes something or filters by
    more than the key.
    """
    taken = plan.scan.columns
    for step in plan.steps[1:]:
        if not isinstance(step, Project) or not all(isinstance(each, Column) for each in step.expressions):
            return None
        taken = tuple(taken[each.index] for each in step.expressions if isinstance(each, Column))
    return tuple(taken)


def _parameters_of(plan: PointPlan) -> tuple[str, ...]:
    nodes = (node for each in _expressions(plan.steps) for node in each.walk())
    return tuple(dict.fromkeys(node.name for node in nodes if isinstance(node, Parameter)))


def _with_columns(expression: Expression, places: Mapping[str, int]) -> Expression:
    """Return an expression that reads parameters from columns."""
    return expression.transform(
        lambda node: (
            Column(node.type, True, index=places[node.name], name=node.name, span=node.span)
            if isinstance(node, Parameter)
            else node
        )
    )


def _array(value: Expression) -> pa.Array:
    assert isinstance(value, Literal)
    return _of_type(value.value, value.type)


def _of_type(value: object, kind: DataType) -> pa.Array:
    return pa.array([value], to_arrow(kind))


def _beside(rows: pa.RecordBatch, scalars: Mapping[str, pa.Array]) -> pa.RecordBatch:
    if not scalars:
        return rows
    beside = [
        value if rows.num_rows == 1 else pa.repeat(value[0], rows.num_rows) for value in scalars.values()
    ]
    columns = [*rows.columns, *beside]
    return pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
