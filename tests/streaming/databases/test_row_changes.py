"""UPDATE and DELETE of tables in databases: the rows that DuckDB has by the same statements, counted, in one
transaction; what a database cannot say is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import duckdb
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S
from tests.streaming.databases.places import Place

COLUMNS = "id INT, a INT, b STRING, c DOUBLE, d BOOLEAN"
NATIVE = {
    "sqlite": "id INTEGER, a INTEGER, b TEXT COLLATE NOCASE, c REAL, d INTEGER",
    "duckdb": "id INTEGER, a INTEGER, b VARCHAR COLLATE NOCASE, c DOUBLE, d BOOLEAN",
    "postgres": "id INTEGER, a INTEGER, b VARCHAR(20), c DOUBLE PRECISION, d BOOLEAN",
}
ROWS = (
    "(1, 1, 'a', 1.5, TRUE), (2, NULL, 'A', NULL, FALSE), (3, 3, 'ä', -0.0, NULL), (4, 4, NULL, 2.0, TRUE), "
    "(5, -5, '', 0.1, FALSE), (6, 6, 'b''?%s', 6.0, TRUE)"
)


@pytest.fixture
def session(place: Place) -> Iterator[Session]:
    place.run(f'CREATE TABLE "T" ({NATIVE[place.kind]})', f'INSERT INTO "T" VALUES {ROWS}')
    session = Session({"bounded.backend": "duckdb"})
    session.execute(f"CREATE TABLE t ({COLUMNS}) {place.options('T')}")
    yield session
    session.close()


def rows(session: Session) -> list[str]:
    found = session.execute("SELECT * FROM t").final_rows(PATIENCE_S).to_pylist()
    return sorted(" ".join(map(str, row.values())) for row in found)


def oracle() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute(f"CREATE TABLE t ({COLUMNS})")
    made.execute(f"INSERT INTO t VALUES {ROWS}")
    return made


def expected(made: duckdb.DuckDBPyConnection) -> list[str]:
    return sorted(" ".join(map(str, row)) for row in made.execute("SELECT * FROM t").fetchall())


def condition(random: Random, depth: int = 2) -> str:
    if depth and random.random() < 0.7:
        parts = [condition(random, depth - 1) for _ in range(2)]
        return random.choice(["({} AND {})", "({} OR {})", "(NOT {0} OR {1})"]).format(*parts)
    sign = random.choice(["=", "<>", "<", "<=", ">", ">="])
    return random.choice(
        [
            f"a {sign} {random.randrange(-5, 7)}",
            f"a + 1 {sign} id",
            f"b {sign} '{random.choice(['a', 'A', 'ä', '', 'b'])}'",
            f"c {sign} CAST({random.choice(['1.5', '0.0', '2'])} AS DOUBLE)",
            f"{random.choice('abcd')} IS {random.choice(['', 'NOT '])}NULL",
            "b || 'x' IN ('ax', 'Ax')",
            "a IN (1, 3, NULL)",
            "d",
            "CASE WHEN d THEN a > 2 ELSE b = 'a' END",
        ]
    )


def statement(random: Random) -> str:
    where = f" WHERE {condition(random)}" if random.random() < 0.9 else ""
    if random.random() < 0.3:
        return f"DELETE FROM t{where}"
    values = {
        "a": ["a + 1", "id * 2 - a", "NULL", "COALESCE(a, 7)", "id", "7"],
        "b": ["b || '?'", "'%s'", "NULL", "COALESCE(b, 'none')"],
        "c": ["c * 2", "CAST(a AS DOUBLE) + c", "c", "NULL"],
        "d": ["NOT d", "a > 2", "TRUE", "b = 'A'"],
    }
    names = random.sample(sorted(values), random.randrange(1, 4))
    return f"UPDATE t SET {', '.join(f'{name} = {random.choice(values[name])}' for name in names)}{where}"


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.at_length) for seed in range(2, 6))]
)
def test_the_rows_are_those_of_duckdb(session: Session, place: Place, seed: int) -> None:
    random = Random(seed)
    made = oracle()
    for _ in range(10 if seed == 1 else 40):
        text = statement(random)
        changed = session.execute(text)
        assert made.execute(text).fetchall() == [(changed.rowcount,)], text
        assert rows(session) == expected(made), text
        if not changed.rowcount or text.startswith("DELETE"):
            made.execute(f"INSERT INTO t VALUES {ROWS}")
            place.run(f'INSERT INTO "T" VALUES {ROWS}')


def test_a_statement_is_carried_out_whole_or_not_at_all(session: Session, place: Place) -> None:
    before = rows(session)
    with pytest.raises(PenstockError) as failed:
        session.execute("UPDATE t SET a = a * 1000000000 WHERE id > 0")
    assert failed.value.code == "DAT-4705"
    assert rows(session) == before
    session.execute("UPDATE t SET a = 2147483647 WHERE id = 1")
    with pytest.raises(PenstockError):
        session.execute("UPDATE t SET a = a + 1 WHERE id <= 3")
    # and the count is told
    assert session.execute("DELETE FROM t WHERE id >= 5").note == "2 rows deleted"
    shown = session.execute("EXPLAIN UPDATE t SET b = 'it''s' WHERE a > 1").final_rows(PATIENCE_S).to_pylist()
    assert f'in {place.kind}: UPDATE "T" SET "b" = ' in str([row["plan"] for row in shown]).replace(
        "\\'", "'"
    )


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("UPDATE t SET b = UPPER(b)", "upper(b)"),
        ("DELETE FROM t WHERE a / 2 > 1", "/ 2.0"),
        ("UPDATE t SET a = (SELECT MAX(a) FROM t)", "a subquery may read other tables"),
        ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM t AS u)", "a subquery may read other tables"),
    ],
)
def test_what_a_database_cannot_say_is_refused(session: Session, text: str, part: str) -> None:
    before = rows(session)
    for prefix in ("", "EXPLAIN "):
        with pytest.raises(PenstockError, match="SQL-1601") as refused:
            session.execute(prefix + text)
        assert part in str(refused.value)
    assert rows(session) == before


def test_times_decimals_and_parameters(session: Session, place: Place) -> None:
    kinds = {"sqlite": "TEXT", "duckdb": "TIMESTAMPTZ", "postgres": "TIMESTAMPTZ"}
    place.run(
        'CREATE TABLE "typed?" (id INTEGER, "a?b" DECIMAL(10, 2), day DATE, moment TIMESTAMP, '
        f"at_utc {kinds[place.kind]})",
        'INSERT INTO "typed?" (id) VALUES (1), (2)',
    )
    session.execute(
        "CREATE TABLE typed (id INT, `a?b` DECIMAL(10, 2), day DATE, moment TIMESTAMP(6), "
        f"at_utc TIMESTAMP_LTZ(6)) {place.options('typed?')}"
    )
    session.execute("SET 'table.local-time-zone' = 'Asia/Tokyo'")
    changed = session.execute(
        "UPDATE typed SET `a?b` = 1 + 1.5, day = CAST('2026-01-02' AS DATE), moment = TIMESTAMP '2026-01-02 "
        "03:04:05.678', at_utc = TO_TIMESTAMP_LTZ(1000, 3) WHERE id = ?",
        [1],
    )
    assert changed.rowcount == 1
    texts = "CAST(`a?b` AS STRING), CAST(day AS STRING), CAST(moment AS STRING), CAST(at_utc AS STRING)"
    found = session.execute(f"SELECT {texts} FROM typed WHERE id = 1").final_rows(PATIENCE_S).to_pylist()
    expected = ["2.50", "2026-01-02", "2026-01-02 03:04:05.678", "1970-01-01 09:00:01"]
    assert list(found[0].values()) == expected
    where = "`a?b` = 2.5 AND day < DATE '2026-01-03' AND at_utc >= TO_TIMESTAMP_LTZ(1000, 3)"
    if place.kind == "sqlite":
        with pytest.raises(PenstockError, match="SQL-1601"):
            session.execute(f"DELETE FROM typed WHERE {where}")
    else:
        assert session.execute(f"DELETE FROM typed WHERE {where}").rowcount == 1
    if place.kind == "sqlite":
        place.run("UPDATE \"typed?\" SET id = 'one' WHERE id = 2")
        with pytest.raises(PenstockError, match="DAT-4704"):
            session.execute("DELETE FROM typed WHERE id > 0")


def test_null_is_refused_where_the_declaration_has_none(session: Session, place: Place) -> None:
    session.execute(f"CREATE TABLE strict (id INT NOT NULL, a INT) {place.options('T')}")
    for value in ("NULL", "a + 1"):
        with pytest.raises(PenstockError, match="SQL-1093"):
            session.execute(f"UPDATE strict SET id = {value}")
    assert session.execute("UPDATE strict SET id = COALESCE(a, 0)").rowcount == 6
