"""Subqueries found by the different values of the rows around them: NULL finds NULL, and two values are
one only where they are equal.
"""

from __future__ import annotations

import pytest

import penstock

SETTINGS = {
    "bounded.backend": "duckdb",
    "execution.runtime-mode": "streaming",
    "table.local-time-zone": "Europe/Berlin",
}
FIRST, SECOND = 1_761_438_600, 1_761_442_200  # half past two, and half past two again: summer time ends


@pytest.mark.parametrize(
    "made", ["timestamp_seconds(n)", "n", "CAST(n AS STRING)", "CAST(n AS DECIMAL(12, 1))", "n = 1761438600"]
)
def test_values_are_found_by_themselves(made: str) -> None:
    with penstock.connect(settings=SETTINGS) as connection:
        connection.execute(
            f"CREATE VIEW o AS SELECT id, {made} AS t FROM (VALUES (1, {FIRST}), (2, {SECOND}), (3, CAST(NULL AS INT))) AS v(id, n)"
        )
        connection.execute(
            f"CREATE VIEW i AS SELECT k, {made} AS t FROM (VALUES (1, {FIRST}), (2, {SECOND})) AS v(k, n)"
        )
        query = "SELECT id, (SELECT max(k) FROM i WHERE i.t = o.t OR o.t IS NULL), (SELECT count(*) FROM i WHERE i.t = o.t OR o.t IS NULL) FROM o"
        assert sorted(connection.execute(query).fetchall()) == [(1, 1, 1), (2, 2, 1), (3, 2, 2)]


@pytest.mark.parametrize("mode", ["streaming", "automatic"])
def test_a_star_in_lateral_is_the_row_before_it(mode: str) -> None:
    with penstock.connect(settings=SETTINGS | {"execution.runtime-mode": mode}) as connection:
        table = "(SELECT k AS a, v AS b FROM (VALUES (1, 'x'), (2, 'y')) AS v(k, v)) AS t"
        assert sorted(connection.execute(f"SELECT * FROM {table}, LATERAL (SELECT t.*)").fetchall()) == [
            (1, "x", 1, "x"),
            (2, "y", 2, "y"),
        ]
        both = f"SELECT l.* FROM {table}, LATERAL (SELECT n.*, t.* EXCEPT (a) FROM (VALUES (2, 7), (2, 8)) AS n(k, m) WHERE n.k = t.a) AS l"
        assert sorted(connection.execute(both).fetchall()) == [(2, 7, "y"), (2, 8, "y")]
        assert connection.execute(
            f"SELECT b FROM {table} WHERE a IN (SELECT t.a) AND b = 'x'"
        ).fetchall() == [("x",)]


def test_a_null_that_and_makes_false_is_found() -> None:
    """``FALSE AND NULL`` is FALSE, so the condition is TRUE for an outer NULL."""
    query = (
        "SELECT y, (SELECT max(x) FROM (VALUES (FALSE, 5), (TRUE, 7)) AS i(a, x) WHERE (a AND x > y) = FALSE)"
        " FROM (VALUES (1), (CAST(NULL AS INT))) AS o(y)"
    )
    with penstock.connect(settings=SETTINGS) as connection:
        assert set(connection.execute(query).fetchall()) == {(1, 5), (None, 5)}
