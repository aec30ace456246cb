"""Nexmark: rows read per second of processor time, from Parquet and from CSV, beside DuckDB's batch answer
on one thread over the same files. Both sides are treated alike: see ``bench.nexmark_sides``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.nexmark_events import KINDS, files_ddl, written
from bench.nexmark_sides import SideProcess, Timed, compile_modules, interleaved, into_blackhole
from penstock.catalog.connectors.generated import NEXMARK_TABLES

FOLDER = Path(__file__).resolve().parent.parent / "queries" / "nexmark"
_READS_ALL = {
    "q4": ("auction", "bid"),
    "q6": ("auction", "bid"),
    "q9": ("auction", "bid"),
    "q20": ("auction", "bid"),
}
_READS = {"q3": ("person", "auction"), "q8": ("person", "auction")} | _READS_ALL
_DUCKDB_TYPES = {"TIMESTAMP(6)": "TIMESTAMP", "STRING": "VARCHAR"}


def queries() -> list[str]:
    """Return the names of all queries, by number."""
    return sorted((path.stem for path in FOLDER.glob("q*.sql")), key=lambda name: int(name[1:]))


def statements(query: str) -> tuple[list[str], str]:
    """Return what a query's file declares, and the SELECT it runs."""
    from penstock.planner.statements.nodes import Insert, Query
    from penstock.planner.statements.script import parse_script

    before = []
    for statement in parse_script((FOLDER / f"{query}.sql").read_text(encoding="utf-8")):
        if isinstance(statement.node, Insert | Query):
            text = statement.text
            return before, text[text.index("SELECT") :].rstrip().rstrip(";")
        before.append(statement.text)
    raise AssertionError(f"{query}.sql has no query")


def duckdb_text(query: str) -> str:
    """Return a query in DuckDB's words: its own text where those are the same."""
    other = FOLDER / "duckdb" / f"{query}.sql"
    return other.read_text(encoding="utf-8").strip() if other.exists() else statements(query)[1]


def rows_read(query: str, events: int) -> int:
    """Return how many rows the tables hold that a query reads."""
    share = {"person": 1, "auction": 3, "bid": 46}
    return sum(events // 50 * share[kind] for kind in _READS.get(query, ("bid",)))


@contextmanager
def prepared(query: str, folder: Path, form: str, slots: int) -> Iterator[Callable[[], None]]:
    """Declare the tables, and yield what runs the query from submit to the end of the job, result into a
    blackhole.
    """
    import penstock

    with penstock.connect() as connection:
        for setting, value in (
            ("execution.runtime-mode", "streaming"),
            ("bounded.backend", "duckdb"),
            ("parallelism.default", str(slots)),
        ):
            connection.execute(f"SET '{setting}' = '{value}'")
        for kind in KINDS:
            connection.execute(files_ddl(kind, folder, form))
        before, select = statements(query)
        for statement in before:
            connection.execute(statement)
        yield into_blackhole(connection, select)


def ours(query: str, folder: Path, form: str, slots: int) -> None:
    """Declare the tables and run a query once."""
    with prepared(query, folder, form, slots) as run:
        run()


def _duckdb_views(folder: Path, form: str) -> list[str]:
    views = []
    for kind in KINDS:
        types = ", ".join(
            f"'{name}': '{_DUCKDB_TYPES.get(str(kind_), str(kind_))}'"
            for name, kind_ in NEXMARK_TABLES[kind].items()
        )
        source = (
            f"'{folder / form / kind}/*.parquet'"
            if form == "parquet"
            else f"read_csv('{folder / form / kind}/*.csv', columns = {{{types}}})"
        )
        views.append(f"CREATE VIEW {kind} AS FROM {source}")
    return views


def _ours_request(query: str, folder: Path, form: str, slots: int) -> dict[str, Any]:
    return {"side": "ours", "query": query, "folder": str(folder), "form": form, "slots": slots}


def _requests(query: str, folder: Path, form: str) -> dict[str, dict[str, Any]]:
    views = _duckdb_views(folder, form)
    return {
        "ours": _ours_request(query, folder, form, 1),
        "duckdb": {"side": "duckdb", "views": views, "select": duckdb_text(query)},
    }


def _least(runs: Iterable[Timed]) -> float:
    # other work on the machine only adds to processor time
    return min(run.cpu_s for run in runs)


def _mean(ratios: Iterable[float]) -> float:
    return math.exp(statistics.mean(math.log(ratio) for ratio in ratios))


HEADER = """\
| | Parquet, warm | DuckDB | ratio | first run | memory, MB | DuckDB | ratio | CSV, warm | DuckDB | ratio | first run |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


def report(folder: Path, events: int, wanted: list[str], runs: int) -> None:
    """Print the table of docs/NEXMARK.md, a line per query: warm and first runs from Parquet and from CSV,
    memory from Parquet, and the geometric means of the ratios.
    """
    files = written(folder, events)
    compile_modules()
    print(f"Nexmark, {events:,} events; M rows/s of processor time of all threads; least of {runs} warm runs")
    print(HEADER)
    ratios: dict[str, list[float]] = {name: [] for name in ("warm", "first", "memory", "csv", "csv first")}
    for turn, query in enumerate(wanted or queries()):
        rows = rows_read(query, events) / 1e6
        parquet = interleaved(_requests(query, files, "parquet"), runs, turn)
        csv = interleaved(_requests(query, files, "csv"), runs, turn)
        warm, text = (
            {side: rows / _least(t[1:] or t) for side, t in timed.items()} for timed in (parquet, csv)
        )
        first, text_first = (
            {side: rows / t[0].cpu_s for side, t in timed.items()} for timed in (parquet, csv)
        )
        memory = {side: timed[-1].peak_mb for side, timed in parquet.items()}
        pairs = (warm, first, memory, text, text_first)
        for name, pair in zip(ratios, pairs, strict=True):
            ratios[name].append(pair["ours"] / pair["duckdb"])
        print(
            f"| {query} | {warm['ours']:.2f} | {warm['duckdb']:.2f} | {ratios['warm'][-1]:.2f}x "
            f"| {ratios['first'][-1]:.2f}x | {memory['ours']:,.0f} | {memory['duckdb']:,.0f} "
            f"| {ratios['memory'][-1]:.1f}x | {text['ours']:.2f} | {text['duckdb']:.2f} "
            f"| {ratios['csv'][-1]:.2f}x | {ratios['csv first'][-1]:.2f}x |",
            flush=True,
        )
    print(
        f"| mean | | | {_mean(ratios['warm']):.2f}x | {_mean(ratios['first']):.2f}x | | "
        f"| {_mean(ratios['memory']):.1f}x | | | {_mean(ratios['csv']):.2f}x | {_mean(ratios['csv first']):.2f}x |"
    )


def report_second_slot(folder: Path, events: int, wanted: list[str], runs: int) -> None:
    """Print by the clock how many times as quick two slots are as one, from Parquet, and what they cost."""
    files = written(folder, events)
    print(
        f"Nexmark, {events:,} events from Parquet: two slots beside one, by the clock and in processor time"
    )
    for query in wanted or queries():
        sides = [SideProcess(_ours_request(query, files, "parquet", slots)) for slots in (1, 2)]
        timed = [[side.run() for side in sides] for _ in range(runs + 1)][1:]
        for side in sides:
            side.close()
        one, two = (min(pair[i].wall_s for pair in timed) for i in (0, 1))
        cost = _least(pair[1] for pair in timed) / _least(pair[0] for pair in timed)
        print(f"{query:5}{one / two:6.2f}x faster, processor time {cost:5.2f}x", flush=True)
