"""Windowing functions over relations with event time, in our words and in DuckDB's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.generated.queries.generated.functions import calls as aggregate_calls
from tests.generated.queries.generated.pieces import Piece, joined, made

if TYPE_CHECKING:
    from tests.generated.queries.generated.queries import Queries

_COMMON = (
    "{a}.*, {start} AS window_start, {end} AS window_end, {end} - INTERVAL '1 millisecond' AS window_time"
)


def _theirs(start: str, end: str, source: str) -> str:
    return (
        "(SELECT "
        + _COMMON.replace("{start}", start).replace("{end}", end)
        + f" FROM {source} AND {{a}}.ts IS NOT NULL)"
    )


class Windows:
    """Everything that stands on windows."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.dice = queries.dice

    def windowed(self, kinds: tuple[str, ...] = ("tumble", "hop", "cumulate")) -> Piece:
        """A relation with window_start, window_end, window_time."""
        return self.dice.feature("window", {kind: getattr(self, f"_{kind}") for kind in kinds})

    def _tumble(self) -> Piece:
        size = self.dice.one(10, 20, 30)
        start = f"time_bucket(INTERVAL '{size} seconds', {{a}}.ts)"
        return made(
            "windowed",
            f"TUMBLE(TABLE {{r}}, DESCRIPTOR(ts), INTERVAL '{size}' SECONDS)",
            theirs=_theirs(start, f"{start} + INTERVAL '{size} seconds'", "{r} AS {a} WHERE TRUE"),
            r=self.queries.timed(),
            a=self.dice.alias(),
        )

    def _hop(self) -> Piece:
        slide, times = self.dice.one(5, 10), self.dice.one(2, 3)
        size = slide * times
        start = f"(time_bucket(INTERVAL '{slide} seconds', {{a}}.ts) - to_seconds(n.i * {slide}))"
        return made(
            "windowed",
            f"HOP(TABLE {{r}}, DESCRIPTOR(ts), INTERVAL '{slide}' SECONDS, INTERVAL '{size}' SECONDS)",
            theirs=_theirs(
                start,
                f"{start} + INTERVAL '{size} seconds'",
                f"{{r}} AS {{a}}, range({times}) AS n(i) WHERE TRUE",
            ),
            r=self.queries.timed(),
            a=self.dice.alias(),
        )

    def _cumulate(self) -> Piece:
        step, times = self.dice.one(5, 10), self.dice.one(2, 3)
        size = step * times
        start = f"time_bucket(INTERVAL '{size} seconds', {{a}}.ts)"
        end = f"({start} + to_seconds((n.i + 1) * {step}))"
        return made(
            "windowed",
            f"CUMULATE(TABLE {{r}}, DESCRIPTOR(ts), INTERVAL '{step}' SECONDS, INTERVAL '{size}' SECONDS)",
            theirs=_theirs(start, end, f"{{r}} AS {{a}}, range({times}) AS n(i) WHERE {{a}}.ts < {end}"),
            r=self.queries.timed(),
            a=self.dice.alias(),
        )

    def _session(self) -> Piece:
        gap = self.dice.one(2, 4, 7)
        islands = (
            f"(SELECT *, CASE WHEN ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) < INTERVAL '{gap} seconds' THEN 0 ELSE 1 END AS fresh"
            " FROM {r} AS {a} WHERE ts IS NOT NULL)"
        )
        numbered = f"(SELECT *, sum(fresh) OVER (PARTITION BY k ORDER BY ts) AS island FROM {islands})"
        end = f"max(ts) OVER (PARTITION BY k, island) + INTERVAL '{gap} seconds'"
        return made(
            "sessions",
            f"SESSION(TABLE {{r}} PARTITION BY k, DESCRIPTOR(ts), INTERVAL '{gap}' SECONDS)",
            theirs=f"(SELECT *, min(ts) OVER (PARTITION BY k, island) AS window_start, {end} AS window_end,"
            f" {end} - INTERVAL '1 millisecond' AS window_time FROM {numbered})",
            r=self.queries.timed(),
            a=self.dice.alias(),
        )

    # relations of the common layout

    def grouped(self, time: str | None = None) -> Piece:
        """An aggregate per window and key. ``time``: the window column that becomes the time."""
        time = time or self.dice.one("window_start", "window_end", "window_time")
        session = self.dice.chance(0.2)
        source = self.windowed(("session",)) if session else self.windowed()
        name = self.dice.alias()
        keyed = session or self.dice.chance(0.7)
        shape = "{k} AS k, {s} AS s, {v} AS v, {x} AS x"
        return made(
            "relation" if time != "window_time" else "timed",
            f"(SELECT {shape}, {time} AS ts FROM {{w}} AS {name} GROUP BY window_start, window_end, window_time{', k' if keyed else ''}{{having}})",
            k="k" if keyed else "max(k)",
            s=self.dice.one("max(s)", "min(s)"),
            v=self.queries.aggregate("v", name),
            x=self.queries.aggregate("x", name),
            w=source,
            having=self.queries.having(name),
        )

    def of_updates(self) -> Piece:
        """Windows that never close: over the last row of each key, and over the rows of an outer join."""
        a, b, c = self.dice.alias(), self.dice.alias(), self.dice.alias()
        ways = {
            "last rows": f"(SELECT k, s, v, x, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {self.dice.one('k', 's', 'v')}"
            f" ORDER BY ts DESC) AS n FROM {{r}} AS {b} WHERE ts IS NOT NULL) AS {b}n WHERE n = 1)",
            "outer join": f"(SELECT {b}.k AS k, {c}.s AS s, {b}.v AS v, {c}.x AS x, {b}.ts AS ts FROM {{r}} AS {b} LEFT JOIN {{q}} AS {c}"
            f" ON {b}.k = {c}.k AND {b}.ts BETWEEN {c}.ts - INTERVAL '3' SECOND AND {c}.ts + INTERVAL '2' SECOND)",
        }
        rows = self.dice.feature(
            "updates in windows", {way: lambda text=text: text for way, text in ways.items()}
        )
        kinds = {"tumble": lambda: self._tumble_of(rows, a), "session": lambda: self._session_of(rows, a)}
        ours, windows = self.dice.feature("windows that never close", kinds)
        items = "k, max(s) AS s, {v} AS v, {x} AS x, window_end AS ts"
        text = f"(SELECT {items} FROM {{w}} AS {a} GROUP BY window_start, window_end, k)"
        if self.dice.chance(0.3):
            self.dice.mark("rows in windows that never close")
            text = f"(SELECT k, s, v, x, {self.dice.one('window_start', 'window_end', 'ts')} AS ts FROM {{w}} AS {a})"
        holes = {column: self.queries.aggregate(column, a) for column in ("v", "x")}
        return made(
            "relation",
            text.replace("{w}", ours),
            theirs=text.replace("{w}", windows),
            r=self.queries.distinct_times(),
            q=made("timed", self.dice.one("t", "e")),
            **(holes if "{v}" in text else {}),
        )

    def _tumble_of(self, rows: str, a: str) -> tuple[str, str]:
        size = self.dice.one(10, 20)
        start = f"time_bucket(INTERVAL '{size} seconds', {a}i.ts)"
        theirs = _theirs(start, f"{start} + INTERVAL '{size} seconds'", f"{rows} AS {a}i WHERE TRUE")
        return f"TUMBLE(TABLE {rows}, DESCRIPTOR(ts), INTERVAL '{size}' SECONDS)", theirs.replace(
            "{a}", f"{a}i"
        )

    def _session_of(self, rows: str, a: str) -> tuple[str, str]:
        gap, key = self.dice.one(1, 2, 4, 7), self.dice.one("", "k", "s")
        over = f"PARTITION BY {key} ORDER BY ts" if key else "ORDER BY ts"
        fresh = f"CASE WHEN ts - lag(ts) OVER ({over}) <= INTERVAL '{gap} seconds' THEN 0 ELSE 1 END AS fresh"
        islands = f"(SELECT *, {fresh} FROM {rows} AS {a}i WHERE ts IS NOT NULL)"
        numbered = f"(SELECT *, sum(fresh) OVER ({over}) AS island FROM {islands})"
        of = f"PARTITION BY {key}, island" if key else "PARTITION BY island"
        end = f"max(ts) OVER ({of}) + INTERVAL '{gap} seconds'"
        theirs = f"(SELECT *, min(ts) OVER ({of}) AS window_start, {end} AS window_end FROM {numbered})"
        partition = f" PARTITION BY {key}" if key else ""
        return f"SESSION(TABLE {rows}{partition}, DESCRIPTOR(ts), INTERVAL '{gap}' SECONDS)", theirs

    def sets(self) -> Piece:
        """Grouping sets within windows."""
        grouping = self.dice.one("ROLLUP (k, s)", "CUBE (k, s)", "GROUPING SETS ((k), (s), ())")
        return made(
            "relation",
            f"(SELECT k, s, {{v}} AS v, {{x}} AS x, window_end AS ts FROM {{w}} AS {{a}} GROUP BY window_start, window_end, {grouping})",
            v=self.queries.aggregate("v", ""),
            x=self.queries.aggregate("x", ""),
            w=self.windowed(),
            a=self.dice.alias(),
        )

    def rows(self) -> Piece:
        """The rows of windows as they are, filtered: any operator may stand above windows."""
        name = self.dice.alias()
        return made(
            "relation",
            f"(SELECT {name}.k, {name}.s, {name}.v, {name}.x, {name}.window_end AS ts FROM {{w}} AS {name}{{where}})",
            w=self.windowed(),
            where=self.queries.where(name),
        )

    def top(self) -> Piece:
        """The first rows of each window."""
        name, rank = self.dice.alias(), self.dice.one("ROW_NUMBER", "RANK", "DENSE_RANK")
        order = self.queries.over.total_order() if rank == "ROW_NUMBER" else "v NULLS FIRST"
        by = self.dice.one("", ", k", ", s")
        return made(
            "relation",
            f"(SELECT k, s, v, x, window_end AS ts FROM (SELECT *, {rank}() OVER (PARTITION BY window_start, window_end{by} ORDER BY {order})"
            f" AS n FROM {{w}} AS {name}) AS {name}n WHERE n <= {self.dice.one('1', '2', '3')})",
            w=self.windowed(),
        )

    def _sides(self) -> list[Piece]:
        """Two streams in the same windows."""
        size = self.dice.one(10, 20)
        start = f"time_bucket(INTERVAL '{size} seconds', {{a}}.ts)"
        return [
            made(
                "windowed",
                f"TUMBLE(TABLE {{r}}, DESCRIPTOR(ts), INTERVAL '{size}' SECONDS)",
                theirs=_theirs(start, f"{start} + INTERVAL '{size} seconds'", "{r} AS {a} WHERE TRUE"),
                r=self.queries.timed(),
                a=self.dice.alias(),
            )
            for _ in range(2)
        ]

    def join(self) -> Piece:
        """Rows of equal windows and keys of two streams."""
        kind = self.dice.feature(
            "window join",
            {kind: lambda kind=kind: kind for kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")},
        )
        left, right = self._sides()
        a, b = self.dice.alias(), self.dice.alias()
        residual = f" AND {a}.v <= {b}.v" if self.dice.chance(0.3) and kind != "FULL JOIN" else ""
        return made(
            "relation",
            f"(SELECT coalesce({a}.k, {b}.k) AS k, {b}.s AS s, {a}.v AS v, {b}.x AS x, coalesce({a}.window_end, {b}.window_end) AS ts"
            f" FROM {{l}} AS {a} {kind} {{r}} AS {b} ON {a}.window_start = {b}.window_start AND {a}.window_end = {b}.window_end AND {a}.k = {b}.k"
            f"{residual})",
            l=left,
            r=right,
        )

    def semi(self) -> Piece:
        """Rows with, or without, a row of the same window and key on the other side."""
        negated = self.dice.one("", "NOT ")
        self.dice.mark(f"window join: {'anti' if negated else 'semi'}")
        left, right = self._sides()
        a, b = self.dice.alias(), self.dice.alias()
        equal = f"{b}.window_start = {a}.window_start AND {b}.window_end = {a}.window_end AND {b}.k = {a}.k"
        return made(
            "relation",
            f"(SELECT {a}.k AS k, {a}.s AS s, {a}.v AS v, {a}.x AS x, {a}.window_end AS ts FROM {{l}} AS {a}"
            f" WHERE {negated}EXISTS (SELECT 1 FROM {{r}} AS {b} WHERE {equal}))",
            l=left,
            r=right,
        )

    def in_other_words(self) -> Piece:
        """Groups of windows as Flink had them in GROUP BY, as Spark and as RisingWave have them."""
        a = self.dice.alias()
        items = "k, max(s) AS s, {v} AS v, {x} AS x"
        start, slide = (f"time_bucket(INTERVAL '{seconds} seconds', {a}.ts)" for seconds in (10, 5))
        tumbled = f"(SELECT {items}, {start}{{more}} AS ts FROM {{r}} AS {a} WHERE ts IS NOT NULL GROUP BY {start}, k)"
        from_start, from_end = (tumbled.replace("{more}", more) for more in ("", " + INTERVAL '10 seconds'"))
        hop = f"({slide} - to_seconds(n.i * 5))"
        hopped = f"(SELECT {items}, {hop} AS ts FROM {{r}} AS {a}, range(2) AS n(i) WHERE ts IS NOT NULL GROUP BY {hop}, k)"
        grouped, rows = (
            f"(SELECT {items}, {{t}} AS ts FROM {{r}} AS {a} GROUP BY {{g}}, k)",
            self.queries.timed(),
        )
        words = {
            "tumble of flink": (
                "TUMBLE_END(ts, INTERVAL '10' SECOND)",
                "TUMBLE(ts, INTERVAL '10' SECOND)",
                from_end,
            ),
            "hop of flink": (
                "HOP_START(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
                "HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
                hopped,
            ),
            "window of spark": ("window.start", "window(ts, '10 seconds')", from_start),
            "sliding window of spark": ("window.start", "window(ts, '10 seconds', '5 seconds')", hopped),
        }
        texts = {
            way: (grouped.replace("{t}", time).replace("{g}", group), theirs)
            for way, (time, group, theirs) in words.items()
        }
        ours = f"(SELECT {items}, window_end AS ts FROM TUMBLE({{n}}, ts, INTERVAL '10 SECONDS') AS {a} GROUP BY window_start, window_end, k)"
        texts["tumble of risingwave"] = (ours, from_end.replace("{r}", "{n}"))
        text, theirs = self.dice.feature(
            "window words", {way: lambda pair=pair: pair for way, pair in texts.items()}
        )
        aggregates = {column: self.queries.aggregate(column, a) for column in ("v", "x")}
        return made("relation", text, theirs=theirs, r=rows, n=self.dice.one("t", "e", "c"), **aggregates)

    def emitted(self) -> Piece:
        """Results of windows as they change, or once they are closed: in the end the same."""
        emit = self.dice.feature(
            "emit",
            {
                word: lambda word=word: word
                for word in ("", " EMIT CHANGES", " EMIT ON WINDOW CLOSE", " EMIT FINAL")
            },
        )
        text = "SELECT window_start, window_end, k, {i} FROM {w} AS {a} GROUP BY window_start, window_end, k"
        calls = joined("items", ", ", aggregate_calls(self.dice))
        return made("query", f"{text}{emit}", theirs=text, i=calls, w=self.windowed(), a=self.dice.alias())
