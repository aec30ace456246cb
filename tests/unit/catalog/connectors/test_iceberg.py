"""Options of Iceberg tables that cannot work are refused where they are written."""

from __future__ import annotations

import pytest

import penstock
from penstock.catalog.errors import PenstockError

PLACE = {"connector": "iceberg", "table-name": "db.t", "catalog-type": "sql", "uri": "sqlite:////tmp/c.db"}


def create(columns: str = "k BIGINT", **options: str) -> None:
    texts = ", ".join(f"'{key}' = '{value}'" for key, value in {**PLACE, **options}.items())
    with penstock.connect() as connection:
        connection.execute(f"CREATE TABLE t ({columns}) WITH ({texts})")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"table-name": "t"}, "SQL-1505"),
        ({"catalog-type": "hadoop"}, "SQL-1505"),
        ({"scan.mode": "from-snapshot"}, "SQL-1507"),
        ({"scan.mode": "latest", "scan.snapshot-id": "1"}, "SQL-1507"),
        ({"scan.snapshot-id": "1", "scan.timestamp": "2026-01-01"}, "SQL-1507"),
        ({"scan.timestamp": "yesterday"}, "SQL-1505"),
        ({"scan.end-snapshot-id": "3"}, "SQL-1507"),
        ({"monitor-interval": "3 s"}, "SQL-1507"),
        ({"read-change-feed": "true"}, "SQL-1507"),
        ({"change-data-feed": "true"}, "SQL-1503"),
    ],
)
def test_options_that_cannot_work(options: dict[str, str], code: str) -> None:
    with pytest.raises(PenstockError, match=code):
        create(**options)


@pytest.mark.parametrize("kind", ["TIME", "TINYINT", "SMALLINT"])
def test_types_that_the_format_lacks(kind: str) -> None:
    with pytest.raises(PenstockError, match="SQL-1509"):
        create(f"k {kind}")


def test_options_that_work() -> None:
    create(**{"scan.mode": "full", "scan.snapshot-id": str(2**63 - 1), "catalog.s3.endpoint": "http://x"})
