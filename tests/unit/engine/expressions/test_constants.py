"""A constant in any place of any expression: written, NULL, or known only when the row comes (the current
time), the answer is a column's of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import to_arrow
from penstock.engine.expressions import compile_expression
from penstock.engine.expressions.compiler import literal_scalar
from penstock.engine.expressions.datum import repeated
from penstock.engine.expressions.registry import CLOCK_FUNCTIONS
from penstock.planner.expressions.nodes import Call, Column, Expression, Literal
from penstock.planner.expressions.python_calls import python_call
from penstock.planner.table_api.udf import udf
from tests.harness.length import of_length
from tests.unit.engine.expressions import (
    condition_cases,
    json_cases,
    nested_cases,
    spark_cases,
    word_cases,
)

COUNT = 3
CORPORA = (
    "nested_cases",
    "word_cases",
    "json_cases",
    "condition_cases",
    "spark_cases",
    "lambdas",
    "python_functions",
)
KINDS = ("column", "literal", "now", "null")
# constants that say what type the result has
_OF_ITS_TYPE = {("field", 1), ("from_json", 1), ("round", 1), ("ceil", 1), ("floor", 1), ("bround", 1)}
_CORPORA = (nested_cases, word_cases, json_cases, condition_cases)


LAMBDAS = """
transform(a, e -> e + n); transform(c, e -> i); filter(a, (e, j) -> e > n OR j = i); exists(a, e -> e = n); forall(a, e -> e > n OR e IS NULL)
aggregate(a, n, (s, e) -> s + coalesce(e, i)); aggregate(a, 0, (s, e) -> s + 1, s -> s * n); zip_with(a, c, (e, g) -> coalesce(e, g, n))
map_filter(m, (j, v) -> v > n); transform_keys(m, (j, v) -> concat(j, k)); transform_values(m, (j, v) -> v + i); transform(a, e -> r)
transform(a, e -> transform(c, g -> coalesce(e + g, n, i)))
"""


PYTHON = [
    udf(["INT", "INT"], "INT")(pc.add),
    udf(["INT", "INT"], "STRING", mode="row")(lambda a, b: f"{a} {b}"),
    udf(["INT"], "ARRAY<INT>", mode="row")(lambda a: None if a is None else [a, 1]),
    udf(["INT"], "INT")(
        lambda column: column if isinstance(column, pa.Array) and len(column) == COUNT else None
    ),
    udf([], "INT")(lambda: 7),
]


def cases(name: str) -> Iterator[tuple[Expression, pa.RecordBatch]]:
    """Every expression that is compared with Spark, over rows of no NULL and of the first ones."""
    corpus = next((c for c in _CORPORA if c.__name__.endswith(name)), None)
    if name == "lambdas":
        batch, texts = (
            nested_cases.rows(),
            [text for line in LAMBDAS.strip().splitlines() for text in line.split("; ")],
        )
        yield from ((nested_cases.bound(text), batch) for text in texts)
    elif name == "python_functions":
        batch = spark_cases.rows()
        numbers = [spark_cases.column("n"), spark_cases.column("h")]
        yield from (
            (python_call("f", called, numbers[: len(called.arg_types)], None), batch) for called in PYTHON
        )
    elif corpus is not None:
        batch = corpus.rows()
        yield from ((nested_cases.bound(text, corpus.COLUMNS), batch) for text in corpus.texts())
    else:
        batch = spark_cases.rows()
        yield from (
            (expression, batch) for family in spark_cases.FAMILIES.values() for _, expression in family()
        )


def shapes(name: str) -> Iterator[tuple[Expression, pa.RecordBatch]]:
    """One case of each form: the same functions over the same types."""
    seen = set()
    for expression, batch in cases(name):
        typed = expression.transform(
            lambda node: (
                replace(node, name=f"{node.type} {node.index % 2}") if isinstance(node, Column) else node
            )
        )
        form = str(
            typed.transform(
                lambda node: (
                    Column(node.type, True, index=0, name=str(node.type))
                    if isinstance(node, Literal)
                    else node
                )
            )
        )
        if form not in seen:
            seen.add(form)
            yield expression, batch


def leaves(expression: Expression) -> list[Expression]:
    """Columns and constants, each once, without constants that are part of a type."""
    calls = [node for node in expression.walk() if isinstance(node, Call)]
    fixed = {
        id(arg)
        for call in calls
        for place, arg in enumerate(call.args)
        if (call.function, place) in _OF_ITS_TYPE
    }
    return list(
        dict.fromkeys(
            node for node in expression.walk() if isinstance(node, Column | Literal) and id(node) not in fixed
        )
    )


def assignments(count: int) -> Iterator[tuple[str, ...]]:
    """Which leaf is what: each alone in every way among columns, among constants and among others that are
    known late.
    """
    seen = dict.fromkeys(
        tuple(one if i == place else most for i in range(count))
        for most in KINDS[:3]
        for place in range(count)
        for one in KINDS
    )
    yield from seen or [()]


class Trial:
    """One expression whose leaves are all one value each, as columns or otherwise."""

    def __init__(self, expression: Expression, batch: pa.RecordBatch, row: int) -> None:
        self.expression = expression
        self.leaves = leaves(expression)
        self.values = [
            batch.column(leaf.index)[row] if isinstance(leaf, Column) else literal_scalar(leaf)
            for leaf in self.leaves
        ]
        self.pinned = frozenset(
            i for i, leaf in enumerate(self.leaves) if isinstance(leaf, Literal) and self._must_be_constant(i)
        )
        self._known: dict[tuple[str, ...], object] = {}

    def _must_be_constant(self, place: int) -> bool:
        """Whether the expression is refused, before any row, when a constant of it is a column."""
        try:
            compile_expression(self._with({place: Column(self.leaves[place].type, True, index=0)}))
        except PenstockError as error:
            assert not error.code.startswith("INT"), (str(self.expression), error.code)
            return True
        return False

    def _with(self, nodes: Mapping[int, Expression]) -> Expression:
        by_leaf = {leaf: nodes[i] for i, leaf in enumerate(self.leaves) if i in nodes}
        return self.expression.transform(
            lambda node: by_leaf.get(node, node) if isinstance(node, Column | Literal) else node
        )

    def outcome(self, kinds: tuple[str, ...]) -> object:
        """The values, or the code of the error, of the expression with its leaves as said; whatever else
        is raised is a defect.
        """
        nodes = {i: self._node(i, kind) for i, kind in enumerate(kinds) if i not in self.pinned}
        columns = [
            pa.nulls(COUNT, value.type) if "null" in kind else pa.repeat(value, COUNT)
            for value, kind in zip(self.values, kinds, strict=True)
        ]
        batch = pa.record_batch([*columns, pa.nulls(COUNT)], names=[f"c{i}" for i in range(len(columns) + 1)])
        try:
            result = compile_expression(self._with(nodes))(batch)
        except PenstockError as error:
            assert not error.code.startswith("INT"), error
            return error.code
        assert len(result) == COUNT and result.type == to_arrow(self.expression.type)
        result.validate(full=True)
        return repr(result.to_pylist())

    def _node(self, place: int, kind: str) -> Expression:
        leaf = self.leaves[place]
        if "column" in kind:
            return Column(leaf.type, True, index=place)
        if kind == "now":
            return Call(leaf.type, True, function=f"now {place}")
        return Literal(
            leaf.type, kind == "null", value=None if kind == "null" else self.values[place].as_py()
        )

    def wanted(self, kinds: tuple[str, ...]) -> object:
        """The outcome where all leaves are columns, of NULL where they are NULL here."""
        columns = tuple("column of null" if kind == "null" else "column" for kind in kinds)
        if columns not in self._known:
            self._known[columns] = self.outcome(columns)
        return self._known[columns]


def disagreements(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What is not as with columns, in a line each."""
    for place, value in enumerate(trial.values):
        monkeypatch.setitem(CLOCK_FUNCTIONS, f"now {place}", lambda _, value=value: value)
    for kinds in assignments(len(trial.leaves)):
        wanted, found = trial.wanted(kinds), trial.outcome(kinds)
        if found != wanted:
            yield f"{trial.expression} with {dict(zip(map(str, trial.leaves), kinds, strict=True))}: {found}, of columns {wanted}"


