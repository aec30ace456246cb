"""Queries of the table of other types: doubles with NaN, infinities and both zeros, wide decimals, truths,
dates, long texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.generated.queries.generated.pieces import Piece, made

if TYPE_CHECKING:
    from tests.generated.queries.generated.queries import Queries


class TypedValues:
    """Each has one spelling that all engines read, or DuckDB's beside ours."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.dice = queries.dice

    def query(self) -> Piece:
        dice = self.dice
        column, key = dice.one("f", "g", "y", "b", "day", "l"), dice.one("f", "y", "b", "day", "l")
        rows = f"SELECT * FROM d WHERE {dice.one('TRUE', 'TRUE', 'k > 1', 'f > 0e0', 'b', 'l IS NOT NULL')}"
        word = dice.one("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
        ways = {
            "groups": f"SELECT {key}, count(*) AS n, min({column}) AS p, max({column}) AS q FROM ({rows}) AS d GROUP BY {key}",
            "two keys": f"SELECT f, {key}, count({column}) AS n FROM d GROUP BY f, {key}",
            "distinct": f"SELECT DISTINCT {column}, k FROM ({rows}) AS d",
            "count distinct": f"SELECT k, count(DISTINCT {column}) AS n FROM d GROUP BY k",
            "extremes": f"SELECT k, min({column}) AS p, max({column}) AS q FROM ({rows}) AS d GROUP BY k",
            "sums of doubles": "SELECT k, sum(f) AS p, avg(g) AS q FROM d GROUP BY k",
            "sums of finite doubles": "SELECT k, sum(f) AS p, avg(f) AS q FROM d WHERE abs(f) < 1e9 GROUP BY k",
            "join": f"SELECT a.id, b.id AS j FROM d AS a {dice.one('JOIN', 'LEFT JOIN', 'FULL JOIN')} d AS b ON a.{key} = b.{key} AND a.k = b.k",
            "comparisons": "SELECT id, f > 1e0 AS p, f = f AS q, f <= 0e0 AS r, f IS DISTINCT FROM g AS t, g < f AS u FROM d",
            "rank": f"SELECT id, rank() OVER (PARTITION BY k ORDER BY {column} NULLS FIRST) AS n FROM d",
            "top": f"SELECT id, {column} FROM d ORDER BY {column}{dice.one('', ' DESC')} NULLS {dice.one('FIRST', 'LAST')}, id LIMIT 5",
            "first of partitions": f"SELECT id, {column} FROM (SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY {column}"
            f" NULLS LAST, id) AS n FROM d) AS d WHERE n <= 2",
            "set": f"SELECT {column}, b FROM d WHERE k > 0 {word} SELECT {column}, b FROM d WHERE id % 3 > 0",
            "in": f"SELECT id FROM d WHERE {column} {dice.one('', 'NOT ')}IN (SELECT {column} FROM d WHERE k > 1)",
            "wide decimals": "SELECT k, sum(y) AS p, max(y) AS q, sum(y * CAST(1.5 AS DECIMAL(2, 1))) AS r, min(- y) AS t FROM d GROUP BY k",
            "decimal values": "SELECT id, y + CAST(0.25 AS DECIMAL(4, 2)) AS p, y * CAST(1.5 AS DECIMAL(2, 1)) AS q,"
            " CAST(y AS DECIMAL(10, 1)) AS r, round(y, 1) AS t, abs(y) AS u FROM d",
            "dates": "SELECT day, count(*) AS n, min(day) AS p, CAST(max(day) AS TIMESTAMP) AS q, year(day) AS r FROM d GROUP BY day",
            "truths": "SELECT k, bool_and(b) AS p, bool_or(b) AS q, count(*) FILTER (WHERE b) AS n, max(b) AS r FROM d GROUP BY k",
            "long texts": "SELECT l, length(l) AS n, substring(l, 2, 3) AS p, upper(l) AS q, count(*) AS m FROM d GROUP BY l",
            "logic": "SELECT id, b AND f > 0e0 AS p, b OR k > 1 AS q, NOT b AS r, (b = (k > 1)) AS t FROM d",
        }
        text = dice.feature("typed", {way: lambda text=text: text for way, text in ways.items()})
        return made("query", text)

    def relation(self) -> Piece:
        """The rows of the table in the common layout."""
        return made(
            "relation",
            "(SELECT k, l AS s, CAST(CASE WHEN f > 1e0 THEN 1 WHEN f <= 0e0 THEN 2 END AS BIGINT) AS v,"
            " CAST(y AS DECIMAL(8, 2)) AS x, CAST(day AS TIMESTAMP) AS ts FROM d)",
        )
