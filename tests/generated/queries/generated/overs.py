"""OVER, the first rows of partitions, deduplication."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.generated.queries.generated.pieces import Piece, made

if TYPE_CHECKING:
    from tests.generated.queries.generated.queries import Queries

_ALL = ("k", "s", "v", "x", "ts")


class Overs:
    """Relations that number and compare the rows of partitions. Every order is total or asks for ranks, so
    that no answer hangs on ties.
    """

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.dice = queries.dice

    def total_order(self) -> str:
        """Not by time first: OVER by event time leaves out rows without one, which others do not."""
        columns = list(_ALL)
        self.dice.random.shuffle(columns)
        if columns[0] == "ts":
            columns.reverse()
        return ", ".join(
            f"{column}{self.dice.one('', ' DESC')} NULLS {self.dice.one('FIRST', 'LAST')}"
            for column in columns
        )

    def top(self) -> Piece:
        rank = self.dice.one("ROW_NUMBER", "RANK", "DENSE_RANK")
        order = (
            self.total_order()
            if rank == "ROW_NUMBER"
            else self.dice.one("v NULLS FIRST", "x DESC NULLS LAST", "ts DESC NULLS LAST")
        )
        name = self.dice.alias()
        value = self.dice.one("v", "v", "CAST(n AS BIGINT) AS v")
        partition = self.dice.one("", "PARTITION BY k ", "PARTITION BY s ", "PARTITION BY k, s ")
        return made(
            "relation",
            f"(SELECT k, s, {value}, x, ts FROM (SELECT *, {rank}() OVER ({partition}ORDER BY {order}) AS n FROM {{r}} AS {name}) AS {name}n"
            f" WHERE n <= {self.dice.one('1', '2', '4')})",
            r=self.queries.relation(1),
        )

    def qualified(self) -> Piece:
        """QUALIFY by a rank or an aggregate of partitions."""
        name = self.dice.alias()
        calls = (
            f"ROW_NUMBER() OVER (PARTITION BY k ORDER BY {self.total_order()}) <= 2",
            "RANK() OVER (PARTITION BY s ORDER BY v NULLS FIRST) = 1",
        )
        call = self.dice.one(*calls, "count(*) OVER (PARTITION BY k) > 2", "v = max(v) OVER (PARTITION BY s)")
        return made(
            "relation",
            f"(SELECT k, s, v, x, ts FROM {{r}} AS {name}{{w}} QUALIFY {call})",
            r=self.queries.relation(1),
            w=self.queries.where(name),
        )

    def deduplicated(self) -> Piece:
        """The first or the last row of each key by time."""
        name = self.dice.alias()
        order = self.dice.one("", " DESC")
        return made(
            "relation",
            f"(SELECT k, s, v, x, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts{order}) AS n FROM {{r}} AS {name}"
            f" WHERE ts IS NOT NULL) AS {name}n WHERE n = 1)",
            r=self.queries.distinct_times(),
        )

    def in_time(self) -> Piece:
        """Values over the rows so far, by event time."""
        name = self.dice.alias()
        frame = self.dice.one(
            "",
            " ROWS BETWEEN 3 PRECEDING AND CURRENT ROW",
            " RANGE BETWEEN INTERVAL '10' SECONDS PRECEDING AND CURRENT ROW",
            " GROUPS BETWEEN 2 PRECEDING AND CURRENT ROW",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW",
        )
        call = self.dice.one("sum(v)", "count(*)", "min(v)", "max(v)", "count(x)")
        if self.dice.chance(0.4):
            nulls = self.dice.one("", " IGNORE NULLS")
            call = self.dice.one(f"first_value(v{nulls})", f"last_value(v{nulls})", f"nth_value(v, 2{nulls})")
        elif not frame and self.dice.chance(0.4):
            call = self.dice.one("lag(v)", "lag(v, 2, 0 IGNORE NULLS)", "ROW_NUMBER()", "DENSE_RANK()")
        partition = self.dice.one("", "PARTITION BY k ", "PARTITION BY s ")
        return made(
            "relation",
            f"(SELECT k, s, CAST({call} OVER ({partition}ORDER BY ts{frame}) AS BIGINT) AS v, x, ts FROM {{r}} AS {name} WHERE ts IS NOT NULL)",
            r=self.queries.distinct_times(),
        )

    def matches(self) -> Piece:
        """MATCH_RECOGNIZE of two or three rows that follow one another; others look back with lag."""
        name = self.dice.alias()
        sign, key = self.dice.one(">", "<", "<>", "="), self.dice.one("k", "s")
        three = self.dice.feature("match", {"two rows": lambda: False, "three rows": lambda: True})
        pattern, define = "A B", f"B AS B.v {sign} A.v"
        found = f"v {sign} lag(v) OVER w"
        if three:
            pattern, define = "A B C", f"{define}, C AS C.x IS NOT NULL"
            found = f"x IS NOT NULL AND lag(v) OVER w {sign} lag(v, 2) OVER w"
        last, other = ("C", "s" if key == "k" else "k") if three else ("B", "s" if key == "k" else "k")
        measures = f"A.{other} AS {other}, B.v AS v, {last}.x AS x, {last}.ts AS ts"
        back = "2" if three else "1"
        items = (
            f"{key}, lag({other}, {back}) OVER w AS {other}, {'lag(v) OVER w' if three else 'v'} AS v, x, ts"
        )
        return made(
            "relation",
            f"(SELECT k, s, v, x, ts FROM (SELECT * FROM {{r}} WHERE ts IS NOT NULL) MATCH_RECOGNIZE (PARTITION BY {key}"
            f" ORDER BY ts MEASURES {measures} ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN ({pattern})"
            f" DEFINE {define}) AS {name})",
            theirs=f"(SELECT k, s, v, x, ts FROM (SELECT {items} FROM {{r}} WHERE ts IS NOT NULL"
            f" WINDOW w AS (PARTITION BY {key} ORDER BY ts) QUALIFY {found}))",
            r=self.dice.one("t", "e"),
        )

    def exclude(self) -> str:
        return self.dice.one("", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES")

    def over_changes(self) -> Piece:
        """Values over whole, running or sliding partitions of rows that may change."""
        name = self.dice.alias()
        order = self.total_order()
        call = self.dice.feature(
            "over",
            {
                "whole": lambda: f"{self.dice.one('sum(v)', 'count(*)', 'max(v)')} OVER (PARTITION BY k)",
                "running rows": lambda: (
                    f"{self.dice.one('sum(v)', 'count(s)', 'min(v)')} OVER (PARTITION BY s ORDER BY {order} ROWS UNBOUNDED PRECEDING)"
                ),
                "sliding rows": lambda: (
                    f"sum(v) OVER (PARTITION BY k ORDER BY {order} ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)"
                ),
                "range": lambda: "sum(v) OVER (PARTITION BY s ORDER BY k NULLS FIRST)",
                "lead": lambda: (
                    f"lead(v{self.dice.one('', ', 2', ', 1, 7')}) OVER (PARTITION BY k ORDER BY {order})"
                ),
                "lag": lambda: (
                    f"lag(v{self.dice.one('', ', 2', ', 1, 7')}) OVER (PARTITION BY s ORDER BY {order})"
                ),
                "groups": lambda: (
                    f"{self.dice.one('sum(v)', 'count(*)')} OVER (PARTITION BY s ORDER BY k NULLS FIRST GROUPS BETWEEN"
                    f" {self.dice.one('1 PRECEDING', '2 PRECEDING', 'CURRENT ROW')} AND 1 FOLLOWING{self.exclude()})"
                ),
                "exclude": lambda: (
                    f"{self.dice.one('max(v)', 'sum(v)')} OVER (PARTITION BY k ORDER BY {order} ROWS BETWEEN 2 PRECEDING"
                    " AND 1 FOLLOWING EXCLUDE CURRENT ROW)"
                ),
                "ignore nulls": lambda: (
                    f"{self.dice.one('first_value(v', 'last_value(v', 'nth_value(v, 2')} IGNORE NULLS) OVER"
                    f" (PARTITION BY k ORDER BY {order} ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING)"
                ),
                "neighbour with a value": lambda: (
                    f"{self.dice.one('lag', 'lead')}(v, {self.dice.one('1', '2, 7')} IGNORE NULLS) OVER"
                    f" (PARTITION BY s ORDER BY {order})"
                ),
                "shares": lambda: (
                    f"CASE WHEN {self.dice.one('percent_rank', 'cume_dist')}() OVER (PARTITION BY k ORDER BY v NULLS FIRST)"
                    " > 0.4 THEN 1 ELSE 0 END"
                ),
                "filtered": lambda: (
                    f"sum(v) FILTER (WHERE k > 1) OVER (PARTITION BY s ORDER BY {order} ROWS UNBOUNDED PRECEDING)"
                ),
                "distinct": lambda: f"{self.dice.one('count', 'sum')}(DISTINCT v) OVER (PARTITION BY k)",
                "distance": lambda: (
                    "sum(v) OVER (PARTITION BY s ORDER BY k NULLS FIRST RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)"
                ),
                "two windows": lambda: (
                    f"count(v) OVER (PARTITION BY k) * 100 + row_number() OVER (PARTITION BY s ORDER BY {order})"
                ),
                "tiles": lambda: f"ntile({self.dice.one('2', '3')}) OVER (PARTITION BY s ORDER BY {order})",
                "rank": lambda: "rank() OVER (PARTITION BY k ORDER BY v NULLS FIRST)",
                "last": lambda: (
                    f"last_value(v) OVER (PARTITION BY k ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
                ),
            },
        )
        return made(
            "relation",
            f"(SELECT k, s, CAST({call} AS BIGINT) AS v, x, ts FROM {{r}} AS {name})",
            r=self.queries.relation(1),
        )
