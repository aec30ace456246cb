"""Rows from arrays, fields of rows, queries that read the table before them, versions as of a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.generated.queries.generated.pieces import Piece, made

if TYPE_CHECKING:
    from tests.generated.queries.generated.queries import Queries


class Nested:
    """Relations of the common layout whose FROM looks to the left."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.dice = queries.dice

    def unnested(self) -> Piece:
        """A row for each element of an array made of its columns; none where the array is NULL, or one."""
        a, u = self.dice.alias(), self.dice.alias()
        elements = f"{a}.v, {self.dice.one('3', f'{a}.v + 1', f'{a}.v')}{self.dice.one('', ', NULL')}"
        head = f"(SELECT {a}.k AS k, {a}.s AS s, {u}.e AS v, {a}.x AS x, {a}.ts AS ts FROM {{r}} AS {a}"

        def array(left: str, right: str) -> str:
            return f"CASE WHEN {a}.k > 1 THEN {left}{elements}{right} END"

        ours, theirs = array("ARRAY[", "]"), array("[", "]")
        numbered = head.replace(f"{u}.e AS v", f"{u}.e * 10 + {u}.n AS v")
        lateral = f"LATERAL (SELECT UNNEST({theirs}) AS e, generate_subscripts({theirs}, 1) AS n) AS {u}"
        templates = {
            "cross": (f"{head} CROSS JOIN UNNEST({ours}) AS {u}(e))", f"{head} CROSS JOIN {lateral})"),
            "comma": (
                f"{head}, UNNEST({ours}) AS {u}(e) WHERE {u}.e > 1)",
                f"{head}, {lateral} WHERE {u}.e > 1)",
            ),
            "left": (
                f"{head} LEFT JOIN UNNEST({ours}) AS {u}(e) ON TRUE)",
                f"{head} LEFT JOIN {lateral} ON TRUE)",
            ),
            "ordinality": (
                f"{numbered} CROSS JOIN UNNEST({ours}) WITH ORDINALITY AS {u}(e, n))",
                f"{numbered} CROSS JOIN {lateral})",
            ),
        }
        text, words = self.dice.feature(
            "unnest", {name: lambda pair=pair: pair for name, pair in templates.items()}
        )
        return made("relation", text, theirs=words, r=self.queries.relation(1))

    def collected(self) -> Piece:
        """Values of groups as arrays, taken apart again."""
        a, u = self.dice.alias(), self.dice.alias()
        key = self.dice.one("k", "s")
        head = f"(SELECT k, s, {u}.e AS v, x, ts FROM (SELECT {{k}} AS k, {{s}} AS s, max(x) AS x, max(ts) AS ts, {{l}} AS l FROM {{r}} AS {a}"
        rest = f" GROUP BY {key}) AS {a}g"
        keys = {"k": "k" if key == "k" else "max(k)", "s": "s" if key == "s" else "min(s)"}
        return made(
            "relation",
            f"{head.replace('{l}', 'collect_list(v)')}{rest} CROSS JOIN UNNEST({a}g.l) AS {u}(e))",
            theirs=f"{head.replace('{l}', 'list(v) FILTER (WHERE v IS NOT NULL)')}{rest} CROSS JOIN UNNEST({a}g.l) AS {u}(e))",
            r=self.queries.relation(1),
            **keys,
        )

    def fields(self) -> Piece:
        """Columns put into a row within a row and read from there; rows as keys of DISTINCT."""
        a = self.dice.alias()
        distinct = self.dice.one("", "DISTINCT ")
        items = f"{a}n.q.r.k AS k, {a}n.s AS s, {a}n.q.v AS v, {a}n.x AS x, {a}n.q.r.ts AS ts"
        made_of = "named_struct('r', named_struct('k', k, 'ts', ts), 'v', v)"
        return made(
            "relation",
            f"(SELECT {items} FROM (SELECT {distinct}{made_of} AS q, s, x FROM {{r}} AS {a}) AS {a}n)",
            theirs=f"(SELECT {items} FROM (SELECT {distinct}{{p}} AS q, s, x FROM {{r}} AS {a}) AS {a}n)",
            p="{'r': {'k': k, 'ts': ts}, 'v': v}",
            r=self.queries.relation(1),
        )

    def composite_keys(self) -> Piece:
        """Arrays, rows and long texts as keys of groups, DISTINCT and joins."""
        a, b = self.dice.alias(), self.dice.alias()
        ours, theirs, last = self.dice.feature(
            "composite key",
            {
                "array": lambda: ("array({x}.k, {x}.v)", "[{x}.k, {x}.v]", "y[2]"),
                "array with a NULL": lambda: (
                    "array({x}.v, NULL, {x}.k)",
                    "[{x}.v, NULL, {x}.k]",
                    "y[1]",
                ),
                "long text": lambda: ("repeat(coalesce({x}.s, 'zz'), 3000)",) * 2 + ("length(y)",),
                "row": lambda: ("named_struct('p', {x}.s, 'q', {x}.v)", "{'p': {x}.s, 'q': {x}.v}", "y.q"),
                "array of rows": lambda: ("array(named_struct('q', {x}.v))", "[{'q': {x}.v}]", "y[1].q"),
            },
        )
        rest = f"min({a}.s) AS s, CAST({last} AS BIGINT) AS v, max({a}.x) AS x, max({a}.ts) AS ts"
        grouped = f"(SELECT max({a}.k) AS k, {rest} FROM (SELECT *, {{y}} AS y FROM {{r}} AS {a}i) AS {a} GROUP BY y)"
        joined = (
            f"(SELECT {a}.k AS k, {a}.s AS s, {b}.v AS v, {a}.x AS x, {b}.ts AS ts FROM {{r}} AS {a} JOIN {{q}} AS {b}"
            f" ON {{y}} = {{z}})"
        )
        if self.dice.chance(0.5):
            words = [grouped.replace("{y}", text.replace("{x}", f"{a}i")) for text in (ours, theirs)]
            return made("relation", words[0], theirs=words[1], r=self.queries.relation(1))
        words = [
            joined.replace("{y}", text.replace("{x}", a)).replace("{z}", text.replace("{x}", b))
            for text in (ours, theirs)
        ]
        sides = {"r": self.queries.relation(1), "q": self.queries.relation(0)}
        return made("relation", words[0], theirs=words[1], **sides)

    def lateral(self) -> Piece:
        """For each row a query over the rows of its key: an aggregate, the first rows, all."""
        a, b = self.dice.alias(), self.dice.alias()
        column = self.dice.one("k", "s", "v")
        inner = f"FROM {{q}} AS {b} WHERE {b}.{column} = {a}.{column}"
        ways = {
            "aggregate": (f"SELECT count(*) AS v, max({b}.x) AS x {inner}", False),
            "first": (
                f"SELECT {b}.v, {b}.x {inner} ORDER BY {', '.join(f'{b}.{one} NULLS FIRST' for one in ('v', 'x'))} LIMIT 2",
                True,
            ),
            "rows": (f"SELECT {b}.v, {b}.x {inner} AND {b}.v > 1", True),
            "groups": (f"SELECT count(*) AS v, max({b}.x) AS x {inner} GROUP BY {b}.s", True),
            "union": (f"SELECT {b}.v, {b}.x {inner} UNION SELECT {a}.v, {a}.x", True),
            "own columns": (f"SELECT {b}.v + {a}.k AS v, {b}.x {inner}", True),
            "distinct": (f"SELECT DISTINCT {b}.v, {a}.x {inner}", True),
        }
        text, optional = self.dice.feature(
            "lateral", {name: lambda way=way: way for name, way in ways.items()}
        )
        join = (
            f"LEFT JOIN LATERAL ({text}) AS {b}l ON TRUE"
            if optional and self.dice.chance(0.5)
            else f"CROSS JOIN LATERAL ({text}) AS {b}l"
        )
        return made(
            "relation",
            f"(SELECT {a}.k AS k, {a}.s AS s, {b}l.v AS v, {b}l.x AS x, {a}.ts AS ts FROM {{r}} AS {a} {join})",
            r=self.queries.relation(1),
            q=self.queries.relation(0),
        )

    def asof(self) -> Piece:
        """Rows with the nearest row of their key, of rows that are updated; no two are equally near."""
        a, b = self.dice.alias(), self.dice.alias()
        key, sign = self.dice.one("k", "s"), self.dice.one(">=", ">", "<=", "<")
        kind = self.dice.feature("asof", {"inner": lambda: "", "left": lambda: "LEFT "})
        nearest = f"(SELECT {key}, v, count(*) AS n FROM {{q}} AS {b}q GROUP BY {key}, v)"
        on, compared = f"{a}.{key} = {b}.{key}", f"{a}.v {sign} {b}.v"
        ways = {
            "on": f"ASOF {kind}JOIN {nearest} AS {b} ON {on} AND {compared})",
            "match condition": f"{kind}ASOF JOIN {nearest} AS {b} MATCH_CONDITION ({compared}) ON {on})",
        }
        join = self.dice.feature("asof words", {way: lambda text=text: text for way, text in ways.items()})
        return made(
            "relation",
            f"(SELECT {a}.k AS k, {a}.s AS s, {b}.n AS v, {a}.x AS x, {a}.ts AS ts FROM {{r}} AS {a} {join}",
            theirs=f"(SELECT {a}.k AS k, {a}.s AS s, {b}.n AS v, {a}.x AS x, {a}.ts AS ts FROM {{r}} AS {a}"
            f" ASOF {kind}JOIN {nearest} AS {b} ON {a}.{key} = {b}.{key} AND {a}.v {sign} {b}.v)",
            r=self.queries.relation(1),
            q=self.queries.relation(0),
        )

    def nearest(self) -> Piece:
        """The nearest value of the rows of a key, of which several may be equally near and some NULL: times,
        texts or numbers, or of all rows.
        """
        a, b = self.dice.alias(), self.dice.alias()
        column, sign = self.dice.one("k", "s", "v", "x", "ts"), self.dice.one(">=", ">", "<=", "<")
        key = self.dice.one("", *(f"{a}.{key} = {b}.{key} AND " for key in ("k", "s", "v") if key != column))
        values = {"k": f"{a}.k", "s": f"{a}.s", "v": f"{a}.v", "x": f"{a}.x", "ts": f"{a}.ts"}
        items = {**values, column: f"{b}.{column}"}
        kind = self.dice.feature("nearest", {"inner": lambda: "", "left": lambda: "LEFT "})
        self.dice.mark(f"nearest of: {column}")
        mine, theirs = f"{a}.{column}", f"{b}.{column}"
        if column in ("v", "x"):
            # values of other types, of one scale or of two
            wide = self.dice.one(None, None, (30, 2), (38, 10), (38, 4))
            if wide is not None:
                self.dice.mark("nearest of wide decimals")
                mine = f"CAST({mine} AS DECIMAL({wide[0]}, {wide[1]}))"
                theirs = self.dice.one(
                    theirs, f"CAST({theirs} AS DECIMAL(28, 6))", f"CAST({theirs} AS DECIMAL(38, 4))"
                )
        return made(
            "relation",
            f"(SELECT {', '.join(f'{text} AS {name}' for name, text in items.items())} FROM {{r}} AS {a}"
            f" ASOF {kind}JOIN {{q}} AS {b} ON {key}{mine} {sign} {theirs})",
            r=self.queries.relation(1),
            q=self.queries.relation(1),
        )

    def as_of(self) -> Piece:
        """Rows with the version of their key that was in force at their time."""
        a, b = self.dice.alias(), self.dice.alias()
        kind = self.dice.feature("as of", {"inner": lambda: "", "left": lambda: "LEFT "})
        table, key = self.dice.one("t", "e"), self.dice.one("k", "s")
        versions = f"(SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY ts DESC) AS n FROM {table}) WHERE n = 1)"
        head = f"(SELECT {a}.k AS k, {b}.s AS s, {b}.v AS v, {a}.x AS x, {a}.ts AS ts FROM {{r}} AS {a} "
        return made(
            "relation",
            f"{head}{kind}JOIN {versions} FOR SYSTEM_TIME AS OF {a}.ts AS {b} ON {a}.{key} = {b}.{key})",
            theirs=f"{head}ASOF {kind}JOIN (SELECT * FROM {table} WHERE ts IS NOT NULL) AS {b} ON {a}.{key} = {b}.{key} AND {a}.ts >= {b}.ts)",
            r=self.queries.distinct_times(),
        )
