"""Files, and tables of Delta and Iceberg, as other programs leave them: damaged, of a newer kind, half gone."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = pa.table({"k": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", "c"]})


def write_files(here: Path) -> None:
    """Write files of all formats with something wrong in each."""
    whole = here / "whole.parquet"
    pq.write_table(pa.table({"k": range(50_000), "v": [str(n) for n in range(50_000)]}), whole)
    data = whole.read_bytes()
    (here / "cut.parquet").write_bytes(data[: len(data) // 2])
    # the footer is whole, a page before it is not
    (here / "flipped.parquet").write_bytes(data[:2_000] + bytes(3_000) + data[5_000:])
    with pa.ipc.new_file(here / "whole.arrow", ROWS.schema) as arrow:
        arrow.write_table(ROWS)
    (here / "cut.arrow").write_bytes((here / "whole.arrow").read_bytes()[:-20])
    (here / "nul.csv").write_bytes(b"k,v\n1,a\n2\x003,b\n")
    (here / "wide.csv").write_bytes("k,v\n1,ä\n".encode("utf-16"))
    (here / "deep.json").write_bytes(b'{"k": ' + b"[" * 20_000 + b"]" * 20_000 + b"}\n")
    (here / "zip.csv").write_bytes(b"PK\x03\x04" + bytes(40))
    (here / "packed.csv").write_bytes(gzip.compress(b"k,v\n1,a\n"))
    (here / "rows.csv").write_bytes(b"k,v\n1,a\n")
    (here / "twice.csv").write_bytes(b"k,k\n1,2\n")
    (here / "days" / "day=tomorrow").mkdir(parents=True)
    (here / "days" / "day=tomorrow" / "a.csv").write_bytes(b"k\n1\n")
    (here / "none.db").write_bytes(b"this is no database, and long enough to be read as one" * 30)
    (here / "none.duckdb").write_bytes(b"this is no database, and long enough to be read as one" * 300)
    with closing(sqlite3.connect(here / "facts.db")) as facts:
        facts.execute("CREATE TABLE facts (k INTEGER PRIMARY KEY, v TEXT NOT NULL)")
        facts.execute("INSERT INTO facts VALUES (1, 'a')")
        facts.execute("CREATE TABLE texts (k TEXT)")
        facts.execute("INSERT INTO texts VALUES ('one')")
        facts.commit()


def write_delta_tables(here: Path) -> None:
    """Write Delta tables: whole, without a file, with a damaged log, of features that are not read."""
    import deltalake

    def made(name: str, versions: int = 1, rows: pa.Table = ROWS) -> Path:
        for _ in range(versions):
            deltalake.write_deltalake(str(here / name), rows, mode="append")
        return here / name

    made("delta", 3)
    # VACUUM of another program
    for file in made("delta-vacuumed").glob("*.parquet"):
        file.unlink()
    log = made("delta-damaged") / "_delta_log" / "00000000000000000000.json"
    log.write_text(log.read_text()[:-40])
    (made("delta-gap", 3) / "_delta_log" / "00000000000000000001.json").unlink()
    for file in made("delta-cut").glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:-30])
    cleaned = made("delta-cleaned", 3)
    deltalake.DeltaTable(str(cleaned)).create_checkpoint()
    for number in range(2):
        (cleaned / "_delta_log" / f"{number:020}.json").unlink()
    made("delta-overwritten")
    deltalake.write_deltalake(str(here / "delta-overwritten"), ROWS, mode="overwrite")
    made("delta-partitioned", 0)
    deltalake.write_deltalake(str(here / "delta-partitioned"), ROWS, partition_by=["v"])
    _with_protocol(made("delta-widened"), ["typeWidening"], {"delta.enableTypeWidening": "true"})
    _with_protocol(made("delta-newer"), ["readsMinds"], {})
    _with_protocol(made("delta-appendonly"), [], {"delta.appendOnly": "true"})


def _with_protocol(table: Path, features: list[str], configuration: dict[str, str]) -> None:
    """Give a table a protocol and settings that the library itself would not write."""
    log = table / "_delta_log" / "00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action and features:
            action["protocol"] = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        if "metaData" in action:
            action["metaData"]["configuration"] |= configuration
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))


def iceberg_options(here: Path) -> dict[str, str]:
    """Return the options of the catalog of Iceberg tables in a directory."""
    return {
        "catalog-type": "sql",
        "uri": f"sqlite:///{here}/catalog.db",
        "warehouse": f"file://{here}/warehouse",
    }


def write_iceberg_tables(here: Path) -> dict[str, str]:
    """Write Iceberg tables; return the ids of snapshots that scripts name."""
    from penstock.engine.connectors.iceberg.iceberg_table import opened_catalog

    catalog = opened_catalog(iceberg_options(here))
    catalog.create_namespace("db")

    def made(name: str, versions: int = 1) -> list[int]:
        table = catalog.create_table(f"db.{name}", ROWS.schema)
        for _ in range(versions):
            table.append(ROWS)
        return [snapshot.snapshot_id for snapshot in table.snapshots()]

    made("t", 2)
    made("gone")
    for file in (here / "warehouse").rglob("gone/data/*.parquet"):
        file.unlink()
    made("unmanifested")
    for file in (here / "warehouse").rglob("unmanifested/metadata/*.avro"):
        file.unlink()
    made("unmetadated")
    for file in (here / "warehouse").rglob("unmetadated/metadata/*.json"):
        file.unlink()
    overwritten = made("overwritten")
    catalog.load_table("db.overwritten").overwrite(ROWS)
    expired = made("expired", 3)
    table = catalog.load_table("db.expired")
    table.maintenance.expire_snapshots().by_id(expired[0]).commit()
    catalog.close()
    return {"overwritten": str(overwritten[0]), "expired": str(expired[0])}