@pytest.mark.longer
@pytest.mark.parametrize("corpus", CORPORA)
def test_a_constant_is_as_a_column_of_it(corpus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [
        line
        for expression, batch in islice(shapes(corpus), 0, None, of_length(6, 1))
        for line in disagreements(Trial(expression, batch, 1), monkeypatch)
    ]
    assert not wrong, f"{len(wrong)}, such as {wrong[:5]}"


def test_a_kernel_that_cannot_take_a_late_constant_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "penstock.engine.expressions.compiler._with_late_constants", lambda run, data, constants: run(*data)
    )
    (trial,) = [
        Trial(expression, batch, 1)
        for expression, batch in cases("nested_cases")
        if str(expression) == "array_append(a, n)"
    ]
    with pytest.raises(AssertionError):
        list(disagreements(trial, monkeypatch))


@pytest.mark.parametrize("count", [1, 5])
def test_a_repeated_value_is_that_of_arrow_whatever_its_type(count: int) -> None:
    values = [
        *(pa.scalar(-3, kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
        *(pa.scalar(value, pa.float64()) for value in (-0.0, math.inf)),
        *(pa.scalar(7, kind) for kind in (pa.date32(), pa.time64("us"), pa.duration("us"))),
        *(pa.scalar(-9, pa.timestamp("us", zone)) for zone in (None, "Europe/Berlin")),
        *(pa.scalar(None, kind) for kind in (pa.int64(), pa.timestamp("us"), pa.string())),
        *(pa.scalar(value) for value in (True, "text", b"", [1, 2])),
        pa.scalar(0.5, pa.float32()),
    ]
    for value in values:
        column = repeated(value, count)
        assert column.type == value.type and column.equals(pa.repeat(value, count)), value
