"""Windows of n rows: TUMBLE, HOP and CUMULATE over numbered rows of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.generated.queries.generated.pieces import Piece, made

if TYPE_CHECKING:
    from tests.generated.queries.generated.queries import Queries


class RowWindows:
    """Relations over windows of n rows, in our words and over DuckDB's row numbers."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries
        self.dice = queries.dice

    def relation(self) -> Piece:
        """Groups of windows, or rows with their windows."""
        name, windowed = self.dice.alias(), self._windowed()
        grouped = f"(SELECT k, min(s) AS s, {{v}} AS v, {{x}} AS x, CAST(NULL AS TIMESTAMP) AS ts FROM {{w}} AS {name}"
        ways = {
            "groups": f"{grouped} GROUP BY k, window_index)",
            "all groups": f"{grouped.replace('SELECT k', 'SELECT max(k) AS k')} GROUP BY window_index)",
            "rows": f"(SELECT k, s, CAST(window_index AS BIGINT) AS v, x, ts FROM {{w}} AS {name})",
        }
        text = self.dice.feature(
            "count window rows", {way: lambda text=text: text for way, text in ways.items()}
        )
        aggregates = {column: self.queries.aggregate(column, name) for column in ("v", "x")}
        return made("relation", text, w=windowed, **aggregates)

    def _windowed(self) -> Piece:
        a = self.dice.alias()
        key = self.dice.one("k", "s", "k, v")
        if self.dice.chance(0.6):
            order = "ts"
            rows = made(
                "timed",
                f"(SELECT * FROM {{r}} AS {a}t WHERE ts IS NOT NULL)",
                r=self.queries.distinct_times(),
            )
        else:
            columns = self.dice.some(("k", "s", "v", "x"), 4, 4)
            order, rows = ", ".join((*columns, "ts")), self.queries.relation(1)
        ordered = order.replace(",", " NULLS FIRST,") + " NULLS FIRST"
        numbered = f"row_number() OVER (PARTITION BY {key} ORDER BY {ordered}) - 1"
        slide, times, size = self.dice.one(1, 2, 3), self.dice.one(2, 3), self.dice.one(1, 3, 4)
        ways = {
            "tumble": lambda: (
                f"TUMBLE(TABLE {{r}} PARTITION BY {key} ORDER BY {order}, {size} ROWS)",
                f"(SELECT *, ({numbered}) // {size} AS window_index FROM {{r}} AS {a})",
            ),
            "hop": lambda: (
                f"HOP(TABLE {{r}} PARTITION BY {key} ORDER BY {order}, {slide} ROWS, {slide * times} ROWS)",
                f"(SELECT * EXCLUDE (n), unnest(range(n // {slide}, (n + {slide * times}) // {slide})) AS window_index"
                f" FROM (SELECT *, {numbered} AS n FROM {{r}} AS {a}))",
            ),
            "cumulate": lambda: (
                f"CUMULATE(TABLE {{r}} PARTITION BY {key} ORDER BY {order}, {slide} ROWS, {slide * times} ROWS)",
                f"(SELECT * EXCLUDE (n), unnest(range(n // {slide}, (n // {slide * times} + 1) * {times})) AS window_index"
                f" FROM (SELECT *, {numbered} AS n FROM {{r}} AS {a}))",
            ),
        }
        ours, theirs = self.dice.feature("count window", ways)
        return made("count windowed", ours, theirs=theirs, r=rows)
