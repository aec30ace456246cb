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
        "SELECT name FROM city WHERE UNIQUE (SELECT id, name FROM person) AND size > 3",
        "SELECT name FROM city WHERE NOT EXISTS (SELECT 1 FROM (SELECT id, name FROM person) AS u (`$unique0`, `$unique1`)"
        " WHERE NOT `$unique0` IS NULL AND NOT `$unique1` IS NULL GROUP BY `$unique0`, `$unique1` HAVING COUNT(*) > 1) AND size > 3",
    ),
    (
        "SELECT name FROM city WHERE NOT UNIQUE (SELECT id FROM person WHERE id = size)",
        "SELECT name FROM city WHERE EXISTS (SELECT 1 FROM (SELECT id FROM person WHERE id = size)"
        " AS u (`$unique0`) WHERE NOT `$unique0` IS NULL GROUP BY `$unique0` HAVING COUNT(*) > 1)",
    ),
    (
        "SELECT window_end, count(*) FROM TUMBLE(bid, ts, INTERVAL '5 MINUTES') GROUP BY window_start, window_end",
        "SELECT window_end, count(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' MINUTE) GROUP BY window_start, window_end",
    ),
    (
        "SELECT window_end FROM HOP((SELECT * FROM bid WHERE auction > 3), ts, INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)",
        "SELECT window_end FROM HOP(TABLE (SELECT * FROM bid WHERE auction > 3), DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)",
    ),
    (
        "SELECT window(ts, '5 minutes') AS w, count(*) AS n FROM bid GROUP BY window(ts, '5 minutes')",
        "SELECT struct(window.start AS start, window.end AS `end`) AS w, count(*) AS n FROM bid GROUP BY window(ts, '5 minutes')",
    ),
    (
        "SELECT JSON_VALUE(name, '$.a' RETURNING DECIMAL(10, 2) NULL ON EMPTY NULL ON ERROR) AS x FROM city",
        "SELECT TRY_CAST(JSON_VALUE(name, '$.a') AS DECIMAL(10, 2)) AS x FROM city",
    ),
    ("FROM city", "SELECT * FROM city"),
    ("FROM city SELECT name WHERE size > 3", "SELECT name FROM city WHERE size > 3"),
    (
        "FROM city WHERE size > 3 ORDER BY size LIMIT 2",
        "SELECT * FROM city WHERE size > 3 ORDER BY size LIMIT 2",
    ),
    (
        "SELECT name FROM (FROM city WHERE size > 3) AS c WHERE size IN (FROM city SELECT size)",
        "SELECT name FROM (SELECT * FROM city WHERE size > 3) AS c WHERE size IN (SELECT size FROM city)",
    ),
    ("WITH c AS (FROM city) FROM c SELECT name", "WITH c AS (SELECT * FROM city) SELECT name FROM c"),
    ("CREATE VIEW v AS FROM city; FROM v", "CREATE VIEW v AS SELECT * FROM city; SELECT * FROM v"),
    ("INSERT INTO totals FROM totals_too", "INSERT INTO totals SELECT * FROM totals_too"),
    ("FROM city |> WHERE size > 3 |> WHERE size < 9", "SELECT * FROM city WHERE (size > 3) AND (size < 9)"),
    ("FROM city AS c |> WHERE c.size > 3 |> SELECT c.name", "SELECT c.name FROM city AS c WHERE c.size > 3"),
    (
        "FROM city |> SELECT name, size + 1 AS more |> WHERE more > 3",
        "SELECT * FROM (SELECT name, size + 1 AS more FROM city) WHERE more > 3",
    ),
    (
        "FROM city AS c |> JOIN airline AS a ON a.name = c.name |> LEFT JOIN person AS p ON p.id = c.size |> SELECT c.size",
        "SELECT c.size FROM city AS c JOIN airline AS a ON a.name = c.name LEFT JOIN person AS p ON p.id = c.size",
    ),
    (
        "FROM city |> AGGREGATE count(*) AS n, max(size) AS m GROUP BY name AS who |> ORDER BY n DESC LIMIT 3",
        "SELECT name AS who, count(*) AS n, max(size) AS m FROM city GROUP BY name ORDER BY n DESC LIMIT 3",
    ),
    (
        "FROM city |> AGGREGATE count(*) AS n |> UNION ALL (SELECT 1), (SELECT 2)",
        "(SELECT count(*) AS n FROM city) UNION ALL (SELECT 1) UNION ALL (SELECT 2)",
    ),
    (
        "FROM city |> EXTEND size * 2 AS twice |> SET size = size + 1 |> DROP name",
        "SELECT * EXCEPT (name) FROM (SELECT * REPLACE (size + 1 AS size) FROM (SELECT *, size * 2 AS twice FROM city))",
    ),
    (
        "FROM city |> ORDER BY size |> LIMIT 3 |> AS c |> WHERE c.size > 1",
        "SELECT * FROM (SELECT * FROM city ORDER BY size LIMIT 3) AS c WHERE c.size > 1",
    ),
    (
        "FROM city |> LIMIT 3 OFFSET 1 |> SELECT DISTINCT name",
        "SELECT DISTINCT name FROM (SELECT * FROM city LIMIT 3 OFFSET 1)",
    ),
    (
        "SELECT name, size FROM city |> WHERE size > 3",
        "SELECT * FROM (SELECT name, size FROM city) WHERE size > 3",
    ),
    (
        "FROM city |> WHERE size | 1 > 3 AND size >> 1 = 2",
        "SELECT * FROM city WHERE size | 1 > 3 AND size >> 1 = 2",
    ),
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
