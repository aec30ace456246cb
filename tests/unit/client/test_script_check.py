"""A script that is checked: the effect of its statements on names is followed, nothing is run or kept,
each cause is told once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client.script_check import check_script
from penstock.client.session import Session

ROOT = Path(__file__).resolve().parents[3]
N = "WITH ('connector' = 'datagen', 'number-of-rows' = '1')"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.chdir(tmp_path)
    session = Session({"bounded.backend": "duckdb"}, catalog_dir=tmp_path / "kept")
    yield session
    session.close()


def told(session: Session, text: str) -> list[str]:
    return [f"{error.line}: {error.message}" for error in check_script(session, text)]


def test_the_page_on_catalogs_has_no_errors(session: Session, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "CATALOGS.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert told(session, script) == []
    assert list(tmp_path.iterdir()) == [], (
        "nothing is written: neither the session's catalog nor the script's"
    )


@pytest.mark.parametrize(
    "script",
    [
        f"CREATE TABLE t (a INT) {N}; CREATE VIEW v AS SELECT a FROM t; DROP VIEW v; CREATE VIEW v AS SELECT a AS b FROM t; SELECT b FROM v;",
        f"CREATE TABLE t (a INT) {N}; DROP TABLE t; CREATE VIEW t AS SELECT 1 AS b; SELECT b FROM t;",
        f"CREATE DATABASE d; USE d; CREATE TABLE t (a INT) {N}; SELECT a FROM d.t; USE default_database; DROP DATABASE d CASCADE; CREATE DATABASE d;",
        "CREATE DATABASE IF NOT EXISTS d; CREATE DATABASE IF NOT EXISTS d; DROP DATABASE IF EXISTS e; DROP CATALOG IF EXISTS f;",
        "CREATE CATALOG c WITH ('type' = 'memory'); USE CATALOG c; CREATE DATABASE d; CREATE VIEW d.v AS SELECT 1 AS a; SELECT a FROM c.d.v;",
        "DROP MATERIALIZED VIEW IF EXISTS m; DROP VIEW IF EXISTS v; DROP TABLE IF EXISTS t;",
        f"CREATE TABLE s (a INT) {N}; CREATE TABLE IF NOT EXISTS s WITH ('connector' = 'blackhole') AS SELECT a FROM s; SELECT a FROM s;",
        f"CREATE TABLE s (a INT) {N}; CREATE MATERIALIZED VIEW m AS SELECT a FROM s; CREATE MATERIALIZED VIEW IF NOT EXISTS m AS SELECT a FROM s;",
        "SET 'metrics.prometheus.port' = '1'; SELECT 1;",
    ],
)
def test_what_would_run_has_no_errors(session: Session, script: str, tmp_path: Path) -> None:
    assert told(session, script) == []
    assert list(tmp_path.iterdir()) == [] and session.jobs() == []


def test_a_script_after_another(session: Session) -> None:
    """The second sees what the first has made, and is not blamed for what it could not make."""
    missing: set[str] = set()
    first = check_script(
        session, f"CREATE TABLE a (n INT) {N};\nCREATE TABLE b (n NOTHING) {N};", missing=missing
    )
    assert [error.line for error in first] == [2]
    assert check_script(session, "SELECT n FROM a;\nSELECT n FROM b;", missing=missing) == []


def test_what_a_script_drops_is_not_there(session: Session) -> None:
    script = f"CREATE TABLE t (a INT) {N};\nDROP TABLE t;\nSELECT a FROM t;\nCREATE DATABASE d;\nDROP DATABASE d;\nUSE d;"
    assert told(session, script) == [
        '3: table "t" does not exist',
        '6: database "d" does not exist in default_catalog',
    ]


@pytest.mark.parametrize(
    ("made", "cause"),
    [
        (f"CREATE TABLE t (a NOTHING) {N}", 'type "NOTHING" does not exist'),
        (f"CREATE TABLE IF NOT EXISTS t (a INT, a INT) {N}", None),
        (f"CREATE /* it */ TABLE t (a INT {N}", None),
        ("CREATE TABLE `t` (a INT) WITH ('connector' = 'nowhere')", None),
        ("CREATE OR REPLACE TEMPORARY VIEW t AS SELECT nope", None),
        ("CREATE VIEW T AS SELEC 1", None),
        ("CREATE TABLE t LIKE nothing", 'table "nothing" does not exist'),
    ],
)
def test_what_could_not_be_made_is_told_and_its_uses_are_not(
    session: Session, made: str, cause: str | None
) -> None:
    uses = "SELECT a FROM t;\nCREATE VIEW v AS SELECT a FROM t;\nSELECT a FROM v;\nINSERT INTO t SELECT 1;\nSELECT nope FROM (VALUES (1)) AS x (a);"
    found = told(session, f"{made};\n{uses}")
    assert [line.partition(":")[0] for line in found] == ["1", "6"], found
    assert cause is None or found[0] == f"1: {cause}"


def lines(session: Session, *statements: str) -> list[str]:
    return [line.partition(":")[0] for line in told(session, ";\n".join(statements))]


def test_places_that_could_not_be_made_or_entered(session: Session) -> None:
    made = f"CREATE TABLE t (a INT) {N}"
    assert lines(
        session,
        "CREATE CATALOG lake WITH ('type' = 'water')",
        "CREATE DATABASE lake.raw",
        "USE lake.raw",
        made,
        "SELECT a FROM lake.raw.t",
    ) == ["1"]
    assert lines(
        session, "USE nowhere", "SELECT * FROM there", "USE default_database", "SELECT * FROM there"
    ) == ["1", "4"]


def test_a_name_that_is_not_there_is_told_once(session: Session) -> None:
    script = "SELECT * FROM nope;\nSELECT * FROM nope AS n;\nSELECT 1;\n  SELECT * FROM nope;\nSELECT * FROM other;"
    errors = check_script(session, script)
    assert [(error.line, error.message, error.detail) for error in errors] == [
        (1, 'table "nope" does not exist', "the same at 2:15, 4:17"),
        (5, 'table "other" does not exist', None),
    ]
