"""Random queries from a seed: subqueries, set operations and grouping sets over relations of one layout, as text that DuckDB reads too."""

from __future__ import annotations

import random

COLUMNS = ("k", "s", "v")  # INT, STRING, BIGINT; each with NULLs
_LITERALS = {"k": ("1", "2", "3"), "s": ("'a'", "'b'", "'c'"), "v": ("0", "1", "2", "4")}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


class RandomQueries:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.aliases = 0

    def query(self) -> str:
        make = self.dice.choice([self._filtered, self._filtered, self._listed, self._grouped, self._set_operation, self._having])
        return make()

    # relations (k INT, s STRING, v BIGINT)

    def _relation(self, depth: int = 2) -> str:
        """A table, or a subquery in FROM: what groups below gives updates above."""
        kind = self.dice.randrange(10)
        if depth == 0 or kind < 5:
            return self.dice.choice(["t", "u", "small", "t", "u", "nothing"] if kind == 0 else ["t", "u", "small"])
        inner = self._relation(depth - 1)
        name = self._alias()
        if kind == 5:
            return f"(SELECT k, max(s) AS s, count(*) AS v FROM {inner} AS {name} GROUP BY k)"
        if kind == 6:
            return f"(SELECT min(k) AS k, s, count(v) AS v FROM {inner} AS {name} GROUP BY s)"
        if kind == 7:
            return f"(SELECT DISTINCT k, s, v FROM {inner} AS {name})"
        if kind == 8:
            return f"(SELECT k, s, v FROM {inner} AS {name} WHERE {self._simple(name)})"
        return f"({self._set_text(depth - 1)})"

    def _alias(self) -> str:
        self.aliases += 1
        return f"r{self.aliases}"

    def _simple(self, name: str) -> str:
        column = self.dice.choice(COLUMNS)
        if self.dice.random() < 0.25:
            return f"{name}.{column} IS {self.dice.choice(['', 'NOT '])}NULL"
        return f"{name}.{column} {self.dice.choice(_COMPARISONS)} {self.dice.choice(_LITERALS[column])}"

    # conditions

    def _condition(self, name: str, depth: int = 2) -> str:
        parts = [self._conjunct(name, depth) for _ in range(self.dice.choice([1, 1, 2]))]
        return " AND ".join(parts)

    def _conjunct(self, name: str, depth: int) -> str:
        kind = self.dice.randrange(10)
        if depth == 0 or kind == 0:
            return self._simple(name)
        if kind <= 3:
            return self._in(name, depth)
        if kind <= 6:
            negated = self.dice.choice(["", "NOT "])
            return f"{negated}EXISTS ({self._inner(name, depth, '*' if self.dice.random() < 0.5 else '1')})"
        if kind == 7:
            either = self._in(name, depth - 1, keyed=True) if depth > 1 else self._simple(name)
            return f"({either} OR {self._simple(name)})"
        if kind == 8:
            return f"({self._exists_keyed(name)} OR {self._simple(name)})"
        return f"{name}.v {self.dice.choice(_COMPARISONS)} {self._scalar(name)}"

    def _in(self, name: str, depth: int, keyed: bool = False) -> str:
        negated = self.dice.choice(["", "NOT "])
        if self.dice.random() < 0.25 and not keyed:
            pair = self.dice.sample(COLUMNS, 2)
            left = ", ".join(f"{name}.{column}" for column in pair)
            return f"({left}) {negated}IN ({self._inner(name, depth, ', '.join(pair))})"
        column = self.dice.choice(COLUMNS)
        left = f"{name}.{column}"
        if column != "s" and self.dice.random() < 0.2:
            left = f"{left} + 1"
        return f"{left} {negated}IN ({self._inner(name, depth, column, keyed=keyed)})"

    def _exists_keyed(self, name: str) -> str:
        return f"{self.dice.choice(['', 'NOT '])}EXISTS ({self._inner(name, 1, '1', keyed=True)})"

    def _inner(self, outer: str, depth: int, items: str, keyed: bool = False) -> str:
        """A subquery, its own columns under an alias of its own; ``keyed``: what it shares with the outer rows is equalities."""
        name = self._alias()
        qualified = ", ".join(item if item in ("*", "1") else f"{name}.{item}" for item in items.split(", "))
        parts = []
        if self.dice.random() < 0.6:
            column = self.dice.choice(COLUMNS)
            comparison = "=" if keyed or self.dice.random() < 0.7 else self.dice.choice(_COMPARISONS)
            parts.append(f"{name}.{column} {comparison} {outer}.{column}")
            if not keyed and self.dice.random() < 0.3:
                parts.append(f"{name}.v {self.dice.choice(_COMPARISONS)} {outer}.v")
        if self.dice.random() < 0.4:
            parts.append(self._simple(name) if depth <= 1 else self._conjunct(name, depth - 1))
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        return f"SELECT {qualified} FROM {self._relation(1)} AS {name}{where}"

    def _scalar(self, outer: str) -> str:
        name = self._alias()
        value = self.dice.choice(["count(*)", f"count({name}.s)", f"max({name}.v)", f"sum({name}.v) + 1", f"min({name}.k)", "count(*) + 1"])
        parts = []
        if self.dice.random() < 0.7:
            column = self.dice.choice(COLUMNS)
            parts.append(f"{name}.{column} = {outer}.{column}")
        if self.dice.random() < 0.4:
            parts.append(self._simple(name))
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        return f"(SELECT {value} FROM {self._relation(1)} AS {name}{where})"

    # queries

    def _filtered(self) -> str:
        name = self._alias()
        return f"SELECT {name}.k, {name}.s, {name}.v FROM {self._relation()} AS {name} WHERE {self._condition(name)}"

    def _listed(self) -> str:
        name = self._alias()
        items = [f"{name}.k", f"{self._scalar(name)} AS x"]
        if self.dice.random() < 0.4:
            items.append(f"{self._exists_keyed(name)} AS e")
        if self.dice.random() < 0.4:
            items.append(f"{self._in(name, 1, keyed=True)} AS i")
        where = f" WHERE {self._simple(name)}" if self.dice.random() < 0.4 else ""
        return f"SELECT {', '.join(items)} FROM {self._relation()} AS {name}{where}"

    def _having(self) -> str:
        name = self._alias()
        scalar = f"(SELECT {self.dice.choice(['min(v)', 'count(*)'])} FROM {self._relation(1)} AS {self._alias()})"
        total = f", (SELECT max(v) FROM {self._relation(1)} AS {self._alias()}) AS m" if self.dice.random() < 0.5 else ""
        return f"SELECT {name}.k, count(*) AS n{total} FROM {self._relation()} AS {name} GROUP BY {name}.k HAVING count(*) >= {scalar}"

    def _grouped(self) -> str:
        grouping = self.dice.choice(
            ["ROLLUP (k, s)", "CUBE (k, s)", "GROUPING SETS ((k), (s))", "GROUPING SETS ((k, s), ())", "k, ROLLUP (s)", "GROUPING SETS (k, CUBE (s))"]
        )
        marks = self.dice.choice(["", ", grouping(k) AS g", ", grouping(k, s) AS g"])
        calls = ", ".join(self.dice.sample(["count(*) AS a", "sum(v) AS b", "min(v) AS c", "count(DISTINCT v) AS d"], 2))
        having = " HAVING count(*) > 1" if self.dice.random() < 0.3 else ""
        return f"SELECT k, s, {calls}{marks} FROM {self._relation()} AS {self._alias()} GROUP BY {grouping}{having}"

    def _set_operation(self) -> str:
        return self._set_text(2)

    def _set_text(self, depth: int) -> str:
        words = [self.dice.choice(["UNION", "INTERSECT", "EXCEPT"]) + self.dice.choice([" ALL", ""]) for _ in range(self.dice.choice([1, 1, 2]))]
        columns = "k, s, v"
        parts = []
        for _ in range(len(words) + 1):
            name = self._alias()
            where = f" WHERE {self._simple(name)}" if self.dice.random() < 0.4 else ""
            parts.append(f"SELECT {columns} FROM {self._relation(depth - 1)} AS {name}{where}")
        text = parts[0]
        for word, part in zip(words, parts[1:], strict=True):
            text = f"{text} {word} {part}"
        return text
