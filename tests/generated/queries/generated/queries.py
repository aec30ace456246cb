"""Typed random queries: relations of one layout (k, s, v, x, ts) made of every construct, in our words and
in DuckDB's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from tests.generated.queries.generated.dice import Dice
from tests.generated.queries.generated.documents import Documents
from tests.generated.queries.generated.functions import calls
from tests.generated.queries.generated.joins import Joins
from tests.generated.queries.generated.nested import Nested
from tests.generated.queries.generated.overs import Overs
from tests.generated.queries.generated.pieces import Piece, joined, made
from tests.generated.queries.generated.pipes import Pipes
from tests.generated.queries.generated.recursion import Recursion
from tests.generated.queries.generated.row_windows import RowWindows
from tests.generated.queries.generated.scalars import COLUMNS, Scalars
from tests.generated.queries.generated.spellings import Spellings
from tests.generated.queries.generated.subqueries import Subqueries
from tests.generated.queries.generated.typed_values import TypedValues
from tests.generated.queries.generated.windows import Windows

BLOCK = 100  # queries of a block prefer what its earlier ones did not have
RARE_FROM = 10_000  # from this seed on they prefer what was met least; blocks are longer, and candidates more
RARE_BLOCK = 500
TIMED = ("t", "e", "c")
STREAMS = ("t", "e", "c", "u", "w", "nothing")
_LAYOUT = "k, s, v, x, ts"


class Queries:
    """Makes one query. ``windows``: whether constructs other engines have no word for are among them."""

    def __init__(self, seed: int, seen: Counter[str], windows: bool = True) -> None:
        self.dice = Dice(seed, seen)
        self.scalars = Scalars(self.dice)
        self.subqueries = Subqueries(self)
        self.windows = Windows(self)
        self.over = Overs(self)
        self.nested = Nested(self)
        self.joins = Joins(self)
        self.recursion = Recursion(self)
        self.row_windows = RowWindows(self)
        self.spellings = Spellings(self)
        self.pipes = Pipes(self)
        self.documents = Documents(self)
        self.typed = TypedValues(self)
        self._has_windows = windows

    def query(self) -> Piece:
        ways = {
            "relation": self._listed,
            "grouped": self._grouped,
            "sets": lambda: made("query", "{r}", r=self._sets()),
            "grouping sets": self._grouping_sets,
            "with": self._with,
            "subquery items": self._subquery_items,
            "subqueries beneath": self._subqueries_beneath,
            "correlated items": self._correlated_items,
            "top": self._first_rows,
            "limit": self._some_rows,
            "spelling": self.spellings.query,
            "typed values": self.typed.query,
        }
        if self._has_windows:
            ways["emit"] = self.windows.emitted
        return self.dice.feature("query", ways)

    # relations

    def relation(self, depth: int = 2) -> Piece:
        if depth == 0 or self.dice.chance(0.35):
            return made("relation", self.dice.one(*STREAMS))
        ways = {
            "filter": lambda: self._filter(depth),
            "project": lambda: self._project(depth),
            "join": lambda: self._join(depth),
            "semi": lambda: self._semi(depth),
            "interval join": self._interval_join,
            "group": lambda: self._group(depth),
            "distinct": lambda: made(
                "relation",
                f"(SELECT DISTINCT {_LAYOUT} FROM {{r}} AS {{a}})",
                r=self.relation(depth - 1),
                a=self.dice.alias(),
            ),
            "set operation": lambda: made("relation", "({q})", q=self._sets(depth - 1)),
            "top of partitions": self.over.top,
            "deduplicated": self.over.deduplicated,
            "over in time": self.over.in_time,
            "over changes": self.over.over_changes,
            "values": self._values,
            "unnested": self.nested.unnested,
            "collected": self.nested.collected,
            "fields": self.nested.fields,
            "lateral": self.nested.lateral,
            "asof": self.nested.asof,
            "nearest": self.nested.nearest,
            "qualified": self.over.qualified,
            "views": lambda: self._views(depth),
            "limited": lambda: self._limited(depth),
            "join words": self.joins.relation,
            "recursive": self.recursion.relation,
            "count windows": self.row_windows.relation,
            "composite keys": self.nested.composite_keys,
            "pipes": self.pipes.relation,
            "documents": self.documents.relation,
            "typed values": self.typed.relation,
        }
        if self._has_windows:
            ways |= {
                "window groups": self.windows.grouped,
                "window sets": self.windows.sets,
                "windows of updates": self.windows.of_updates,
                "window rows": self.windows.rows,
                "window top": self.windows.top,
                "window join": self.windows.join,
                "window semi join": self.windows.semi,
                "as of": self.nested.as_of,
                "in time": self._in_time,
                "window words": self.windows.in_other_words,
                "matches": self.over.matches,
            }
        return self.dice.feature("relation", ways)

    def timed(self) -> Piece:
        """A relation whose ts is an event time."""

        def base():
            return made("timed", self.dice.one(*TIMED))

        ways = {"table": base, "table again": base, "filtered": self._timed_filter}
        if self.dice.chance(0.3):
            ways["window_time"] = lambda: self.windows.grouped("window_time")
        return self.dice.feature("timed", ways)

    def distinct_times(self) -> Piece:
        """A relation with event time, no two rows of one time."""
        return made("timed", self.dice.one(*TIMED)) if self.dice.chance(0.6) else self._timed_filter()

    def _in_time(self) -> Piece:
        """CURRENT_WATERMARK in a condition that holds for every row with a time, as none is late."""
        head = f"(SELECT {_LAYOUT} FROM {{r}} WHERE ts IS NOT NULL"
        mark = "CURRENT_WATERMARK(ts)"
        return made(
            "relation",
            f"{head} AND ({mark} IS NULL OR ts > {mark}))",
            theirs=f"{head})",
            r=self.dice.one("t", "e"),  # over changes it is refused
        )

    def _timed_filter(self) -> Piece:
        name = self.dice.alias()
        items = ", ".join(f"{{{column}}} AS {column}" for column in COLUMNS[:-1])
        values = {column: self.scalars.value(column, name, 1) for column in COLUMNS[:-1]}
        template = f"(SELECT {items}, {name}.ts AS ts FROM {{r}} AS {name} WHERE {{c}})"
        return made(
            "timed", template, least="t", r=self.dice.one(*TIMED), c=self.scalars.condition(name, 1), **values
        )

    def where(self, name: str) -> Piece | str:
        return (
            made("where", " WHERE {c}", least="", c=self.scalars.condition(name))
            if self.dice.chance(0.5)
            else ""
        )

    def having(self, name: str) -> Piece | str:
        if not self.dice.chance(0.25):
            return ""
        self.dice.mark("having")
        return made(
            "having",
            f" HAVING {self.dice.one('count(*) > 1', 'sum(v) >= 2', 'max(v) IS NOT NULL')}",
            least="",
        )

    def aggregate(self, column: str, name: str) -> Piece:
        """An aggregate of a column's type in the common layout: v BIGINT, x DECIMAL(8, 2)."""
        where = (
            self.dice.one(" FILTER (WHERE k > 1)", " FILTER (WHERE s IS NOT NULL)")
            if self.dice.chance(0.25)
            else ""
        )
        if where:
            self.dice.mark("filter of an aggregate")
        if column == "x":
            return made(
                "aggregate",
                f"{self.dice.one('max(x)', 'min(x)', 'CAST(sum(x) AS DECIMAL(8, 2))') if not where else f'max(x){where}'}",
                least="max(x)",
            )
        ways = {
            name: lambda text=text: made("aggregate", f"CAST({text}{where} AS BIGINT)", least="count(*)")
            for name, text in {
                "count": "count(*)",
                "count of": "count(s)",
                "sum": "sum(v)",
                "min": "min(v)",
                "max": "max(v)",
                "count distinct": "count(DISTINCT v)",
                "sum distinct": "sum(DISTINCT v)",
            }.items()
        }
        return self.dice.feature("aggregate", ways)

    def _filter(self, depth: int) -> Piece:
        name = self.dice.alias()
        condition = (
            self.subqueries.condition(name)
            if depth > 1 and self.dice.chance(0.5)
            else self.scalars.condition(name)
        )
        return made(
            "relation", f"(SELECT * FROM {{r}} AS {name} WHERE {{c}})", r=self._plain(depth), c=condition
        )

    def _plain(self, depth: int) -> Piece:
        """A relation whose columns are exactly the layout, so that ``*`` may be said of it."""
        return made(
            "relation",
            f"(SELECT {_LAYOUT} FROM {{r}} AS {{a}})",
            r=self.relation(depth - 1),
            a=self.dice.alias(),
        )

    def _project(self, depth: int) -> Piece:
        name = self.dice.alias()
        items = ", ".join(f"{{{column}}} AS {column}" for column in COLUMNS)
        values = {column: self.scalars.value(column, name) for column in COLUMNS}
        return made(
            "relation",
            f"(SELECT {items} FROM {{r}} AS {name}{{where}})",
            r=self.relation(depth - 1),
            where=self.where(name),
            **values,
        )

    def _join(self, depth: int) -> Piece:
        a, b = self.dice.alias(), self.dice.alias()
        ways = {kind: lambda kind=kind: kind for kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")}
        kind = self.dice.feature("join", ways)
        keys = self.dice.some(("k", "s", "v", "ts"), 1, 2)
        on = " AND ".join(f"{a}.{key} = {b}.{key}" for key in keys)
        residual: Piece | str = ""
        if self.dice.chance(0.35) and kind != "FULL JOIN":
            self.dice.mark(f"join: {kind} with residual")
            residual = made("residual", f" AND {a}.v {self.dice.one('<', '<=', '<>')} {b}.v", least="")
        return made(
            "relation",
            f"(SELECT {a}.k AS k, {b}.s AS s, {a}.v AS v, {b}.x AS x, {self.dice.one(a, b)}.ts AS ts FROM {{l}} AS {a} {kind} {{r}} AS {b}"
            f" ON {on}{{residual}}{{where}})",
            l=self.relation(depth - 1),
            r=self.relation(depth - 1),
            residual=residual,
            where=self.where(a),
        )

    def _views(self, depth: int) -> Piece:
        """Names of WITH, one over the other, within a relation."""
        a, b = self.dice.alias(), self.dice.alias()
        names = f"WITH {a} AS (SELECT {_LAYOUT} FROM {{r}} AS {a}i), {b} AS (SELECT {_LAYOUT} FROM {a}{{w}})"
        last = self.dice.one(
            f"SELECT * FROM {b}",
            f"SELECT {b}.* FROM {b} JOIN {a} ON {a}.k = {b}.v",
            f"SELECT * FROM {a} UNION SELECT * FROM {b}",
        )
        return made("relation", f"({names} {last})", r=self.relation(depth - 1), w=self.where(a))

    def _interval_join(self) -> Piece:
        """Rows of two streams whose times are near each other; over streams without changes state ends
        with the interval.
        """
        a, b = self.dice.alias(), self.dice.alias()
        kind = self.dice.feature(
            "interval join",
            {kind: lambda kind=kind: kind for kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")},
        )
        early, late = self.dice.one("0", "2", "5"), self.dice.one("0", "3")
        residual = (
            made("residual", f" AND {a}.v <> {b}.v", least="")
            if self.dice.chance(0.3) and kind != "FULL JOIN"
            else ""
        )
        return made(
            "relation",
            f"(SELECT {a}.k AS k, {b}.s AS s, {a}.v AS v, {b}.x AS x, {self.dice.one(a, b)}.ts AS ts FROM {{l}} AS {a} {kind} {{r}} AS {b}"
            f" ON {a}.k = {b}.k AND {a}.ts BETWEEN {b}.ts - INTERVAL '{early}' SECOND AND {b}.ts + INTERVAL '{late}' SECOND{{residual}}{{where}})",
            l=self._timed_filter() if self.dice.chance(0.3) else made("timed", self.dice.one(*TIMED)),
            r=made("timed", self.dice.one(*TIMED)),
            residual=residual,
            where=self.where(a),
        )

    def _semi(self, depth: int) -> Piece:
        """A join that only keeps or drops rows, written as IN or EXISTS so that all engines read it; cross
        joins with one row, too.
        """
        a, b = self.dice.alias(), self.dice.alias()
        if self.dice.chance(0.3):
            self.dice.mark("join: cross")
            one = f"(SELECT count(*) AS n, max(x) AS x FROM {{r}} AS {b}i)"
            template = f"(SELECT {a}.k AS k, {a}.s AS s, {b}.n AS v, {b}.x AS x, {a}.ts AS ts FROM {{l}} AS {a} CROSS JOIN {one} AS {b})"
            return made("relation", template, l=self.relation(depth - 1), r=self.relation(depth - 1))
        negated = self.dice.one("", "NOT ")
        self.dice.mark(f"join: {'anti' if negated else 'semi'}")
        residual = f" AND {b}.v > {a}.v" if self.dice.chance(0.4) else ""
        template = f"(SELECT {a}.* FROM {{l}} AS {a} WHERE {negated}EXISTS (SELECT 1 FROM {{r}} AS {b} WHERE {b}.k = {a}.k{residual}))"
        return made("relation", template, l=self._plain(depth), r=self.relation(depth - 1))

    def _group(self, depth: int) -> Piece:
        name = self.dice.alias()
        key = self.dice.one("k", "s", "k, s", "ts", "v")
        columns = {"k": "max(k)", "s": "min(s)", "v": "{v}", "x": "{x}", "ts": "max(ts)"} | {
            column: column for column in key.split(", ")
        }
        items = ", ".join(
            f"{text} AS {column}" if text != column else column for column, text in columns.items()
        )
        return made(
            "relation",
            f"(SELECT {items} FROM {{r}} AS {name}{{where}} GROUP BY {key}{{having}})",
            r=self.relation(depth - 1),
            v=self.aggregate("v", name),
            x=self.aggregate("x", name),
            where=self.where(name),
            having=self.having(name),
        )

    def _values(self) -> Piece:
        rows = [
            f"(CAST({self.dice.one('1', '2', 'NULL')} AS INT), '{self.dice.one('a', 'b')}',"
            f" CAST({self.dice.one('0', '1', '2')} AS BIGINT), CAST({self.dice.one('0.50', 'NULL')} AS DECIMAL(8, 2)),"
            " TIMESTAMP '2024-01-01 00:00:30')"
            for _ in range(self.dice.one(1, 2, 3))
        ]
        return made(
            "relation", f"(SELECT * FROM (VALUES {', '.join(rows)}) AS {self.dice.alias()} ({_LAYOUT}))"
        )

    def _sets(self, depth: int = 1) -> Piece:
        words = [
            self.dice.feature("set", {w: lambda w=w: w for w in _SET_WORDS})
            for _ in range(self.dice.one(1, 1, 2))
        ]
        parts = []
        for _ in range(len(words) + 1):
            name = self.dice.alias()
            parts.append(
                made(
                    "arm",
                    f"SELECT {_LAYOUT} FROM {{r}} AS {name}{{where}}",
                    r=self.relation(depth),
                    where=self.where(name),
                )
            )
        holes: dict[str, str | Piece] = {"p0": parts[0]}
        template = "{p0}"
        for index, (word, part) in enumerate(zip(words, parts[1:], strict=True), 1):
            holes[f"p{index}"] = part
            template = f"({template}) {word} {{p{index}}}" if index > 1 else f"{template} {word} {{p{index}}}"
        return made("sets", template, **holes)

    # queries

    def _listed(self) -> Piece:
        name = self.dice.alias()
        items = [
            made("item", f"{{e}} AS c{i}", e=self.scalars.value(self.dice.one(*COLUMNS), name))
            for i in range(self.dice.one(2, 3, 4))
        ]
        condition: Piece | str = ""
        if self.dice.chance(0.5):
            condition = made("where", " WHERE {c}", least="", c=self.subqueries.condition(name))
        return made(
            "query",
            f"SELECT {{i}} FROM {{r}} AS {name}{{w}}",
            i=joined("items", ", ", items),
            r=self.relation(),
            w=condition,
        )

    def _calls(self) -> Piece:
        return joined("items", ", ", calls(self.dice))

    def _grouped(self) -> Piece:
        name = self.dice.alias()
        key = self.dice.one("", "k", "s", "k, s", "ts", "v, k", "x")
        keys, group = (f"{key}, ", f" GROUP BY {key}") if key else ("", "")
        return made(
            "query",
            f"SELECT {keys}{{i}} FROM {{r}} AS {name}{{w}}{group}{{h}}",
            i=self._calls(),
            r=self.relation(),
            w=self.where(name),
            h=self.having(name) if key else "",
        )

    def _grouping_sets(self) -> Piece:
        ways = [
            "ROLLUP (k, s)",
            "CUBE (k, s)",
            "GROUPING SETS ((k), (s))",
            "GROUPING SETS ((k, s), ())",
            "k, ROLLUP (s)",
            "GROUPING SETS (k, CUBE (s))",
        ]
        grouping = self.dice.feature("grouping", {way: lambda way=way: way for way in ways})
        marks = self.dice.one("", ", grouping(k) AS g", ", grouping(k, s) AS g")
        return made(
            "query",
            f"SELECT k, s, {{i}}{marks} FROM {{r}} AS {{a}} GROUP BY {grouping}{{h}}",
            i=self._calls(),
            r=self.relation(),
            a=self.dice.alias(),
            h=self.having(""),
        )

    def _with(self) -> Piece:
        """One relation used twice through a name."""
        a, b = self.dice.alias(), self.dice.alias()
        kind = self.dice.one("JOIN", "LEFT JOIN")
        return made(
            "query",
            f"WITH q AS (SELECT {_LAYOUT} FROM {{r}} AS {{n}})"
            f" SELECT {a}.k, {a}.v, {b}.s, {{e}} AS e FROM q AS {a} {kind} q AS {b} ON {a}.k = {b}.v{{w}}",
            r=self.relation(),
            n=self.dice.alias(),
            e=self.scalars.value("v", b),
            w=self.where(a),
        )

    def _subquery_items(self) -> Piece:
        name = self.dice.alias()
        return made(
            "query",
            f"SELECT {name}.k, {name}.s, {{e}} AS e FROM {{r}} AS {name}{{w}}",
            e=self.subqueries.value(name),
            r=self.relation(1),
            w=self.where(name),
        )

    def _correlated_items(self) -> Piece:
        """A subquery that reads the outer row below groups, unions or limits, as a value and as a condition."""
        name = self.dice.alias()
        condition = self.subqueries.correlated.condition(name)
        return made(
            "query",
            f"SELECT {name}.k, {name}.v, {{e}} AS e FROM {{r}} AS {name}{{w}}",
            e=self.subqueries.correlated.value(name),
            r=self.relation(0),
            w=made("where", " WHERE {c}", least="", c=condition) if self.dice.chance(0.6) else "",
        )

    def _subqueries_beneath(self) -> Piece:
        """Subqueries in ON, in aggregates and in keys."""
        a, b = self.dice.alias(), self.dice.alias()
        if self.dice.chance(0.5):
            return made(
                "query",
                f"SELECT {a}.k, {a}.v, {b}.s FROM {{r}} AS {a} JOIN {{q}} AS {b} ON {a}.k = {b}.k AND {{c}}",
                r=self.relation(1),
                q=self.relation(1),
                c=self.subqueries.condition(self.dice.one(a, b)),
            )
        return made(
            "query",
            f"SELECT {{g}} AS g, sum({a}.v + {{e}}) AS t, count(*) AS n FROM {{r}} AS {a} GROUP BY {{g}}",
            g=self.subqueries.value(a) if self.dice.chance(0.3) else made("key", f"{a}.k"),
            e=self.subqueries.scalar(a),
            r=self.relation(1),
        )

    def _first_rows(self) -> Piece:
        name = self.dice.alias()
        limit = f"LIMIT {self.dice.one('1', '3', '7')}{self.dice.one('', ' OFFSET 2')}"
        return made(
            "query",
            f"SELECT {_LAYOUT} FROM {{r}} AS {name} ORDER BY {self.over.total_order()} {limit}",
            r=self.relation(),
        )

    def _some_rows(self) -> Piece:
        """Any rows, so many of them: another engine is asked for all of them."""
        name = self.dice.alias()
        head = f"SELECT {_LAYOUT} FROM {{r}} AS {name}{{w}}"
        limit = self.dice.feature(
            "limit",
            {
                text: lambda text=text: text
                for text in ("LIMIT 3", "LIMIT 1 OFFSET 2", "OFFSET 4", "LIMIT 7 OFFSET 1")
            },
        )
        return made("some rows", f"{head} {limit}", theirs=head, r=self.relation(), w=self.where(name))

    def _limited(self, depth: int) -> Piece:
        """As many rows as a limit leaves, or all of them because it is higher than joins of joins have rows."""
        name = self.dice.alias()
        some = f"(SELECT * FROM {{r}} AS {name} LIMIT {self.dice.one('1', '4', '9')}{self.dice.one('', ' OFFSET 2')})"
        counted = "CAST(1 AS INT) AS k, 'a' AS s, count(*) AS v, CAST(1 AS DECIMAL(8, 2)) AS x, CAST(NULL AS TIMESTAMP) AS ts"
        return made(
            "relation",
            self.dice.one(
                f"(SELECT {counted} FROM {some} AS {name}n)",
                f"(SELECT {_LAYOUT} FROM {{r}} AS {name} LIMIT 1000000000)",
            ),
            r=self.relation(depth - 1),
        )


_SET_WORDS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")


@dataclass(frozen=True)
class Generated:
    """A query, the features it has, and those that were offered to it."""

    seed: int
    tree: Piece
    features: frozenset[str]
    offered: frozenset[str]


def generated(first: int, last: int, windows: bool = True) -> Iterator[Generated]:
    """The queries of a range of seeds. Of several candidates one is taken by what its block has had.

    Below ``RARE_FROM``: the one with most pairs of features not seen. From there on: the one with the features
    that were met least, as some of 455 are met twice in 2,000 queries by the other rule.
    """
    block = _block(first)
    seen: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for seed in range(first - first % block, last):
        if seed % _block(seed) == 0:
            seen, pairs = Counter(), Counter()
        rare = seed >= RARE_FROM
        best: tuple[float, Piece, Dice] | None = None
        for candidate in range(30 if rare else 3):
            maker = Queries(seed * (30 if rare else 3) + candidate, seen, windows)
            tree = maker.query()
            features = sorted(maker.dice.features)
            fresh = (
                sum(1 / (1 + seen[feature] ** 2) for feature in features)
                if rare
                else sum(pair not in pairs for pair in combinations(features, 2))
            ) / (1 + len(tree.text()) / 400)
            if best is None or fresh > best[0]:
                best = (fresh, tree, maker.dice)
        assert best is not None
        _, tree, dice = best
        seen.update(dice.features)
        pairs.update(combinations(sorted(dice.features), 2))
        if seed >= first:
            yield Generated(seed, tree, frozenset(dice.features), frozenset(dice.offered))


def _block(seed: int) -> int:
    return RARE_BLOCK if seed >= RARE_FROM else BLOCK
