"""Whole queries in words that people bring: GROUP BY ALL, DISTINCT ON, PIVOT, aliases read by later items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.generated.queries.generated.functions import calls
from tests.generated.queries.generated.pieces import Piece, joined, made

if TYPE_CHECKING:
    from tests.generated.queries.generated.queries import Queries


class Spellings:
    """Queries, each in our words and in DuckDB's."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.dice = queries.dice

    def query(self) -> Piece:
        ways = {
            "group by": self._grouped,
            "distinct on": self._distinct_on,
            "lateral aliases": self._aliases,
            "pivot": self._pivot,
            "unpivot": self._unpivot,
            "pivot statement": self._pivot_statement,
            "unpivot statement": self._unpivot_statement,
            "summarize": self._summarized,
            "json": self._json,
            "array of a query": self._array,
            "stars": self._stars,
            "emit rows": self._emitted,
        }
        return self.dice.feature("spelling", ways)

    def _pair(self, ours: str, theirs: str | None = None, **holes: str | Piece) -> Piece:
        holes.setdefault("r", self.queries.relation(1))
        return made("query", ours, theirs=theirs, **holes)

    def _grouped(self) -> Piece:
        name = self.dice.alias()
        head, rest = "SELECT k, s, {i}", f" FROM {{r}} AS {name}{{w}} GROUP BY "
        plain = f"{head}{rest}k, s"
        ways = {
            "all": (f"{head}{rest}ALL", plain),
            "()": (f"SELECT {{i}}{rest}()", f"SELECT {{i}} FROM {{r}} AS {name}{{w}}"),
            "ordinals": (f"{head}{rest}1, 2", plain),
            "aliases": (
                f"SELECT k % 2 AS p, s AS q, {{i}}{rest}p, q",
                f"SELECT k % 2 AS p, s AS q, {{i}}{rest}k % 2, s",
            ),
            "in parentheses": (f"{head}{rest}(k, s)", plain),
            "with rollup": (f"{plain} WITH ROLLUP", f"{head}{rest}ROLLUP (k, s)"),
            "with cube": (f"{plain} WITH CUBE", f"{head}{rest}CUBE (k, s)"),
            "sets behind keys": (
                f"{plain} GROUPING SETS ((k, s), (s), ())",
                f"{head}{rest}GROUPING SETS ((k, s), (s), ())",
            ),
            "distinct": (
                f"{head}{rest}DISTINCT ROLLUP (k, s), ROLLUP (s, k)",
                f"{head}{rest}GROUPING SETS ((k, s), (k), (s), ())",
            ),
        }
        ours, theirs = self.dice.feature(
            "group by", {way: lambda pair=pair: pair for way, pair in ways.items()}
        )
        return self._pair(ours, theirs, i=joined("items", ", ", calls(self.dice)), w=self.queries.where(name))

    def _distinct_on(self) -> Piece:
        name, key = self.dice.alias(), self.dice.one("k", "s", "k, s")
        first = ", ".join(f"{column} NULLS FIRST" for column in key.split(", "))
        order = self.queries.over.total_order()
        rows = f"SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY {order}) AS n FROM {{r}} AS {name}"
        return self._pair(
            f"SELECT DISTINCT ON ({key}) k, s, v, x, ts FROM {{r}} AS {name} ORDER BY {first}, {order}",
            f"SELECT k, s, v, x, ts FROM ({rows}) WHERE n = 1",
        )

    def _aliases(self) -> Piece:
        name = self.dice.alias()
        if self.dice.chance(0.5):
            ours = f"SELECT v + 1 AS a, a * 2 AS b, b - a AS c, upper(s) AS d FROM {{r}} AS {name}"
            return self._pair(ours, f"SELECT v + 1, (v + 1) * 2, v + 1, upper(s) FROM {{r}} AS {name}")
        ours = f"SELECT k % 2 AS p, p + 1 AS q, sum(v) AS n, n + q AS m FROM {{r}} AS {name} GROUP BY p, q"
        theirs = f"SELECT k % 2, k % 2 + 1, sum(v), sum(v) + k % 2 + 1 FROM {{r}} AS {name} GROUP BY k % 2"
        return self._pair(ours, theirs)

    def _pivot(self) -> Piece:
        name, source = self.dice.alias(), "(SELECT k, s, v FROM {r} AS {a}i)"
        call = self.dice.one("sum(v)", "max(v)", "count(v)")
        ours = f"SELECT * FROM {source} AS {name} PIVOT ({call} AS n, count(*) AS c FOR s IN ('a' AS a, 'b' AS b))"
        items = ", ".join(
            f"{c} FILTER (WHERE s = '{s}') AS {s}_{n}"
            for s in "ab"
            for c, n in ((call, "n"), ("count(*)", "c"))
        )
        return self._pair(ours, f"SELECT k, {items} FROM {source} GROUP BY k", a=name)

    def _unpivot(self) -> Piece:
        name, source = self.dice.alias(), "(SELECT s, k, v FROM {r} AS {a}i)"
        nulls = self.dice.chance(0.5)
        ours = f"SELECT * FROM {source} AS {name} UNPIVOT{' INCLUDE NULLS' if nulls else ''} (y FOR n IN (k, v AS w))"
        parts = (
            f"SELECT s, '{n}' AS n, {c} AS y FROM {source}{'' if nulls else f' WHERE {c} IS NOT NULL'}"
            for c, n in (("k", "k"), ("v", "w"))
        )
        return self._pair(ours, " UNION ALL ".join(parts), a=name)

    def _pivot_statement(self) -> Piece:
        """PIVOT as a statement, whose words are DuckDB's."""
        name, source = self.dice.alias(), "(SELECT k, s, v FROM {r} AS {a}i)"
        call = self.dice.one("sum(v)", "max(v)", "count(v)", "sum(v) FILTER (WHERE v > 1)", "sum(v) + 1")
        using = self.dice.one(f" USING {call}", f" USING {call} AS n, count(*) AS c", "")
        on = self.dice.one(
            "s IN ('a', 'b' AS b)", "s IN ('a', NULL)", "s IN ('a'), k IN (1, 2)", "k IN (1, 3)"
        )
        keys = self.dice.one("", " GROUP BY k", " GROUP BY s")
        text = f"PIVOT {source} AS {name} ON {on}{using}{keys}"
        if self.dice.chance(0.3):
            text = f"WITH {name}p AS ({text}) SELECT * FROM {name}p"
        return self._pair(text, text, a=name)

    def _unpivot_statement(self) -> Piece:
        name, source = self.dice.alias(), "(SELECT s, k, v FROM {r} AS {a}i)"
        ends = " INTO NAME n VALUE y"
        on = self.dice.one(
            f"k, v AS w{ends}",
            f"(k, v) AS w, (v, k){ends}, z",
            f"* EXCLUDE (s){ends}",
            f"COLUMNS('^[kv]$') + 1{ends}",
            f"k::VARCHAR, s{ends}",
            "v, k",
        )
        text = f"UNPIVOT {source} AS {name} ON {on}"
        if self.dice.chance(0.3):
            text = f"SELECT * FROM ({text}) AS {name}u"
        return self._pair(text, text, a=name)

    def _summarized(self) -> Piece:
        """SUMMARIZE without what is rounded: a row for each column."""
        name = self.dice.alias()
        rows = f"SELECT k, s, v FROM {{r}} AS {name}"
        ours = f"SELECT column_name, min, max, approx_unique, count, null_percentage FROM (SUMMARIZE {rows}) AS {name}s"
        facts = (
            f"SELECT '{c}' AS column_name, min({c})::VARCHAR AS min, max({c})::VARCHAR AS max, "
            f"count(DISTINCT {c}) AS approx_unique, count(*) AS count, "
            f"(100 * count_if({c} IS NULL) / nullif(count(*), 0))::DECIMAL(9, 2) AS null_percentage FROM ({rows})"
            for c in "ksv"
        )
        return self._pair(ours, " UNION ALL ".join(facts))

    def _json(self) -> Piece:
        """Objects by different keys, and lists in an order."""
        name = self.dice.alias()
        groups = f"(SELECT s, k, count(*) AS n, max(v) AS v FROM {{r}} AS {name} WHERE k IS NOT NULL GROUP BY s, k)"
        text = "SELECT s, {call} AS j FROM {groups} GROUP BY s".replace("{groups}", groups)
        absent = "json_objectagg(KEY k VALUE v ABSENT ON NULL)"
        pairs = """'{' || coalesce(string_agg('"' || k || '":' || v, ',' ORDER BY k), '') || '}'"""
        whole = pairs.replace("|| v,", "|| coalesce(v::VARCHAR, 'null'),")
        items = "'[' || coalesce(string_agg(v::VARCHAR, ',' ORDER BY v), '') || ']'"
        every = "'[' || string_agg(coalesce(v::VARCHAR, 'null'), ',' ORDER BY v NULLS FIRST) || ']'"
        ways = {
            "object": (absent, pairs),
            "object with nulls": ("json_objectagg(KEY k VALUE v)", whole),
            "array": ("json_arrayagg(v ORDER BY v)", items),
            "array with nulls": ("json_arrayagg(v ORDER BY v NULL ON NULL)", every),
        }
        ours, theirs = self.dice.feature("json", {way: lambda pair=pair: pair for way, pair in ways.items()})
        return self._pair(text.replace("{call}", ours), text.replace("{call}", theirs))

    def _array(self) -> Piece:
        """ARRAY of a query, read by its size and its ends, as rows with arrays are not hashed."""
        a, b = self.dice.alias(), self.dice.alias()
        column, item = self.dice.one("k", "s"), self.dice.one("v", "s")
        shared = self.dice.one(f"{b}.{column} = {a}.{column}", f"{b}.v < {a}.v", f"{b}.v > 1")
        order = self.dice.one("NULLS FIRST", "DESC NULLS LAST")
        array = f"ARRAY(SELECT {b}.{item} FROM {{q}} AS {b} WHERE {shared} ORDER BY {b}.{item} {order})"
        text = f"SELECT {a}.k, {a}.v, {{size}}({array}) AS n, {array}[{{one}}] AS e FROM {{r}} AS {a}"
        one = self.dice.one("1", "2")
        ours, theirs = (text.replace("{size}", size).replace("{one}", one) for size in ("size", "len"))
        return self._pair(ours, theirs, q=self.queries.relation(0))

    def _stars(self) -> Piece:
        name = self.dice.alias()
        ours = f"SELECT {name}.* EXCEPT (ts, x) REPLACE (v + 1 AS v) FROM {{r}} AS {name}"
        if self.dice.chance(0.4):
            row = f"SELECT {name}.q.* FROM (SELECT {{made}} AS q FROM {{r}} AS {name}i) AS {name}"
            made_of = self.dice.one(
                "struct(v AS a, s AS b)", "{'a': v, 'b': s}", "named_struct('a', v, 'b', s)"
            )
            ours = row.replace("{made}", made_of)
            return self._pair(ours, f"SELECT v AS a, s AS b FROM {{r}} AS {name}")
        ours = ours.replace(f"{{r}} AS {name}", f"(SELECT k, s, v, x, ts FROM {{r}} AS {name}i) AS {name}")
        return self._pair(ours, f"SELECT k, s, v + 1 AS v FROM {{r}} AS {name}")

    def _emitted(self) -> Piece:
        """Changes that are emitted by their number: in the end the same rows."""
        name = self.dice.alias()
        text = f"SELECT k, {{i}} FROM {{r}} AS {name} GROUP BY k"
        emit = self.dice.one("EMIT CHANGES EVERY 3 ROWS", "EMIT CHANGES AFTER 2 ROWS OR INTERVAL '1' SECOND")
        return self._pair(f"{text} {emit}", text, i=joined("items", ", ", calls(self.dice)))
