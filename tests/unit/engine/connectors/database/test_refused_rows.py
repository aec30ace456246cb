"""Rows that a database refuses: found, skipped, counted, readable as a table and written again; the others are
there once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.streaming.databases.places import Place

pytestmark = pytest.mark.xdist_group("postgres-target")
ROWS = 700
# of the rows 0 to 699: a NULL, a text that is too long, a key that is there
REFUSED = {3: "NULL", 250: "'long'", 699: "CAST(k AS STRING)"}


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    place = Place(request.param, tmp_path)
    # SQLite knows no length of a text
    place.run(
        "CREATE TABLE stored (k INTEGER PRIMARY KEY, v VARCHAR(3) NOT NULL CHECK (length(v) < 4))",
        "INSERT INTO stored VALUES (699, 'old')",
    )
    return place


@pytest.fixture
def session() -> Iterator[Session]:
    settings = {"table.dml-sync": "true", "parallelism.default": "2", "bounded.backend": "duckdb"}
    session = Session(settings)
    yield session
    session.close()


def declare(session: Session, place: Place, on_error: str, key: str = "") -> None:
    where = f"'path' = '{place.path}'" if place.kind == "sqlite" else f"'url' = '{place.url}'"
    session.execute(
        f"CREATE TABLE stored (k INT, v STRING{key}) WITH ('connector' = '{place.kind}', {where}, "
        f"'table-name' = 'stored', 'on-error' = '{on_error}')"
    )
    session.execute(
        "CREATE TABLE numbers (k INT) WITH ('connector' = 'datagen', 'splits' = '2', "
        f"'number-of-rows' = '{ROWS}', 'fields.k.kind' = 'sequence')"
    )


def insert(session: Session) -> None:
    cases = " ".join(f"WHEN {k} THEN {value}" for k, value in REFUSED.items())
    session.execute(f"INSERT INTO stored SELECT k, CASE k {cases} ELSE 'v' END FROM numbers")


def rows(session: Session, query: str) -> list[dict[str, object]]:
    return [row for batch in session.execute(query).batches() for row in batch.to_pylist()]


def refused_by(session: Session) -> int:
    return sum(int(str(row["value"])) for row in rows(session, "SHOW METRICS LIKE 'rowsRefused'"))


def test_refused_rows_are_a_table_and_can_be_written_again(session: Session, place: Place) -> None:
    declare(session, place, "table")
    insert(session)
    assert place.ask("SELECT count(*), min(v) FROM stored WHERE v = 'v'") == [(ROWS - len(REFUSED), "v")]
    assert place.ask("SELECT v FROM stored WHERE k = 699") == [("old",)]
    errors = rows(session, "SELECT raw, error, split FROM stored$errors")
    assert sorted(str(row["raw"]) for row in errors) == [
        '{"k":250,"v":"long"}',
        '{"k":3,"v":null}',
        '{"k":699,"v":"699"}',
    ]
    assert all(", epoch " in str(row["split"]) for row in errors)
    assert any("null" in str(row["error"]).lower() for row in errors)
    assert refused_by(session) == 3
    # what is wrong with two of them is corrected; the third goes to where the errors are once more
    session.execute(
        "INSERT INTO stored SELECT r.k, COALESCE(LEFT(r.v, 3), '') FROM "
        "(SELECT from_json(raw, 'k INT, v STRING') AS r FROM stored$errors)"
    )
    assert place.ask("SELECT k, v FROM stored WHERE v <> 'v' ORDER BY k") == [
        (3, ""),
        (250, "lon"),
        (699, "old"),
    ]


def test_refused_rows_are_skipped_and_counted_by_key(session: Session, place: Place) -> None:
    declare(session, place, "skip", ", PRIMARY KEY (k) NOT ENFORCED")
    insert(session)
    # by key the row that is there is replaced
    assert place.ask("SELECT count(*) FROM stored") == [(ROWS - 2,)]
    assert place.ask("SELECT v FROM stored WHERE k = 699") == [("699",)]
    assert refused_by(session) == 2
    with pytest.raises(PenstockError, match="SQL-1508"):
        session.execute("SELECT * FROM stored$errors")


def test_a_refused_row_fails_the_job_by_default(session: Session, place: Place) -> None:
    """The negative control."""
    declare(session, place, "fail")
    with pytest.raises(PenstockError, match="DAT-4707"):
        insert(session)
    assert place.ask("SELECT count(*) FROM stored WHERE v = 'v'") < [(ROWS - len(REFUSED),)]
