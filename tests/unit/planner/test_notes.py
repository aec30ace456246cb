"""Clauses that change no row are accepted, and a note says so; each note once, and none of a view that is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.catalog.catalog import Catalog
from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.planner.binder.binder import Binder
from penstock.planner.statements.nodes import Insert, Query
from penstock.planner.statements.script import parse_script
from tests.unit.planner.frontend import run_statements

TABLES = (Path(__file__).parent / "tables.sql").read_text(encoding="utf-8") + (
    "CREATE TABLE ended (id BIGINT NOT NULL, score INT, at TIMESTAMP(3), WATERMARK FOR at AS at) "
    "WITH ('connector' = 'datagen', 'number-of-rows' = '3');\n"
)
SUBQUERY = "ORDER BY in a subquery or view orders nothing without LIMIT; order the outer query"
NOTED = [
    ("SELECT * FROM (SELECT * FROM city ORDER BY size) AS c", [SUBQUERY]),
    ("SELECT * FROM (SELECT * FROM city ORDER BY size LIMIT 2) AS c", []),
    ("(SELECT name FROM city ORDER BY size) UNION ALL SELECT name FROM airline", [SUBQUERY]),
    ("SELECT * FROM (SELECT name FROM (SELECT * FROM city ORDER BY 1) ORDER BY 1) AS c", [SUBQUERY]),
    (
        "INSERT INTO totals (id) SELECT id FROM ended ORDER BY score",
        ["ORDER BY has no effect here: rows of a stream are written as they come"],
    ),
    ("INSERT INTO totals (id) SELECT id FROM ended ORDER BY at", []),
    (
        "SELECT /*+ SHUFFLE_HASH(a), NEST_LOOP(b), REBALANCE */ * FROM city AS a JOIN airline AS b ON a.name = b.name",
        [
            "the hint SHUFFLE_HASH has no effect: joins choose by what their inputs are",
            "the hint NEST_LOOP has no effect: joins choose by what their inputs are",
            "the hint REBALANCE has no effect: rows are distributed by the keys that the operators need",
        ],
    ),
    (
        "SELECT /*+ BROADCAST(city) */ COUNT(*) FROM city",
        [
            'the hint BROADCAST of "city" has no effect: it names a table that is joined by JOIN with another: '
            "the right side, or the first table of FROM"
        ],
    ),
    ("SELECT /*+ BROADCAST(airline) */ * FROM city AS a JOIN airline AS b ON a.name = b.name", []),
]


def notes(text: str, catalog: Catalog) -> list[str]:
    binder = Binder(catalog, Settings())
    for statement in parse_script(text):
        node = statement.node
        if isinstance(node, Insert):
            binder.bind_insert(node)
        else:
            assert isinstance(node, Query)
            binder.bind_query(node)
    return binder.notes


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    catalog = Catalog()
    run_statements(TABLES, catalog)
    return catalog


@pytest.mark.parametrize(("text", "expected"), NOTED, ids=[text for text, _ in NOTED])
def test_what_has_no_effect_is_noted(catalog: Catalog, text: str, expected: list[str]) -> None:
    assert notes(text, catalog) == expected


def test_a_view_is_noted_where_it_is_created() -> None:
    catalog = Catalog()
    run_statements(TABLES + "CREATE VIEW ordered AS SELECT * FROM city ORDER BY size;", catalog)
    assert notes("SELECT * FROM ordered", catalog) == []


def test_a_hint_that_nobody_knows_is_no_note(catalog: Catalog) -> None:
    with pytest.raises(PenstockError, match="there is no hint SHUFLE_HASH"):
        notes("SELECT /*+ SHUFLE_HASH(a) */ * FROM city AS a", catalog)
