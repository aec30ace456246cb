"""Nexmark's events as files: written once by the connector itself, people, auctions and bids apart, in two
files each, in Parquet and in CSV.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.catalog.connectors.generated import NEXMARK_TABLES
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.operator import Services
from penstock.engine.api.source import ScanRequest
from penstock.engine.connectors.generated.nexmark_source import NexmarkSource

KINDS = ("person", "auction", "bid")
FORMATS = ("parquet", "csv")
SPLITS = 2
ROWS_PER_GROUP = 250_000
BATCH = 1 << 16
_DELAY = "INTERVAL '2' SECOND"


def columns_ddl(kind: str) -> str:
    """Return the declarations of a table's columns."""
    return ", ".join(f"{name} {type_}" for name, type_ in NEXMARK_TABLES[kind].items())


def files_ddl(kind: str, folder: Path, form: str) -> str:
    """Return the declaration of a table over its files."""
    options = f"'connector' = 'filesystem', 'path' = '{folder / form / kind}', 'format' = '{form}', 'source.replay' = 'true'"
    return f"CREATE TEMPORARY TABLE {kind} ({columns_ddl(kind)}, WATERMARK FOR dateTime AS dateTime - {_DELAY}) WITH ({options})"


def written(folder: Path, events: int, kinds: Sequence[str] = KINDS, forms: Sequence[str] = FORMATS) -> Path:
    """Write the events of these kinds in these formats unless they are there, and return their folder."""
    target = folder / f"nexmark-{events}"
    for kind in kinds if not (target / "_done").exists() else ():
        missing = [form for form in forms if not (target / f"_done-{kind}-{form}").exists()]
        if missing:
            _write(target, kind, events, missing)
        for form in missing:
            (target / f"_done-{kind}-{form}").touch()
    return target


def _write(target: Path, kind: str, events: int, forms: Sequence[str]) -> None:
    import duckdb

    schema = Schema(tuple(Field(name, type_) for name, type_ in NEXMARK_TABLES[kind].items()))
    options = {
        "connector": "nexmark",
        "table": kind,
        "events.num": str(events),
        "splits": str(SPLITS),
        "out-of-order": "2 s",
    }
    source = NexmarkSource(
        ScanRequest(
            CatalogTable(kind, schema, schema, options),
            tuple(range(len(schema))),
            None,
            BATCH,
            SystemClock(),
            Services(),
        )
    )
    for form in forms:
        (target / form / kind).mkdir(parents=True, exist_ok=True)
    for split, name in enumerate(source.splits()):
        reader = source.open(name, None)
        rows = pa.Table.from_batches(list(iter(lambda reader=reader: reader.poll(BATCH), None)))
        if "parquet" in forms:
            pq.write_table(
                rows,
                target / "parquet" / kind / f"part-{split}.parquet",
                row_group_size=ROWS_PER_GROUP,
                compression="snappy",
            )
        if "csv" not in forms:
            continue
        with duckdb.connect() as connection:
            connection.register("rows", rows)
            connection.execute(
                f"COPY rows TO '{target / 'csv' / kind / f'part-{split}.csv'}' (HEADER, TIMESTAMPFORMAT '%Y-%m-%d %H:%M:%S.%g')"
            )
