"""How fast rows go into Delta and Iceberg tables and come out of them, beside the bare libraries; and what one
row an epoch costs after hundreds of them.

Figures are of processor time of all threads: wall times depend on who else uses the machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, DOUBLE, STRING
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.epoch_target import DELETED, EpochWriter
from penstock.engine.api.operator import Services
from penstock.engine.api.source import ScanRequest
from penstock.engine.connectors.registry import source_connector
from penstock.engine.metrics.operator_metrics import OperatorMetrics

SCHEMA = Schema((Field("k", BIGINT, False), Field("name", STRING), Field("x", DOUBLE)))
WRITER = EpochWriter("bench", "s1", 0)


def rows_of(first: int, count: int) -> pa.RecordBatch:
    """Return rows with keys from ``first`` on."""
    keys = np.arange(first, first + count)
    names = pc.binary_join_element_wise("name ", pa.array(keys % 5000).cast(pa.string()), "")
    return pa.RecordBatch.from_arrays([pa.array(keys), names, pa.array(keys * 0.5)], schema=SCHEMA.to_arrow())


def table_of(kind: str, root: Path, *, key: bool = False) -> CatalogTable:
    """Return a declared table of one kind."""
    options = {"connector": "delta", "table-path": str(root / "t")}
    if kind == "iceberg":
        options = {
            "connector": "iceberg",
            "table-name": "db.t",
            "catalog-type": "sql",
            "uri": f"sqlite:///{root}/catalog.db",
            "warehouse": f"file://{root}/warehouse",
        }
    return CatalogTable("t", SCHEMA, SCHEMA, options, primary_key=("k",) if key else ())


def target_of(table: CatalogTable) -> Any:
    """Return the table's target, with its first attempt."""
    if table.connector == "delta":
        from penstock.engine.connectors.delta.target import DeltaTarget

        target: Any = DeltaTarget(table, OperatorMetrics())
    else:
        from penstock.engine.connectors.iceberg.target import IcebergTarget

        target = IcebergTarget(table, OperatorMetrics())
    target.fence([WRITER])
    return target


def cpu_s(act: Callable[[], Any]) -> float:
    """Return the processor time of an act."""
    began = time.process_time()
    act()
    return time.process_time() - began


def bare_append(kind: str, root: Path, batches: list[pa.RecordBatch]) -> Callable[[], Any]:
    """Return an append of the library's own."""
    rows = pa.Table.from_batches(batches)
    if kind == "delta":
        import deltalake

        return lambda: deltalake.write_deltalake(str(root / "bare"), rows, mode="append")
    from penstock.engine.connectors.iceberg.iceberg_table import opened_catalog

    catalog = opened_catalog(table_of(kind, root).options)
    catalog.create_namespace_if_not_exists("bare")
    table = catalog.create_table("bare.t", rows.schema)
    return lambda: table.append(rows)


def read(table: CatalogTable) -> int:
    """Read a table by our source; return its rows."""
    request = ScanRequest(table, tuple(range(len(SCHEMA))), None, 65_536, SystemClock(), Services())
    source = source_connector(request)
    reader = source.open(*source.splits(), None)
    count = 0
    while (batch := reader.poll(65_536)) is not None:
        count += batch.num_rows
    reader.close()
    return count


def bare_read(kind: str, table: CatalogTable) -> int:
    """Read a table by the library; return its rows."""
    if kind == "delta":
        import deltalake

        path = table.options["table-path"]
        return sum(batch.num_rows for batch in deltalake.DeltaTable(path).to_pyarrow_dataset().to_batches())
    from penstock.engine.connectors.iceberg.iceberg_table import opened, opened_catalog

    found = opened(table, opened_catalog(table.options))
    return sum(batch.num_rows for batch in found.scan().to_arrow_batch_reader())


def upserted(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows as a target takes upserts."""
    return pa.RecordBatch.from_arrays(
        [pa.array(np.zeros(rows.num_rows, bool)), *rows.columns], names=[DELETED, *rows.schema.names]
    )


def bulk(kind: str, rows: int, runs: int) -> Iterator[tuple[str, float, float]]:
    """Yield (what, rows a second of ours, of the library's)."""
    written: list[tuple[float, float]] = []
    scanned: list[tuple[float, float]] = []
    batches = [rows_of(first, 65_536) for first in range(0, rows, 65_536)]
    total = 65_536 * len(batches)
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            table = table_of(kind, root)
            target, bare = target_of(table), bare_append(kind, root, batches)
            ours_s = cpu_s(lambda: target.commit(WRITER, 1, iter(batches)))  # noqa: B023
            written.append((total / ours_s, total / cpu_s(bare)))
            began = time.process_time()
            assert read(table) == total
            between = time.process_time()
            assert bare_read(kind, table) == total
            scanned.append((total / (between - began), total / (time.process_time() - between)))
    for what, found in (("append", written), ("read", scanned)):
        yield what, *(statistics.median(pair[side] for pair in found) for side in (0, 1))


def upserts(kind: str, rows: int, runs: int) -> float:
    """Return rows a second of replacing a tenth of a table's rows."""
    rates = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as directory:
            target = target_of(table_of(kind, Path(directory), key=True))
            target.commit(WRITER, 1, [upserted(rows_of(0, rows))])
            part = upserted(rows_of(rows // 2, rows // 10))
            rates.append((rows // 10) / cpu_s(lambda: target.commit(WRITER, 2, [part])))  # noqa: B023
    return statistics.median(rates)


def small_epochs(kind: str, epochs: int) -> tuple[float, float]:
    """Return the milliseconds of processor time of a commit of one row: of the first tenth of epochs, and of
    the last.
    """
    with tempfile.TemporaryDirectory() as directory:
        target = target_of(table_of(kind, Path(directory)))
        spent = [
            1000 * cpu_s(lambda: target.commit(WRITER, epoch, [rows_of(epoch, 1)]))  # noqa: B023
            for epoch in range(1, epochs + 1)
        ]
    tenth = max(1, epochs // 10)
    return statistics.median(spent[:tenth]), statistics.median(spent[-tenth:])


def main() -> None:
    """``python -m bench.connectors.lakehouse``."""
    parser = argparse.ArgumentParser(prog="python -m bench.connectors.lakehouse", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of three columns (2 million)")
    parser.add_argument("--runs", type=int, default=3, help="runs, of which the median counts (3)")
    parser.add_argument("--epochs", type=int, default=300, help="commits of one row (300)")
    arguments = parser.parse_args()
    for kind in ("delta", "iceberg"):
        for what, ours, bare in bulk(kind, arguments.rows, arguments.runs):
            say(f"{kind} {what}: {ours / 1e6:.2f} M rows/s of CPU, the library alone {bare / 1e6:.2f}")
        upserted_rows = min(arguments.rows, 200_000)
        rate = upserts(kind, upserted_rows, arguments.runs)
        say(
            f"{kind} upsert of {upserted_rows // 10:,} rows into {upserted_rows:,}: {rate:,.0f} rows/s of CPU"
        )
        first, last = small_epochs(kind, arguments.epochs)
        say(f"{kind} one row an epoch: {first:.0f} ms of CPU at first, {last:.0f} after {arguments.epochs}")


def say(line: str) -> None:
    """Print a line."""
    print(line, flush=True)


if __name__ == "__main__":
    main()
