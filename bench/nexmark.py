"""Nexmark: rows read per second of processor time, from Parquet and from CSV, beside DuckDB's batch answer
on one thread over the same files.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from bench.nexmark_events import FORMATS, KINDS, files_ddl, written
from penstock.catalog.connectors.generated import NEXMARK_TABLES

FOLDER = Path(__file__).resolve().parent.parent / "queries" / "nexmark"
AIM = 0.3
_READS_ALL = {
    "q4": ("auction", "bid"),
    "q6": ("auction", "bid"),
    "q9": ("auction", "bid"),
    "q20": ("auction", "bid"),
}
_READS = {"q3": ("person", "auction"), "q8": ("person", "auction")} | _READS_ALL
_DUCKDB_TYPES = {"TIMESTAMP(6)": "TIMESTAMP", "STRING": "VARCHAR"}


@dataclass(frozen=True)
class Timed:
    """Seconds of processor time (all threads) and by the clock."""

    cpu_s: float
    wall_s: float


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


def ours(query: str, folder: Path, form: str, slots: int) -> Timed:
    """Return what a query takes from submit to the end of the job, result into a blackhole."""
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
        cpu, wall = time.process_time(), time.perf_counter()
        job = connection.execute(
            f"CREATE TEMPORARY TABLE nexmark_sink WITH ('connector' = 'blackhole') AS {select}"
        ).job
        job.wait()
        taken = Timed(time.process_time() - cpu, time.perf_counter() - wall)
        if job.error is not None:
            raise job.error
    return taken


def theirs(query: str, folder: Path, form: str) -> Timed:
    """Return what DuckDB takes on one thread to hand out all batches of the answer."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
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
        connection.execute(f"CREATE VIEW {kind} AS FROM {source}")
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in connection.sql(duckdb_text(query)).to_arrow_reader(100_000):
        pass
    return Timed(time.process_time() - cpu, time.perf_counter() - wall)


def _median(runs: list[Timed]) -> Timed:
    return Timed(statistics.median(run.cpu_s for run in runs), statistics.median(run.wall_s for run in runs))


def report(folder: Path, events: int, wanted: list[str], runs: int) -> None:
    """Print a line per query: ours from both formats, at two slots from Parquet by the clock, DuckDB's,
    ratios; then their mean.
    """
    files = written(folder, events)
    print(
        f"Nexmark, {events:,} events; M rows/s of processor time, rows of the tables a query reads; median of {runs}"
    )
    print(
        f"{'':5}{'Parquet':>9}{'DuckDB':>9}{'ratio':>8}{'CSV':>9}{'DuckDB':>9}{'ratio':>8}   2 slots by the clock, Parquet"
    )
    ratios: dict[str, dict[str, float]] = {form: {} for form in FORMATS}
    for query in wanted or queries():
        rows = rows_read(query, events) / 1e6
        line, alone = f"{query:5}", {}
        for form in FORMATS:
            ours(query, files, form, 1)  # warm: page cache and kernels
            own, peer = [], []
            for _ in range(runs):
                own.append(ours(query, files, form, 1))
                peer.append(theirs(query, files, form))
            mine, other = rows / _median(own).cpu_s, rows / _median(peer).cpu_s
            ratios[form][query], alone[form] = mine / other, _median(own).wall_s
            line += f"{mine:9.2f}{other:9.2f}{mine / other:7.2f}x"
        one, two = alone["parquet"], _median([ours(query, files, "parquet", 2) for _ in range(runs)]).wall_s
        print(f"{line}   {rows / two:6.2f}  ({one / two:.2f}x)", flush=True)
    for form in FORMATS:
        mean = math.exp(statistics.mean(math.log(ratio) for ratio in ratios[form].values()))
        short = ", ".join(f"{query} {ratio:.2f}x" for query, ratio in ratios[form].items() if ratio < AIM)
        print(f"{form}: geometric mean {mean:.2f}x of DuckDB; below {AIM}x: {short or 'none'}")
