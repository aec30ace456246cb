"""Spellings of PostgreSQL, DuckDB and Spark that mean other queries of ours: members of JSON, COLUMNS, RENAME,
``window_time(window)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

DOCUMENTS = ['{"a": {"b": [7, "x", null]}, "t": "u"}', "{}", None, "no json", '{"a": {"b": 1}}', "[1, 2]"]
ROWS = pa.table({"s": DOCUMENTS, "id": range(6), "ant": [3, 1, 2, None, 5, 4]})
MODES = ("streaming", "automatic")
TEXTS = (
    "s ->> 't'",
    "s -> 'a' -> 'b' ->> 1",
    "s -> 'a' -> 'b' ->> 2",
    "s #>> '{a,b,0}'",
    "s ->> 1",
    "s ->> '$.a.b'",
    "upper(s ->> 't')",
    "upper(s -> 'a' -> 'b' ->> 1)",
    "(s -> 'a' ->> 'b') = '1'",
    "CAST((s -> 'a' ->> 'b') AS VARCHAR) || '!'",
    "json_extract_path_text(s, 'a', 'b', 0)",
)
"""Expressions of which PostgreSQL's meaning is that of ``_member`` and DuckDB's words."""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb"})
    session.register("docs", ROWS)
    yield session
    session.close()


def _duckdb(text: str) -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    connection.register("ROWS", ROWS)
    return connection.sql(text)


def values(session: Session, text: str, mode: str) -> list[Any]:
    session.settings.set("execution.runtime-mode", mode)
    rows = session.execute(f"SELECT id, {text} AS x FROM docs").final_rows(PATIENCE_S).to_pylist()
    return [row["x"] for row in sorted(rows, key=lambda row: row["id"])]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", TEXTS)
def test_members_of_json_are_those_of_duckdb(session: Session, text: str, mode: str) -> None:
    words = text.replace("#>> '{a,b,0}'", "-> 'a' -> 'b' ->> 0").replace(
        "json_extract_path_text(s, 'a', 'b', 0)", "s -> 'a' -> 'b' ->> 0"
    )
    valid = _duckdb(
        f"SELECT id, {words} AS x FROM (SELECT id, CASE WHEN json_valid(s) THEN s END::JSON AS s FROM ROWS) ORDER BY id"
    ).fetchall()
    assert [_spaceless(x) for x in values(session, text, mode)] == [_spaceless(x) for _, x in valid]


def _spaceless(value: Any) -> Any:
    return value.replace(" ", "") if isinstance(value, str) else value


@pytest.mark.parametrize("mode", MODES)
def test_a_member_that_is_no_text_is_a_variant(session: Session, mode: str) -> None:
    assert values(session, "(s -> 'a' -> 'b' -> 0)::INT + 1", mode) == [8, None, None, None, None, None]
    assert values(session, "parse_json('{\"a\": {\"b\": \"q\"}}') -> 'a' ->> 'b'", mode) == ["q"] * 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("transform(array(1, 2), x -> x + 1)", [2, 3]),
        ("transform(array(1), x -> 'a')", ["a"]),
        ("filter(array(-1, 2), x -> -x < 0)", [2]),
        ("transform(array('{\"a\": 1}'), x -> x ->> 'a')", ["1"]),
    ],
)
def test_an_arrow_in_a_call_is_a_function(session: Session, text: str, expected: list[Any]) -> None:
    assert values(session, text, "streaming")[0] == expected


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("SELECT upper(s -> 'a') FROM docs", "SQL-1113", "write upper((s -> ..))"),
        ("SELECT s ->> s FROM docs", "SQL-1103", "element_at(from_json("),
        ("SELECT s ->> -1 FROM docs", "SQL-1103", "s -> 'list' ->> 0"),
        ("SELECT s ->> 'it''s' FROM docs", "SQL-1103", "element_at(from_json("),
        ("SELECT COLUMNS('zz') FROM docs", "SQL-1042", "the columns are s, id, ant"),
        ("SELECT COLUMNS('(') FROM docs", "SQL-1103", "COLUMNS(*)"),
        ("SELECT COLUMNS(['idd']) FROM docs", "SQL-1042", 'did you mean "id"?'),
        ("SELECT COLUMNS(c -> c LIKE 'a%') FROM docs", "SQL-1103", "COLUMNS(*)"),
        ("SELECT COLUMNS('id') + COLUMNS('ant') FROM docs", "SQL-1601", "an item for each"),
        ("SELECT id FROM docs WHERE COLUMNS('id') > 1", "SQL-1101", "write the columns out here"),
        ("SELECT * RENAME (idd AS x) FROM docs", "SQL-1042", 'did you mean "id"?'),
        ("SELECT * FROM docs LIMIT length('SPARK')", "SQL-1012", "LIMIT 10"),
    ],
)
def test_what_they_do_not_take_is_refused(session: Session, text: str, code: str, hint: str) -> None:
    with pytest.raises(PenstockError) as refused:
        session.execute(text)
    assert refused.value.code == code
    assert hint in (refused.value.hint or "")


QUERIES = (
    "SELECT MIN(COLUMNS(*)) FROM (SELECT id, ant FROM docs) AS t",
    "SELECT COLUMNS('^(id|ant)$') FROM docs",
    "SELECT COLUMNS(['ant', 'id']) + 1 FROM docs",
    "SELECT id % 2 AS p, MAX(COLUMNS(['ant', 'id'])) FROM docs GROUP BY p",
    "SELECT COALESCE(COLUMNS('a'), 0) FROM (SELECT ant, ant + 1 AS band FROM docs) AS t",
    "SELECT * EXCLUDE (s) RENAME (ant AS insect) FROM docs",
    "WITH t AS MATERIALIZED (SELECT id FROM docs), u AS NOT MATERIALIZED (SELECT ant FROM docs) SELECT * FROM t, u",
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", QUERIES)
def test_duckdb_gives_the_same(session: Session, text: str, mode: str) -> None:
    session.settings.set("execution.runtime-mode", mode)
    ours = session.execute(text).final_rows(PATIENCE_S)
    other = _duckdb(text.replace("docs", "ROWS"))
    assert ours.column_names == other.columns
    key = repr
    assert sorted(zip(*ours.to_pydict().values(), strict=True), key=key) == sorted(other.fetchall(), key=key)


def test_the_time_of_a_window_of_spark(session: Session) -> None:
    session.settings.set("execution.runtime-mode", "streaming")
    session.execute(
        "CREATE TABLE IF NOT EXISTS clicks (ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen', 'number-of-rows' = '20',"
        " 'fields.ts.kind' = 'sequence', 'fields.ts.start' = '2024-01-01 00:00:00', 'fields.ts.step' = '7 s')"
    )
    text = "SELECT window_time(window) AS t, window.end AS e, COUNT(*) FROM clicks GROUP BY window(ts, '1 minute')"
    rows = session.execute(text).final_rows(PATIENCE_S).to_pylist()
    assert len(rows) == 3
    assert all((row["e"] - row["t"]).total_seconds() == 0.001 for row in rows)
