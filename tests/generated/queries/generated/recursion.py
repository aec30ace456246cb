"""WITH RECURSIVE: closures and hierarchies over rows that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.generated.queries.generated.pieces import Piece, made

if TYPE_CHECKING:
    from tests.generated.queries.generated.queries import Queries


class Recursion:
    """Relations whose rows are derived from their own rows; each ends, whatever the rows are."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.dice = queries.dice

    def relation(self) -> Piece:
        n, a, b = self.dice.alias(), self.dice.alias(), self.dice.alias()
        edges = f"FROM {n} JOIN (SELECT CAST(k AS BIGINT) AS k, v FROM {{q}} AS {b}i) AS {b} ON"
        start = f"SELECT CAST(k AS BIGINT) AS k, v FROM {{r}} AS {a}{{w}}"
        ways = {
            "closure": f"{start} UNION SELECT {n}.k, {b}.v {edges} {n}.v = {b}.k",
            "reached": f"{start} UNION SELECT {b}.k, {b}.v {edges} {n}.v = {b}.k WHERE {b}.v > 0",
            "depth": f"SELECT CAST(k AS BIGINT) AS k, CAST(0 AS BIGINT) AS v FROM {{r}} AS {a}{{w}} UNION ALL"
            f" SELECT {b}.v, {n}.v + 1 {edges} {n}.k = {b}.k WHERE {n}.v < 2",
            "numbers": f"{start} UNION ALL SELECT {n}.k, {n}.v - 1 FROM {n} WHERE {n}.v > 1",
            "without": f"{start} UNION SELECT {n}.v, {n}.k FROM {n} WHERE NOT EXISTS (SELECT 1 FROM {{q}} AS {b} WHERE {b}.k = {n}.v)",
            "padded": f"{start} UNION SELECT {n}.v, {b}.v {edges.replace('JOIN', 'LEFT JOIN', 1)} {n}.v = {b}.k",
        }
        steps = self.dice.feature("recursion", {way: lambda text=text: text for way, text in ways.items()})
        items = f"CAST({n}.k AS INT) AS k, 'a' AS s, {n}.v AS v, CAST(1 AS DECIMAL(8, 2)) AS x, CAST(NULL AS TIMESTAMP) AS ts"
        return made(
            "relation",
            f"(WITH RECURSIVE {n} (k, v) AS ({steps}) SELECT {items} FROM {n})",
            # two small tables, as a closure of several would be long
            r=made("relation", self.dice.one("u", "w", "c")),
            q=made("relation", self.dice.one("u", "w", "c", "t")),
            w=self.queries.where(a),
        )
