"""Scalar expressions and conditions on which our words and DuckDB's and Spark's agree (RELIABILITY: the
table of known disagreements).
"""

from __future__ import annotations

from tests.generated.queries.generated.dice import Dice
from tests.generated.queries.generated.functions import FAMILIES, called
from tests.generated.queries.generated.pieces import Piece, made

COLUMNS = ("k", "s", "v", "x", "ts")  # INT, STRING, BIGINT, DECIMAL(8, 2), TIMESTAMP
_LITERALS = {
    "k": ("1", "2", "3"),
    "s": ("'a'", "'b'", "'c'", "''"),
    "v": ("0", "1", "2", "4"),
    "x": ("0.50", "1.25", "2.00"),
    "ts": ("TIMESTAMP '2024-01-01 00:00:30'", "TIMESTAMP '2024-01-01 00:01:00'"),
}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


class Scalars:
    """Expressions over a relation of the common layout, under an alias."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice

    def value(self, column: str, name: str, depth: int = 2) -> Piece:
        """An expression of a column's type."""
        if depth == 0 or self.dice.chance(0.4):
            return made("value", f"{name}.{column}")
        ways = {
            "case": lambda: self._case(column, name, depth),
            "coalesce": lambda: self._coalesce(column, name),
            "nullif": lambda: self._nullif(column, name),
        }
        ways |= {"k": self._small, "s": self._text, "v": self._number, "x": self._decimal, "ts": self._time}[
            column
        ](name, depth)
        if column in FAMILIES and self.dice.chance(0.5):
            return called(self.dice, column, name)
        return self.dice.feature("scalar", ways)

    def _case(self, column: str, name: str, depth: int) -> Piece:
        other = self.dice.one("NULL", self.dice.one(*_LITERALS[column]))
        least = f"{name}.{column}"
        return made(
            "value",
            "CASE WHEN {test} THEN {a} ELSE {b} END",
            least=least,
            test=self.simple(name),
            a=self.value(column, name, depth - 1),
            b=other if column != "x" else f"CAST({other} AS DECIMAL(8, 2))",
        )

    def _coalesce(self, column: str, name: str) -> Piece:
        literal = self.dice.one(*_LITERALS[column])
        literal = f"CAST({literal} AS DECIMAL(8, 2))" if column == "x" else literal
        return made("value", f"coalesce({name}.{column}, {literal})", least=f"{name}.{column}")

    def _nullif(self, column: str, name: str) -> Piece:
        return made(
            "value", f"nullif({name}.{column}, {self.dice.one(*_LITERALS[column])})", least=f"{name}.{column}"
        )

    def _small(self, name: str, depth: int) -> dict:
        return {
            "abs": lambda: made("value", f"abs({name}.k)", least=f"{name}.k"),
            "negative": lambda: made("value", f"(- {name}.k)", least=f"{name}.k"),
        }

    def _text(self, name: str, depth: int) -> dict:
        least = f"{name}.s"
        return {
            "concat": lambda: made(
                "value", "({a} || {b})", least=least, a=self.value("s", name, depth - 1), b=f"{name}.s"
            ),
            "upper": lambda: made("value", "upper({a})", least=least, a=self.value("s", name, depth - 1)),
            "substring": lambda: made(
                "value", "substring({a}, 1, 2)", least=least, a=self.value("s", name, depth - 1)
            ),
            "trim": lambda: made("value", "trim({a})", least=least, a=self.value("s", name, depth - 1)),
            "replace": lambda: made(
                "value", "replace({a}, 'a', 'xy')", least=least, a=self.value("s", name, depth - 1)
            ),
            "cast to text": lambda: made(
                "value",
                f"CAST({name}.v AS {{kind}})",
                theirs=f"CAST({name}.v AS VARCHAR)",
                least=least,
                kind="STRING",
            ),
        }

    def _number(self, name: str, depth: int) -> dict:
        least = f"{name}.v"

        def inner():
            return self.value("v", name, depth - 1)

        return {
            "add": lambda: made("value", "({a} + {b})", least=least, a=inner(), b=inner()),
            "subtract": lambda: made("value", "({a} - {b})", least=least, a=inner(), b=f"{name}.k"),
            "multiply": lambda: made("value", "({a} * 2)", least=least, a=inner()),
            "div": lambda: made("value", "({a} DIV 2)", theirs="({a} // 2)", least=least, a=f"abs({name}.v)"),
            "modulo": lambda: made("value", "({a} % 3)", least=least, a=inner()),
            "length": lambda: made("value", f"CAST(length({name}.s) AS BIGINT)", least=least),
            "cast up": lambda: made("value", f"CAST({name}.k AS BIGINT)", least=least),
            "greatest": lambda: made("value", "greatest({a}, 2)", least=least, a=f"coalesce({name}.v, 0)"),
            "far apart": lambda: made("value", f"(({name}.v - 3) * 1000000007)", least=least),
        }

    def _decimal(self, name: str, depth: int) -> dict:
        least = f"{name}.x"
        return {
            "decimal sum": lambda: made("value", f"CAST({name}.x + 1.25 AS DECIMAL(8, 2))", least=least),
            "decimal of integer": lambda: made("value", f"CAST({name}.k AS DECIMAL(8, 2))", least=least),
        }

    def _time(self, name: str, depth: int) -> dict:
        least = f"{name}.ts"
        return {
            "later": lambda: made("value", f"({name}.ts + INTERVAL '5' SECOND)", least=least),
            "truncated": lambda: made("value", f"date_trunc('minute', {name}.ts)", least=least),
        }

    def simple(self, name: str) -> Piece:
        """A condition on one column."""
        column = self.dice.one(*COLUMNS)

        def literal():
            return self.dice.one(*_LITERALS[column])

        ways = {
            "is null": lambda: f"{name}.{column} IS {self.dice.one('', 'NOT ')}NULL",
            "compare": lambda: f"{name}.{column} {self.dice.one(*_COMPARISONS)} {literal()}",
            "between": lambda: (
                f"{name}.{column} {self.dice.one('', 'NOT ')}BETWEEN {literal()} AND {literal()}"
            ),
            "in list": lambda: f"{name}.{column} {self.dice.one('', 'NOT ')}IN ({literal()}, {literal()})",
            "not distinct": lambda: (
                f"{name}.{column} IS {self.dice.one('', 'NOT ')}DISTINCT FROM {literal()}"
            ),
            "like": lambda: (
                f"{name}.s {self.dice.one('', 'NOT ')}LIKE '{self.dice.one('a%', '%b', '_', '%')}'"
            ),
            "ilike": lambda: (
                f"{name}.s {self.dice.one('', 'NOT ')}ILIKE '{self.dice.one('A%', '%B', '_', 'AB')}'"
            ),
            "compare columns": lambda: f"{name}.k {self.dice.one(*_COMPARISONS)} {name}.v",
        }
        words = {
            "similar to": (
                f"{name}.s SIMILAR TO '(a|b)%'",
                f"regexp_full_match({name}.s, '(a|b).*')",
            ),
            "between symmetric": (
                f"{name}.v BETWEEN SYMMETRIC 4 AND {name}.k",
                f"{name}.v BETWEEN 4 AND {name}.k OR {name}.v BETWEEN {name}.k AND 4",
            ),
            "any of a list": (f"{name}.k = ANY (1, {name}.v)", f"{name}.k IN (1, {name}.v)"),
            "all of a list": (f"{name}.k <> ALL (1, {name}.v)", f"{name}.k NOT IN (1, {name}.v)"),
            "unknown": (f"({name}.k > {name}.v) IS UNKNOWN", f"({name}.k > {name}.v) IS NULL"),
            "overlaps": (
                f"({name}.ts, INTERVAL '5' SECOND) OVERLAPS (TIMESTAMP '2024-01-01 00:00:10', TIMESTAMP '2024-01-01 00:00:30')",
                f"{name}.ts <= TIMESTAMP '2024-01-01 00:00:30' AND {name}.ts + INTERVAL 5 SECOND >= TIMESTAMP '2024-01-01 00:00:10'",
            ),
        }
        if self.dice.chance(0.2):
            ours, theirs = self.dice.feature(
                "condition word", {word: lambda pair=pair: pair for word, pair in words.items()}
            )
            return made("condition", f"({ours})", theirs=f"({theirs})", least="TRUE")
        return made("condition", self.dice.feature("condition", ways), least="TRUE")

    def condition(self, name: str, depth: int = 2) -> Piece:
        """A condition with AND, OR and NOT."""
        if depth == 0 or self.dice.chance(0.5):
            return self.simple(name)
        ways = {
            "and": lambda: made(
                "condition",
                "({a} AND {b})",
                least="TRUE",
                a=self.condition(name, depth - 1),
                b=self.condition(name, depth - 1),
            ),
            "or": lambda: made(
                "condition",
                "({a} OR {b})",
                least="TRUE",
                a=self.condition(name, depth - 1),
                b=self.condition(name, depth - 1),
            ),
            "not": lambda: made("condition", "(NOT {a})", least="TRUE", a=self.condition(name, depth - 1)),
            "of values": lambda: made(
                "condition",
                "({a} {op} {b})",
                least="TRUE",
                a=self.value("v", name),
                op=self.dice.one(*_COMPARISONS),
                b=self.value("v", name),
            ),
        }
        return self.dice.feature("condition", ways)
