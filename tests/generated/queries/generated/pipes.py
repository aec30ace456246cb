"""Relations that begin with FROM, and pipes |> of Spark; other engines are asked with SELECT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.generated.queries.generated.pieces import Piece, made

if TYPE_CHECKING:
    from tests.generated.queries.generated.queries import Queries

_LAYOUT = "k, s, v, x, ts"


class Pipes:
    """Each in our words and in SELECT."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.dice = queries.dice

    def relation(self) -> Piece:
        a, b = self.dice.alias(), self.dice.alias()
        listed, rows = f"(SELECT {_LAYOUT} FROM {{r}} AS {a})", f"{{r}} AS {a}"
        grouped = "min(s) AS s, {v} AS v, {x} AS x, max(ts) AS ts"
        sides = f"{a}.k AS k, {b}.s AS s, {a}.v AS v, {b}.x AS x, {a}.ts AS ts"
        word, kind = self.dice.one("UNION ALL", "EXCEPT", "INTERSECT"), self.dice.one("JOIN", "LEFT JOIN")
        order, limit = self.queries.over.total_order(), self.dice.one("1", "4")
        ways = {
            "from first": (
                f"(FROM {rows} SELECT {_LAYOUT} WHERE {{c}})",
                f"(SELECT {_LAYOUT} FROM {rows} WHERE {{c}})",
            ),
            "from alone": (
                f"(FROM {listed} AS {b} WHERE {{d}})",
                f"(SELECT * FROM {listed} AS {b} WHERE {{d}})",
            ),
            "from in a subquery": (
                f"(SELECT {_LAYOUT} FROM {rows} WHERE k IN (FROM {{q}} AS {b} SELECT {b}.k))",
                f"(SELECT {_LAYOUT} FROM {rows} WHERE k IN (SELECT {b}.k FROM {{q}} AS {b}))",
            ),
            "where": (
                f"(FROM {rows} |> WHERE {{c}} |> SELECT {_LAYOUT})",
                f"(SELECT {_LAYOUT} FROM {rows} WHERE {{c}})",
            ),
            "extend": (
                f"(FROM {listed} AS {b} |> EXTEND v + 1 AS w |> SET v = w * 2 |> DROP w)",
                f"(SELECT k, s, (v + 1) * 2 AS v, x, ts FROM {rows})",
            ),
            "aggregate": (
                f"(FROM {rows} |> AGGREGATE {grouped} GROUP BY k |> SELECT {_LAYOUT})",
                f"(SELECT k, {grouped} FROM {rows} GROUP BY k)",
            ),
            "join": (
                f"(FROM {rows} |> {kind} {{q}} AS {b} ON {a}.k = {b}.k |> SELECT {sides})",
                f"(SELECT {sides} FROM {rows} {kind} {{q}} AS {b} ON {a}.k = {b}.k)",
            ),
            "set": (
                f"(FROM {listed} AS {a}l |> {word} (SELECT {_LAYOUT} FROM {{q}} AS {b}))",
                f"(SELECT * FROM {listed} {word} SELECT {_LAYOUT} FROM {{q}} AS {b})",
            ),
            "limit": (
                f"(FROM {listed} AS {a}l |> ORDER BY {order} |> LIMIT {limit} |> AS {b} |> WHERE {{d}})",
                f"(SELECT * FROM (SELECT * FROM {listed} ORDER BY {order} LIMIT {limit}) AS {b} WHERE {{d}})",
            ),
            "distinct": (
                f"(FROM {rows} |> SELECT DISTINCT {_LAYOUT})",
                f"(SELECT DISTINCT {_LAYOUT} FROM {rows})",
            ),
            "table": (f"(TABLE {{t}} |> SELECT {_LAYOUT})", f"(SELECT {_LAYOUT} FROM {{t}})"),
        }
        ours, theirs = self.dice.feature("pipe", {way: lambda pair=pair: pair for way, pair in ways.items()})
        return made(
            "relation",
            ours,
            theirs=theirs,
            r=self.queries.relation(1),
            q=self.queries.relation(0),
            t=self.dice.one("t", "c", "u", "w"),
            c=self.queries.scalars.condition(a),
            d=self.queries.scalars.condition(b),
            v=self.queries.aggregate("v", a),
            x=self.queries.aggregate("x", a),
        )
