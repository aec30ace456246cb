"""Prepared statements: parameters and columns before anything runs, values at each execution, and a plan that
is bound once.
"""

from datetime import date
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, DATE, STRING
from penstock.client.session import Session


@pytest.fixture
def session():
    session = Session()
    session.execute("CREATE TABLE t (k BIGINT, name STRING, price DECIMAL(10, 2), ts TIMESTAMP(3)) "
                    "WITH ('connector' = 'datagen', 'number-of-rows' = '5')")  # fmt: skip
    session.execute("CREATE VIEW v AS SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, NULL)) AS x (k, name)")
    yield session
    session.close()


PARAMETERS = [
    ("SELECT 1", []),
    ("SELECT ? + 1, ?", ["INT", "STRING"]),
    ("SELECT * FROM t WHERE k = $1 AND name LIKE $2", ["BIGINT", "STRING"]),
    ("SELECT * FROM t WHERE k IN (?, ?)", ["BIGINT", "BIGINT"]),
    ("SELECT * FROM t WHERE price BETWEEN $1 AND $2 AND ts > $3", ["DECIMAL(10, 2)"] * 2 + ["TIMESTAMP(3)"]),
    ("SELECT k FROM t LIMIT ? OFFSET ?", ["BIGINT", "BIGINT"]),
    ("SELECT k, COUNT(*) FROM t GROUP BY k HAVING COUNT(*) > :least", ["BIGINT"]),
    ("SELECT CAST($1 AS DATE)", ["DATE"]),
    ("SELECT $2, $1 + 1", ["INT", "STRING"]),
    ("EXPLAIN SELECT * FROM t WHERE k = ?", ["BIGINT"]),
    ("SUBSCRIBE SELECT * FROM t WHERE k = ?", ["BIGINT"]),
    ("SHOW TABLES", []),
]


@pytest.mark.parametrize(("sql", "types"), PARAMETERS)
def test_types_of_parameters_are_those_their_places_ask_for(session, sql, types):
    assert [str(kind) for kind in session.prepare(sql).parameters] == types


def test_a_given_type_is_kept(session):
    prepared = session.prepare("SELECT ? AS a, ? AS b", [BIGINT])
    assert [str(kind) for kind in prepared.parameters] == ["BIGINT", "STRING"]
    assert [str(field.type) for field in prepared.schema] == ["BIGINT", "STRING"]


@pytest.mark.parametrize(
    ("sql", "columns", "kind", "mode"),
    [
        ("SELECT k, ? || 'x' AS y FROM t", ["k", "y"], "SELECT", "append"),
        ("SUBSCRIBE SELECT k FROM t", ["op", "k"], "SUBSCRIBE", "append"),
        ("EXPLAIN SELECT k FROM t", ["plan"], "EXPLAIN", "append"),
        ("SHOW DATABASES", ["database", "current"], "SHOW", "append"),
        ("SET 'parallelism.default'", ["key", "value"], "SET", "append"),
        ("SET 'parallelism.default' = '1'", None, "SET", "append"),
        ("CREATE VIEW w AS SELECT 1 AS a", None, "CREATE VIEW", "append"),
        ("SELECT k, COUNT(*) AS n FROM t GROUP BY k", ["k", "n"], "SELECT", "upsert"),
    ],
)
def test_columns_are_known_before_anything_runs(session, sql, columns, kind, mode):
    prepared = session.prepare(sql)
    names = None if prepared.schema is None else [field.name for field in prepared.schema]
    assert (names, prepared.kind, prepared.change_mode) == (columns, kind, mode)
    assert session.jobs() == []
    # nothing was created either
    assert session.catalog.find("w") is None


def rows(result):
    return [tuple(row.values()) for row in result.final_rows().to_pylist()]


def test_each_execution_has_its_own_values(session):
    prepared = session.prepare("SELECT name FROM v WHERE k = $1")
    assert [rows(prepared.execute([value])) for value in (1, 2, 9, None)] == [[("a",)], [("b",)], [], []]


