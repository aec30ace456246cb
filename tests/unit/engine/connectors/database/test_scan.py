"""What of a scan the database does: the conjuncts that are sent keep every row the whole predicate keeps."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, INT, STRING, DataType
from penstock.engine.connectors.database.database import Condition
from penstock.engine.connectors.database.scan import conditions_of, scan_text, scanned
from penstock.engine.expressions.compiler import compile_predicate
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.planner.expressions.nodes import Column, Expression, conjunction
from tests.harness.length import examples
from tests.unit.optimizer.plans import call, lit

SCHEMA = Schema((Field("k", BIGINT), Field("s", STRING), Field("n", INT)))
K, S, N = (Column(field.type, True, index=i, name=field.name) for i, field in enumerate(SCHEMA))


def pushes_all(kind: DataType, operator: str) -> bool:
    return True


def test_columns_are_compared_with_constants_of_their_type() -> None:
    sent = {
        "k > 3": (call("greater", K, lit(3, BIGINT)), Condition(SCHEMA[0], ">", (3,))),
        "3 > k": (call("greater", lit(3, BIGINT), K), Condition(SCHEMA[0], "<", (3,))),
        "3 >= k": (call("greater_equal", lit(3, BIGINT), K), Condition(SCHEMA[0], "<=", (3,))),
        "s = 'a'": (call("equal", S, lit("a", STRING)), Condition(SCHEMA[1], "=", ("a",))),
        "s IS NULL": (call("is_null", S), Condition(SCHEMA[1], "IS NULL")),
        "n IN": (call("in", N, lit(1), lit(2)), Condition(SCHEMA[2], "IN", (1, 2))),
    }
    for name, (part, condition) in sent.items():
        assert conditions_of(part, SCHEMA.fields, pushes_all) == (condition,), name


def test_what_a_database_may_decide_otherwise_is_not_sent() -> None:
    kept = {
        "two types": call("equal", N, lit(3, BIGINT)),
        "NULL": call("equal", N, lit(None)),
        "two columns": call("equal", K, N),
        "an OR": call("or", call("is_null", K), call("is_null", S)),
        "IN with NULL": call("in", N, lit(1), lit(None)),
        "a long IN": call("in", N, *[lit(i) for i in range(501)]),
        "not equal": call("not_equal", N, lit(1)),
    }
    for name, part in kept.items():
        assert conditions_of(part, SCHEMA.fields, pushes_all) == (), name
    both = conjunction((call("less", N, lit(1)), kept["NULL"], call("is_not_null", S)))
    assert [c.operator for c in conditions_of(both, SCHEMA.fields, pushes_all)] == ["<", "IS NOT NULL"]
    assert conditions_of(both, SCHEMA.fields, lambda kind, operator: kind != STRING) == (
        Condition(SCHEMA[2], "<", (1,)),
    )
    assert conditions_of(None, SCHEMA.fields, pushes_all) == ()


ROWS = [(k, s, n) for k in (None, 1, 2**62) for s in (None, "", "a", "A") for n in (None, -1, 1)]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> CatalogTable:
    path = tmp_path_factory.mktemp("scan") / "facts.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (K INTEGER, n INTEGER, s TEXT)")
        database.executemany("INSERT INTO t (k, s, n) VALUES (?, ?, ?)", ROWS)
    return CatalogTable("t", SCHEMA, SCHEMA, {"connector": "sqlite", "table-name": "t", "path": str(path)})


PARTS = st.one_of(
    st.builds(call, st.sampled_from(["equal", "less", "greater_equal", "not_equal"]), st.just(N), st.sampled_from([lit(0), lit(1), lit(None)])),
    st.builds(call, st.sampled_from(["equal", "less"]), st.sampled_from([lit(1, BIGINT), lit(2**62, BIGINT)]), st.just(K)),
    st.builds(call, st.sampled_from(["equal", "less"]), st.just(S), st.sampled_from([lit("a", STRING), lit("", STRING)])),
    st.builds(call, st.sampled_from(["is_null", "is_not_null"]), st.sampled_from([K, S, N])),
)  # fmt: skip


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(parts=st.lists(PARTS, min_size=1, max_size=3))
def test_every_row_that_the_predicate_keeps_is_scanned(table: CatalogTable, parts: list[Expression]) -> None:
    predicate = conjunction(tuple(parts))
    keep = compile_predicate(predicate, EvaluationContext("UTC"))
    found = [row for b in scanned(table, (0, 1, 2), predicate) for row in b.filter(keep(b)).to_pylist()]
    whole = [row for b in scanned(table, (0, 1, 2), None) for row in b.filter(keep(b)).to_pylist()]
    assert len([row for b in scanned(table, (0, 1, 2), None) for row in b.to_pylist()]) == len(ROWS)
    assert found == whole


def test_columns_have_their_declared_names_and_rows_of_no_columns_are_counted(table: CatalogTable) -> None:
    (batch,) = scanned(table, (2, 0), None)
    assert batch.schema == Schema((SCHEMA[2], SCHEMA[0])).to_arrow()
    assert batch.column(1).to_pylist() == [row[0] for row in ROWS]
    assert sum(b.num_rows for b in scanned(table, (), None)) == len(ROWS)


def test_the_text_of_a_scan_is_what_is_sent(table: CatalogTable) -> None:
    predicate = call("less", Column(INT, True, index=1, name="n"), lit(1))
    assert scan_text(table, (0, 2), predicate) == 'SELECT "K", "n" FROM "t" WHERE "n" < 1'
