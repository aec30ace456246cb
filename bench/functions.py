"""All scalar functions: ``python -m bench.functions``. Million values a second of processor time over a million
values, beside DuckDB's own function on one thread. What is slower than its floor is marked.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from bench.function_calls import (
    JSON_CALLS,
    NESTED_CALLS,
    NUMBER_CALLS,
    TEXT_CALLS,
    TIME_CALLS,
    FunctionCall,
)

ROWS = 1_000_000
# of the engine, from files
BATCH = 32_768
FAMILIES = {
    "numbers": (NUMBER_CALLS, 50.0),
    "text": (TEXT_CALLS, 10.0),
    "dates and times": (TIME_CALLS, 10.0),
    "JSON": (JSON_CALLS, 1.0),
    "arrays, maps and rows": (NESTED_CALLS, 5.0),
}
"""A family's calls, and the floor in million values a second."""


def columns(rows: int) -> pa.Table:
    """Return the columns that calls read. Their values are hardly ever equal: a kernel that computes each
    distinct value once gains nothing.
    """
    chance = np.random.default_rng(7)
    i, j = chance.integers(1 << 20, 1 << 40, rows), chance.integers(1, 1_000, rows)
    day = chance.integers(18_000, 20_000, rows)
    moment = pa.array(day * 86_400_000_000 + chance.integers(0, 86_400_000_000, rows), pa.timestamp("us"))
    numbers = i.tolist()
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * 3)
    lists = [pa.ListArray.from_arrays(offsets, pa.array(chance.integers(1, 1_000, rows * 3))) for _ in "xy"]
    words = pa.array([f"word-{n % 100_003}" for n in numbers])
    pairs = pa.array(np.arange(rows + 1, dtype=np.int32) * 2)
    return pa.table(
        {
            "i": i,
            "j": j,
            "n": pa.array(j, pa.int32()),
            "o": pa.array(i, mask=j % 10 == 0),
            "d": chance.random(rows) * 0.98 + 0.01,
            "e": chance.random(rows),
            "b": chance.random(rows) < 0.5,
            "c": chance.random(rows) < 0.5,
            "s": pa.array([f"https://shop.example/de/item/{n}" for n in numbers]),
            "t": words,
            "x": pa.array([f"{n & 0x3F3F3F | 0x404040:06x}" for n in numbers]),
            "q": pa.array([f"{n % 10**12:012d}" for n in numbers]),
            "js": pa.array([f'{{"n": {n}, "a": {{"b": "x{n}"}}, "k": [1, 2]}}' for n in numbers]),
            "ja": pa.array([f"[1, {n}, 3]" for n in numbers]),
            "tt": pa.array([str(text)[:19] for text in moment.cast(pa.string()).to_pylist()]),
            "ts": moment,
            "tz": moment.cast(pa.timestamp("us", "UTC")),
            "dt": pa.array(day.astype(np.int32), pa.date32()),
            "xs": lists[0],
            "ys": lists[1],
            "ws": pa.ListArray.from_arrays(pairs, pa.concat_arrays([words, words])),
            "m": pa.MapArray.from_arrays(
                pairs, pa.array(["a", "b"] * rows), pa.array(chance.integers(1, 1_000, rows * 2))
            ),
            "r": pa.StructArray.from_arrays([pa.array(i), words], names=["x", "y"]),
        }
    )


def _compiled(text: str, schema: pa.Schema) -> Callable[[pa.RecordBatch], pa.Array]:
    from penstock.catalog.catalog import Catalog
    from penstock.catalog.schema import Field
    from penstock.catalog.settings import Settings
    from penstock.catalog.types import from_arrow
    from penstock.engine.api.clock import SystemClock
    from penstock.engine.expressions import EvaluationContext, compile_expression
    from penstock.planner.binder.context import BindContext
    from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
    from penstock.planner.binder.query import bind_query
    from penstock.planner.binder.scope import Scope, ScopeColumn
    from penstock.planner.parser.query_parser import parse_expression

    scope = Scope(
        tuple(
            ScopeColumn(i, Field(field.name, from_arrow(field.type), field.name == "o"))
            for i, field in enumerate(schema)
        )
    )
    bound = ExpressionBinder(scope, BindContext(Catalog(), Settings(), bind_query), "SELECT").bind(
        parse_expression(text)
    )
    return compile_expression(bound, EvaluationContext("UTC", SystemClock()))


def _seconds(once: Callable[[], None], runs: int) -> float:
    """Return the least processor time of some runs, after one that is not counted."""
    once()
    least = float("inf")
    for _ in range(runs):
        start = time.process_time()
        once()
        least = min(least, time.process_time() - start)
    return least


class Functions:
    """Both sides over the same columns."""

    def __init__(self, rows: int, runs: int) -> None:
        import duckdb

        self._rows, self._runs = rows, runs
        table = columns(rows)
        self._schema = table.schema
        self._batches = table.combine_chunks().to_batches(BATCH)
        self._duckdb = duckdb.connect()
        self._duckdb.execute("SET threads = 1; SET TimeZone = 'UTC'")
        self._duckdb.register("given", table)
        self._duckdb.execute("CREATE TABLE calls AS FROM given")

    def ours(self, call: FunctionCall) -> float:
        """Return million values a second."""
        evaluate = _compiled(call.ours, self._schema)

        def once() -> None:
            for batch in self._batches:
                evaluate(batch)

        return self._rows / _seconds(once, self._runs) / 1e6

    def theirs(self, call: FunctionCall) -> float | None:
        """Return DuckDB's million values a second."""
        if call.theirs is None:
            return None

        def once() -> None:
            for _ in self._duckdb.sql(f"SELECT {call.theirs} AS v FROM calls").to_arrow_reader(100_000):
                pass

        return self._rows / _seconds(once, self._runs) / 1e6


def lines(functions: Functions, wanted: list[str]) -> Iterator[str]:
    """Yield a line a function: both rates, their ratio, and a mark where ours is below the floor."""
    for family, (calls, floor) in FAMILIES.items():
        chosen = {name: call for name, call in calls.items() if not wanted or name in wanted}
        if chosen:
            yield f"\n{family + f', floor {floor:g}':24}{'ours':>9}{'DuckDB':>9}{'ratio':>8}"
        for name, call in chosen.items():
            ours, theirs = functions.ours(call), functions.theirs(call)
            beside = f"{'':17}" if theirs is None else f"{theirs:9.1f}{ours / theirs:7.2f}x"
            mark = "  <-- below its floor" if ours < floor else ""
            yield f"{name:24}{ours:9.1f}{beside}{mark}"


def main() -> None:
    """Print all functions, or those asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.functions", description=__doc__)
    parser.add_argument("names", nargs="*", help="canonical names, such as split_index (all)")
    parser.add_argument("--rows", type=int, default=ROWS, help="values of each column (a million)")
    parser.add_argument("--runs", type=int, default=2, help="runs of each, the least is printed (2)")
    arguments = parser.parse_args()
    print(f"million values a second of processor time, {arguments.rows:,} values", end="")
    for line in lines(Functions(arguments.rows, arguments.runs), arguments.names):
        print(line, flush=True)


if __name__ == "__main__":
    main()