def test_numbered_parameters_take_a_sequence_or_a_dict(session):
    prepared = session.prepare("SELECT $2 AS a, $1 + 1 AS b")
    assert rows(prepared.execute([1, "x"])) == rows(prepared.execute({"1": 1, "2": "x"})) == [("x", 2)]


def test_a_value_beyond_its_type_is_compared_as_it_is(session):
    prepared = session.prepare("SELECT k FROM v WHERE k > ? ORDER BY k")
    assert rows(prepared.execute([1.5])) == [(2,), (3,)]
    assert rows(prepared.execute([1 << 40])) == []


def test_announced_columns_stay_what_they_are(session):
    assert rows(session.prepare("SELECT ? AS x").execute([5])) == [("5",)]


def test_a_wrong_number_of_values_is_refused(session):
    with pytest.raises(PenstockError) as error:
        session.prepare("SELECT ?, ?").execute([1])
    assert error.value.code == "SQL-1013"


def test_a_wrong_insert_is_refused_when_it_is_prepared(session):
    with pytest.raises(PenstockError) as error:
        session.prepare("INSERT INTO nothing SELECT ?")
    assert error.value.code == "SQL-1041" and "nothing" in str(error.value)


def test_two_statements_are_refused(session):
    with pytest.raises(PenstockError) as error:
        session.prepare("SELECT 1; SELECT 2")
    assert error.value.code == "CLI-6005"


@pytest.fixture
def bindings(session, monkeypatch):
    """The number of times that a statement was bound."""
    counted = []
    resolve = session.pipeline.resolve
    monkeypatch.setattr(session.pipeline, "resolve", lambda *given: counted.append(1) or resolve(*given))
    return counted


def test_a_statement_is_bound_once(session, bindings):
    prepared = session.prepare("SELECT name FROM v WHERE k = ?")
    before = len(bindings)
    assert [rows(prepared.execute([value])) for value in (1, 2)] == [[("a",)], [("b",)]]
    assert len(bindings) == before


@pytest.mark.parametrize(
    "change",
    [
        "CREATE OR REPLACE VIEW v AS SELECT * FROM (VALUES (1, 'z')) AS x (k, name)",
        "SET 'parallelism.default' = '2'",
        "CREATE DATABASE d; USE d; CREATE VIEW v AS SELECT * FROM (VALUES (1, 'z')) AS x (k, name)",
    ],
)
def test_a_change_of_names_or_settings_binds_it_again(session, bindings, change):
    prepared = session.prepare("SELECT name FROM v WHERE k = ?")
    for statement in session.parse(change):
        session.run(statement)
    before = len(bindings)
    assert rows(prepared.execute([1])) == [("a" if "SET" in change else "z",)]
    assert len(bindings) == before + 1


def test_files_named_by_a_path_are_bound_at_each_execution(session, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a\n1\n")
    prepared = session.prepare(f"SELECT * FROM '{path}'")
    assert rows(prepared.execute()) == [(1,)]
    path.write_text("a,b\n1,2\n")
    assert rows(prepared.execute()) == [(1, 2)]


def test_values_of_an_insert_have_the_types_of_its_columns(tmp_path: Path) -> None:
    session = Session({"bounded.backend": "duckdb"})
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json'"
    session.execute(f"CREATE TABLE t (a BIGINT, b STRING, c DATE) WITH ({options})")
    one = session.prepare("INSERT INTO t VALUES (?, ?, ?)")
    assert one.parameters == (BIGINT, STRING, DATE)
    two = session.prepare("INSERT INTO t (c, a) VALUES (?, ?), (DATE '2020-01-01', ?)")
    assert two.parameters == (DATE, BIGINT, BIGINT)
    assert two.execute((date(2021, 1, 1), 1, 2)).rowcount == 2
    session.close()
