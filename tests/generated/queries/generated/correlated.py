"""Subqueries that read the outer row below groups, unions, LIMIT, WITH and joins, and two levels out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.generated.queries.generated.pieces import Piece, made

if TYPE_CHECKING:
    from tests.generated.queries.generated.queries import Queries


class Correlated:
    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.dice = queries.dice

    def condition(self, outer: str) -> Piece:
        a, b = self.dice.alias(), self.dice.alias()
        first, second = self._rows(a, outer), self._rows(b, outer)
        negated = self.dice.one("", "NOT ")
        word = self.dice.one("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL")
        ways = {
            "exists of groups": f"{negated}EXISTS (SELECT {a}.k {first} GROUP BY {a}.k HAVING count(*) > 1)",
            "in of groups": f"{outer}.v {negated}IN (SELECT max({a}.v) {first} GROUP BY {a}.s)",
            "in of a set": f"{outer}.v {negated}IN (SELECT {a}.v {first} {word} SELECT {b}.v {second})",
            "exists of a set": f"{negated}EXISTS (SELECT {a}.k, {a}.s {first} {word} SELECT {b}.k, {b}.s {second})",
            "two levels": f"EXISTS (SELECT 1 FROM {{q}} AS {a} WHERE {a}.s = {outer}.s AND {negated}EXISTS (SELECT 1 {second}"
            f" AND {b}.v = {a}.v))",
            "in two levels": f"EXISTS (SELECT 1 FROM {{q}} AS {a} WHERE {a}.k IN (SELECT {b}.k {second}))",
            "exists behind an offset": f"{negated}EXISTS (SELECT {a}.v {first} ORDER BY {a}.v NULLS FIRST LIMIT 1 OFFSET 1)",
        }
        template = self.dice.feature("correlated", {name: lambda way=way: way for name, way in ways.items()})
        return self._made("condition", template, least="TRUE")

    def value(self, outer: str) -> Piece:
        a, b = self.dice.alias(), self.dice.alias()
        first, second = self._rows(a, outer), self._rows(b, outer)
        ordered = f"ORDER BY {a}.v NULLS FIRST"
        ways = {
            "aggregate beside the outer row": f"(SELECT count(*) + {outer}.k {first})",
            "aggregate of a union": f"(SELECT sum(t.v) FROM (SELECT {a}.v {first} UNION ALL SELECT {b}.v {second}) AS t)",
            "aggregate of a distinct union": f"(SELECT count(*) FROM (SELECT {a}.v {first} UNION SELECT {b}.v {second}) AS t)",
            "aggregate of groups": f"(SELECT max(t.n) FROM (SELECT {a}.s, count(*) AS n {first} GROUP BY {a}.s) AS t)",
            "aggregate of first rows": f"(SELECT sum(t.v) FROM (SELECT {a}.v {first} {ordered} LIMIT 2 OFFSET 1) AS t)",
            "with": f"(WITH w AS (SELECT {a}.v, {a}.k {first}) SELECT max(x.v - y.k) FROM w AS x JOIN w AS y ON x.k <= y.k)",
            "second row": f"(SELECT {a}.v {first} {ordered} LIMIT 1 OFFSET 1)",
            "outer join": f"(SELECT count({b}.k) FROM {{q}} AS {a} LEFT JOIN {{r}} AS {b} ON {b}.k = {a}.k AND {b}.v > {outer}.v)",
            "over": f"(SELECT max(t.n) FROM (SELECT row_number() OVER (PARTITION BY {a}.s ORDER BY {a}.v) AS n {first}) AS t)",
            "scalar in a scalar": f"(SELECT count(*) {first} AND {a}.v <= (SELECT max({b}.v) {second}))",
            "one group": f"(SELECT count(*) FROM {{q}} AS {a} WHERE {a}.k = {outer}.k GROUP BY {a}.k)",
        }
        template = self.dice.feature(
            "correlated value", {name: lambda way=way: way for name, way in ways.items()}
        )
        return self._made("scalar", template, least="1")

    def _made(self, sort: str, template: str, least: str) -> Piece:
        return made(sort, template, least=least, q=self.queries.relation(0), r=self.queries.relation(0))

    def _rows(self, name: str, outer: str) -> str:
        column = self.dice.one("k", "s", "v")
        comparison = "=" if self.dice.chance(0.7) else self.dice.one("<", ">=", "<>", "IS NOT DISTINCT FROM")
        hole = self.dice.one("q", "r")
        return f"FROM {{{hole}}} AS {name} WHERE {name}.{column} {comparison} {outer}.{column}"
