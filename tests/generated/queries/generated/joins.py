"""Joins in the words of other engines: NATURAL, USING, parentheses, SEMI and ANTI, APPLY, subqueries in ON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.generated.queries.generated.pieces import Piece, made

if TYPE_CHECKING:
    from tests.generated.queries.generated.queries import Queries

_KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


class Joins:
    """Relations of the common layout that join two or three relations."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.dice = queries.dice

    def relation(self) -> Piece:
        ways = {
            "using": self._using,
            "using two": lambda: self._using("k, s"),
            "natural": self._natural,
            "in parentheses": self._nested,
            "semi or anti word": self._semi,
            "apply": self._apply,
            "subquery in on": self._subquery_in_on,
            "comparison": self._comparison,
        }
        return self.dice.feature("join words", ways)

    def _sides(self) -> dict[str, Piece]:
        return {"l": self.queries.relation(1), "r": self.queries.relation(1)}

    def _using(self, keys: str = "") -> Piece:
        """USING makes one column of two; of a FULL JOIN the one that is there."""
        a, b, keys = self.dice.alias(), self.dice.alias(), keys or self.dice.one("k", "v")
        columns = {column: f"{a}.{column} AS {column}" for column in ("k", "s", "v", "x")}
        columns |= {"x": f"{b}.x AS x", "ts": f"{self.dice.one(a, b)}.ts AS ts"}
        columns |= {key: key for key in keys.split(", ")}
        text = f"(SELECT {', '.join(columns.values())} FROM {{l}} AS {a} {self.dice.one(*_KINDS)} {{r}} AS {b} USING ({keys}))"
        return made("relation", text, **self._sides())

    def _natural(self) -> Piece:
        a, b = self.dice.alias(), self.dice.alias()
        kind = self.dice.one(*_KINDS)
        text = (
            f"(SELECT k, s, v, x, ts FROM (SELECT k, s, x FROM {{l}} AS {a}i) AS {a} NATURAL {kind}"
            f" (SELECT k, v, ts FROM {{r}} AS {b}i) AS {b})"
        )
        return made("relation", text, **self._sides())

    def _nested(self) -> Piece:
        a, b, c = self.dice.alias(), self.dice.alias(), self.dice.alias()
        first, second = self.dice.one(*_KINDS), self.dice.one(*_KINDS)
        text = (
            f"(SELECT {a}.k AS k, {b}.s AS s, {c}.v AS v, {a}.x AS x, {b}.ts AS ts FROM {{l}} AS {a} {first}"
            f" ({{q}} AS {b} {second} {{r}} AS {c} ON {b}.k = {c}.k) ON {a}.{{on}} = {b}.{{on}})"
        )
        return made("relation", text, q=self.queries.relation(0), on=self.dice.one("k", "s"), **self._sides())

    def _semi(self) -> Piece:
        a, b = self.dice.alias(), self.dice.alias()
        word, key = self.dice.one("SEMI", "ANTI"), self.dice.one("k", "s", "v")
        text = f"(SELECT {a}.* FROM {{l}} AS {a} {{w}} JOIN {{r}} AS {b} ON {a}.{key} = {b}.{key}{{more}})"
        more = self.dice.one("", f" AND {a}.v < {b}.v")
        ours = text.replace("{w}", f"{self.dice.one('', 'LEFT ')}{word}").replace("{more}", more)
        negated = "NOT " if word == "ANTI" else ""
        exists = f"{negated}EXISTS (SELECT 1 FROM {{r}} AS {b} WHERE {a}.{key} = {b}.{key}{more})"
        return made(
            "relation", ours, theirs=f"(SELECT {a}.* FROM {{l}} AS {a} WHERE {exists})", **self._sides()
        )

    def _apply(self) -> Piece:
        a, b = self.dice.alias(), self.dice.alias()
        cross = self.dice.chance(0.5)
        inner = f"(SELECT {b}.v AS v, {b}.x AS x FROM {{r}} AS {b} WHERE {b}.k = {a}.k)"
        head = f"(SELECT {a}.k AS k, {a}.s AS s, {b}l.v AS v, {b}l.x AS x, {a}.ts AS ts FROM {{l}} AS {a}"
        return made(
            "relation",
            f"{head} {'CROSS' if cross else 'OUTER'} APPLY {inner} AS {b}l)",
            theirs=f"{head} {'JOIN' if cross else 'LEFT JOIN'} {{r}} AS {b}l ON {b}l.k = {a}.k)",
            **self._sides(),
        )

    def _subquery_in_on(self) -> Piece:
        """A subquery in ON of an outer join: of one side, or correlated with both. DuckDB has the first
        computed below the join, and the second only of inner joins, so that LEFT is UNION ALL of the rest.
        """
        a, b, c = self.dice.alias(), self.dice.alias(), self.dice.alias()
        both = self.dice.chance(0.4)
        side, key = self.dice.one(a, b), self.dice.one("k", "s")
        self.dice.mark(f"join words: subquery of {'both sides' if both else 'one side'} in on")
        kind = self.dice.one("LEFT JOIN", "RIGHT JOIN") if both else self.dice.one(*_KINDS[1:])
        columns = {"k": f"{a}.k", "s": f"{b}.s", "v": f"{a}.v", "x": f"{b}.x", "ts": f"{a}.ts"}
        items = ", ".join(f"{text} AS {column}" for column, text in columns.items())
        negated = self.dice.one("", "NOT ")
        compared = f"{c}.v > {a}.v AND {c}.k = {b}.k" if both else f"{c}.v > {side}.v AND {c}.k = {side}.k"
        exists = f"{negated}EXISTS (SELECT 1 FROM {{q}} AS {c} WHERE {compared})"
        ours = f"(SELECT {items} FROM {{l}} AS {a} {kind} {{r}} AS {b} ON {a}.{key} = {b}.{key} AND {exists})"
        rows = f"WITH {a}w AS (SELECT *, row_number() OVER () AS no FROM {{l}} AS {a}i), {b}w AS (SELECT *, row_number() OVER () AS no FROM {{r}} AS {b}i)"
        pairs = f"{a}p AS (SELECT {a}.no AS an, {b}.no AS bn FROM {a}w AS {a} JOIN {b}w AS {b} ON {a}.{key} = {b}.{key} WHERE {exists})"
        found = f"SELECT {items} FROM {a}w AS {a} FULL JOIN {a}p ON {a}.no = an FULL JOIN {b}w AS {b} ON {b}.no = bn"
        shown = {"LEFT JOIN": f" WHERE {a}.no IS NOT NULL", "RIGHT JOIN": f" WHERE {b}.no IS NOT NULL"}
        theirs = f"({rows}, {pairs} {found}{shown.get(kind, '')})"
        return made("relation", ours, theirs=theirs, q=self.queries.relation(0), **self._sides())

    def _comparison(self) -> Piece:
        """A join without equalities."""
        a, b = self.dice.alias(), self.dice.alias()
        kind = self.dice.one("JOIN", "LEFT JOIN")
        sign = self.dice.one("<", "<=", ">", "<>")
        text = (
            f"(SELECT {a}.k AS k, {b}.s AS s, {a}.v AS v, {b}.x AS x, {a}.ts AS ts FROM {{l}} AS {a}"
            f" {kind} {{r}} AS {b} ON {a}.v {sign} {b}.v)"
        )
        return made("relation", text, l=self.queries.relation(0), r=self.queries.relation(0))
