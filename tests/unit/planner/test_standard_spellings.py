"""Spellings of the standard and of Spark that are another way to write what there is: the same plan,
whatever stands around them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.catalog.catalog import Catalog
from tests.unit.planner.frontend import run_statements

TABLES = (Path(__file__).parent / "tables.sql").read_text(encoding="utf-8")
SAME = [
    (
        "SELECT auction FROM bid WHERE auction = ANY (SELECT id FROM person)",
        "SELECT auction FROM bid WHERE auction IN (SELECT id FROM person)",
    ),
    (
        "SELECT auction FROM bid WHERE auction = SOME (SELECT id FROM person)",
        "SELECT auction FROM bid WHERE auction IN (SELECT id FROM person)",
    ),
    (
        "SELECT auction FROM bid WHERE NOT auction = ANY (SELECT id FROM person)",
        "SELECT auction FROM bid WHERE auction NOT IN (SELECT id FROM person)",
    ),
    (
        "SELECT auction FROM bid WHERE auction <> ALL (SELECT id FROM person)",
        "SELECT auction FROM bid WHERE auction NOT IN (SELECT id FROM person)",
    ),
    (
        "SELECT name FROM city WHERE 1 + size = ANY (SELECT size FROM city) OR size > 3",
        "SELECT name FROM city WHERE (1 + size) IN (SELECT size FROM city) OR size > 3",
    ),
    (
        "SELECT name, size = ANY (SELECT size FROM city) AS x FROM city",
        "SELECT name, size IN (SELECT size FROM city) AS x FROM city",
    ),
    ("TABLE city", "SELECT * FROM city"),
    (
        "TABLE city UNION ALL (TABLE city) ORDER BY size LIMIT 3",
        "SELECT * FROM city UNION ALL (SELECT * FROM city) ORDER BY size LIMIT 3",
    ),
    ("WITH c AS (TABLE city) TABLE c", "WITH c AS (SELECT * FROM city) SELECT * FROM c"),
    (
        "SELECT name FROM (TABLE city) AS t WHERE EXISTS (TABLE airline)",
        "SELECT name FROM (SELECT * FROM city) AS t WHERE EXISTS (SELECT * FROM airline)",
    ),
    (
        "SELECT name FROM airline WHERE name IN (SELECT name FROM (TABLE city) AS c)",
        "SELECT name FROM airline WHERE name IN (SELECT name FROM city AS c)",
    ),
    ("CREATE VIEW v AS TABLE city; TABLE v", "CREATE VIEW v AS SELECT * FROM city; SELECT * FROM v"),
    ("INSERT INTO totals TABLE totals_too", "INSERT INTO totals SELECT * FROM totals_too"),
    (
        "SELECT rlike(name, '^B') AS x FROM city WHERE NOT RLIKE(name, 'q')",
        "SELECT name RLIKE '^B' AS x FROM city WHERE NOT name RLIKE 'q'",
    ),
    (
        "SELECT name FROM city WHERE like(name, 'B%') AND name NOT LIKE ('C%')",
        "SELECT name FROM city WHERE name LIKE 'B%' AND name NOT LIKE 'C%'",
    ),
]


def plans(text: str) -> list[str]:
    catalog = Catalog()
    run_statements(TABLES, catalog)
    run_statements(
        "CREATE TABLE totals_too (id BIGINT NOT NULL, total DECIMAL(20, 2), label STRING) WITH ('connector' = 'datagen')",
        catalog,
    )
    return run_statements(text, catalog)


@pytest.mark.parametrize(("spelled", "plain"), SAME, ids=[spelled for spelled, _ in SAME])
def test_the_plan_is_the_same(spelled: str, plain: str) -> None:
    assert plans(spelled) == plans(plain)


def test_any_and_some_are_aggregates_where_no_query_follows() -> None:
    assert plans("SELECT ANY(size > 1) AS x, SOME(size > 1) AS y FROM city") == plans(
        "SELECT bool_or(size > 1) AS x, bool_or(size > 1) AS y FROM city"
    )
