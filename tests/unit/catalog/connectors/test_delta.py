"""Options of Delta tables that cannot work are refused where they are written."""

from __future__ import annotations

import pytest

import penstock
from penstock.catalog.errors import PenstockError


def create(columns: str = "k BIGINT", **options: str) -> None:
    named = {"connector": "delta", "table-path": "/tmp/t", **options}
    texts = ", ".join(f"'{key}' = '{value}'" for key, value in named.items())
    with penstock.connect() as connection:
        connection.execute(f"CREATE TABLE t ({columns}) WITH ({texts})")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"scan.mode": "from-version"}, "SQL-1507"),
        ({"scan.mode": "latest", "scan.version": "1"}, "SQL-1507"),
        ({"scan.mode": "newest"}, "SQL-1505"),
        ({"scan.version": "-1"}, "SQL-1505"),
        ({"scan.version": "1", "scan.timestamp": "2026-01-01"}, "SQL-1507"),
        ({"scan.mode": "full", "scan.timestamp": "2026-01-01"}, "SQL-1507"),
        ({"scan.timestamp": "yesterday"}, "SQL-1505"),
        ({"scan.end-version": "3"}, "SQL-1507"),
        ({"monitor-interval": "3 s"}, "SQL-1507"),
        ({"read-change-feed": "true"}, "SQL-1507"),
        ({"compaction.commits": "3"}, "SQL-1507"),
        ({"sink.schema-evolution": "all"}, "SQL-1505"),
        ({"path": "/tmp"}, "SQL-1503"),
    ],
)
def test_options_that_cannot_work(options: dict[str, str], code: str) -> None:
    with pytest.raises(PenstockError, match=code):
        create(**options)


def test_options_that_work() -> None:
    create(
        **{"scan.mode": "Full", "scan.version": "3", "read-change-feed": "true", "monitor-interval": "1 s"}
    )
    create(**{"scan.timestamp": "2026-01-01T10:00:00+02:00", "storage.aws_region": "eu-west-1"})
    create("k BIGINT, r ROW<a ARRAY<MAP<STRING, INT>>>")


@pytest.mark.parametrize("kind", ["TIME", "ARRAY<TIME>", "ROW<a INTERVAL DAY TO SECOND>"])
def test_types_that_the_format_lacks(kind: str) -> None:
    with pytest.raises(PenstockError, match="SQL-1509"):
        create(f"k {kind}")


def test_secrets_of_the_store_are_never_shown() -> None:
    with penstock.connect() as connection:
        connection.execute(
            "CREATE TABLE t (k BIGINT) WITH ('connector' = 'delta', 'table-path' = 's3://b/t', "
            "'storage.aws_session_token' = 'hush')"
        )
        shown = str(connection.execute("SHOW CREATE TABLE t").fetchall())
    assert "hush" not in shown
    assert "******" in shown
