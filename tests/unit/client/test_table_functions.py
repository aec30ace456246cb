"""Table functions in FROM, on our own runtime: what each gives for rows with and without elements."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import penstock

ROWS = "(VALUES (1, ARRAY[10, NULL]), (2, CAST(ARRAY[] AS ARRAY<INT>)), (3, CAST(NULL AS ARRAY<INT>))) AS t(id, a)"
PAIRS = "(SELECT id, CASE WHEN id = 1 THEN ARRAY[named_struct('x', 1, 'y', 'b')] END AS r FROM (VALUES (1), (2)) AS v(id)) AS t"


@pytest.fixture(scope="module")
def connection() -> Iterator[penstock.Connection]:
    with penstock.connect(settings={"execution.runtime-mode": "streaming"}) as found:
        yield found


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (f"SELECT id, e FROM {ROWS}, LATERAL explode(a) AS u(e)", [(1, 10), (1, None)]),
        (
            f"SELECT id, e FROM {ROWS}, LATERAL explode_outer(a) AS u(e)",
            [(1, 10), (1, None), (2, None), (3, None)],
        ),
        (f"SELECT id, p, e FROM {ROWS}, LATERAL posexplode(a) AS u(p, e)", [(1, 0, 10), (1, 1, None)]),
        (
            f"SELECT id, p, e FROM {ROWS}, LATERAL posexplode_outer(a) AS u(p, e)",
            [(1, 0, 10), (1, 1, None), (2, None, None), (3, None, None)],
        ),
        (f"SELECT id, x, y FROM {PAIRS}, LATERAL inline(r) AS u", [(1, 1, "b")]),
        (f"SELECT id, x, y FROM {PAIRS}, LATERAL inline_outer(r) AS u", [(1, 1, "b"), (2, None, None)]),
        (
            f"SELECT id, p, q FROM {ROWS}, LATERAL stack(2, id, 'a', id + 1) AS u(p, q) WHERE id = 1",
            [(1, 1, "a"), (1, 2, None)],
        ),
        (
            f"SELECT id, n FROM {ROWS}, LATERAL generate_series(id, 3, 2) AS u(n)",
            [(1, 1), (1, 3), (2, 2), (3, 3)],
        ),
        ("SELECT id FROM range(2, 5)", [(2,), (3,), (4,)]),
        ("SELECT e FROM UNNEST(ARRAY[1, 2]) AS u(e)", [(1,), (2,)]),
        (
            "SELECT a, b FROM (VALUES ('{\"a\": 1}'), ('no')) AS t(j) LATERAL VIEW json_tuple(j, 'a', 'b') u AS a, b",
            [("1", None), (None, None)],
        ),
    ],
)
def test_rows(connection: penstock.Connection, query: str, rows: list[tuple[object, ...]]) -> None:
    cursor = connection.cursor()
    cursor.execute(query)
    assert sorted(cursor.fetchall(), key=repr) == sorted(rows, key=repr)
