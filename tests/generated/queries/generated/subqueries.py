"""Conditions and values that ask another relation: IN, EXISTS, quantified by keys or not, scalar,
correlated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.generated.queries.generated.correlated import Correlated
from tests.generated.queries.generated.pieces import Piece, made

if TYPE_CHECKING:
    from tests.generated.queries.generated.queries import Queries

_KEYS = ("k", "s", "v")


class Subqueries:
    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.dice = queries.dice
        self.correlated = Correlated(queries)

    def condition(self, outer: str) -> Piece:
        ways = {
            "in": lambda: self._in(outer),
            "not in": lambda: self._in(outer, "NOT "),
            "pair in": lambda: self._pair(outer),
            "exists": lambda: self._exists(outer),
            "not exists": lambda: self._exists(outer, "NOT "),
            "exists or": lambda: self._either(outer),
            "quantified": lambda: self._quantified(outer),
            "unique": lambda: self._unique(outer),
            "correlated": lambda: self.correlated.condition(outer),
            "compared with scalar": lambda: made(
                "condition",
                f"{outer}.v {self.dice.one('=', '<', '>=')} {{x}}",
                least="TRUE",
                x=self.scalar(outer),
            ),
        }
        return self.dice.feature("subquery", ways)

    def _in(self, outer: str, negated: str = "") -> Piece:
        column = self.dice.one(*_KEYS)
        return made(
            "condition", f"{outer}.{column} {negated}IN ({{q}})", least="TRUE", q=self._query(outer, column)
        )

    def _pair(self, outer: str) -> Piece:
        """IN of two columns. DuckDB has no plan for a correlated one: it is asked for an equal pair, then for
        one that may be equal.
        """
        a, b = self.dice.some(_KEYS, 2, 2)
        query, name, negated = self._query(outer, f"{a}, {b}"), self.dice.alias(), self.dice.one("", "NOT ")
        equal = f"{name}.{a} = {outer}.{a} AND {name}.{b} = {outer}.{b}"
        some = f"EXISTS (SELECT 1 FROM ({{q}}) AS {name} WHERE"
        return made(
            "condition",
            f"({outer}.{a}, {outer}.{b}) {negated}IN ({{q}})",
            theirs=f"({negated}CASE WHEN {some} {equal}) THEN TRUE WHEN {some} ({equal}) IS NULL) THEN NULL ELSE FALSE END)",
            least="TRUE",
            q=query,
        )

    def _quantified(self, outer: str) -> Piece:
        column = self.dice.one(*_KEYS)
        sign, word = self.dice.one("=", "<>", "<", "<=", ">", ">="), self.dice.one("ANY", "ALL")
        query = self._query(outer, column)
        return made("condition", f"{outer}.{column} {sign} {word} ({{q}})", least="TRUE", q=query)

    def _unique(self, outer: str) -> Piece:
        """UNIQUE of one column or two: no two rows are equal, and a row with a NULL equals none."""
        columns, name = self.dice.one("k", "v", "s, v"), self.dice.alias()
        known = " AND ".join(f"{name}.{column} IS NOT NULL" for column in columns.split(", "))
        groups = f"SELECT 1 FROM ({{q}}) AS {name} WHERE {known} GROUP BY {columns} HAVING count(*) > 1"
        negated = self.dice.one("", "NOT ")
        return made(
            "condition",
            f"({negated}UNIQUE ({{q}}))",
            theirs=f"({negated}NOT EXISTS ({groups}))",
            least="TRUE",
            q=self._query(outer, columns),
        )

    def _exists(self, outer: str, negated: str = "") -> Piece:
        return made("condition", f"{negated}EXISTS ({{q}})", least="TRUE", q=self._query(outer, ""))

    def _either(self, outer: str) -> Piece:
        first = self._exists(outer, self.dice.one("", "NOT "))
        return made("condition", "({a} OR {b})", least="TRUE", a=first, b=self.queries.scalars.simple(outer))

    def value(self, outer: str) -> Piece:
        """A subquery in a select list."""
        ways = {
            "scalar value": lambda: self.scalar(outer),
            "exists value": lambda: self._exists(outer),
            "in value": lambda: self._in(outer),
            "pair in value": lambda: self._pair(outer),
            "quantified value": lambda: self._quantified(outer),
            "first value": lambda: self._first(outer),
            "correlated value": lambda: self.correlated.value(outer),
        }
        return self.dice.feature("subquery", ways)

    def scalar(self, outer: str) -> Piece:
        name = self.dice.alias()
        listed = (
            "count(*)",
            f"count({name}.s)",
            f"max({name}.v)",
            f"sum({name}.v) + 1",
            f"min({name}.v)",
            "count(*) + 1",
            f"max({name}.v - {outer}.k)",
        )
        value = self.dice.one(*listed)
        shared = self._shared(name, outer) if self.dice.chance(0.7) else "TRUE"
        return made(
            "scalar",
            f"(SELECT {value} FROM {{r}} AS {name} WHERE {shared} AND {{c}})",
            least="1",
            r=self.queries.relation(1),
            c=self.queries.scalars.simple(name),
        )

    def _first(self, outer: str) -> Piece:
        name, order = self.dice.alias(), self.dice.one("NULLS FIRST", "DESC NULLS LAST")
        text = f"(SELECT {name}.v FROM {{r}} AS {name} WHERE {self._shared(name, outer)} ORDER BY {name}.v {order} LIMIT 1)"
        return made("first", text, least="1", r=self.queries.relation(1))

    def _shared(self, name: str, outer: str) -> str:
        column = self.dice.one("k", "s", "v", "ts")
        comparison = "=" if self.dice.chance(0.7) else self.dice.one("<", ">=", "<>", "IS NOT DISTINCT FROM")
        return f"{name}.{column} {comparison} {outer}.{column}"

    def _query(self, outer: str, columns: str) -> Piece:
        name = self.dice.alias()
        items = (
            ", ".join(f"{name}.{column}" for column in columns.split(", "))
            if columns
            else self.dice.one("1", "*")
        )
        shared = self._shared(name, outer) if self.dice.chance(0.6) else "TRUE"
        return made(
            "inner",
            f"SELECT {items} FROM {{r}} AS {name} WHERE {shared}{{also}}",
            r=self.queries.relation(1),
            also=made("also", " AND {c}", least="", c=self.queries.scalars.simple(name))
            if self.dice.chance(0.5)
            else "",
        )
