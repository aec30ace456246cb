"""Bad inputs of lakehouse tables that end a job in mid-run, and what it does when they are cured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.streaming.bad_inputs.others_tables import iceberg_options
from tests.streaming.bad_inputs.resuming import (
    FILES,
    FIRST,
    INSERT,
    LATER,
    OUT,
    Act,
    Resumed,
    Row,
    Stage,
    add_json,
    table_of,
)

_DELTA_SOURCE = """CREATE TABLE n (k BIGINT, v STRING) WITH ('connector' = 'delta',
  'table-path' = '{here}/delta', 'scan.mode' = 'full', 'monitor-interval' = '10 ms');"""
_DELTA = "'connector' = 'delta', 'table-path' = '{here}/delta'"
_ICEBERG = """'connector' = 'iceberg', 'table-name' = 'db.t', 'catalog-type' = 'sql',
  'uri' = 'sqlite:///{here}/catalog.db', 'warehouse' = 'file://{here}/warehouse'"""
_ICEBERG_SOURCE = f"""CREATE TABLE n (k BIGINT, v STRING) WITH ({_ICEBERG}, 'scan.mode' = 'full',
  'monitor-interval' = '10 ms');"""
_KEY = "k BIGINT, v STRING, PRIMARY KEY (k) NOT ENFORCED"


def _sink(options: str, columns: str = "k BIGINT, v STRING") -> str:
    return FILES + f"CREATE TABLE o ({columns}) WITH ({options});" + INSERT


def _delta(stage: Stage) -> Any:
    import deltalake

    return deltalake.DeltaTable(str(stage.here / "delta"))


def _append_delta(*keys: int) -> Act:
    def act(stage: Stage) -> None:
        import deltalake

        deltalake.write_deltalake(str(stage.here / "delta"), table_of(*keys), mode="append")

    return act


def _delta_rows(stage: Stage) -> list[Row]:
    if not (stage.here / "delta" / "_delta_log").exists():
        return []
    import pyarrow as pa

    return [(row["k"], row["v"]) for row in pa.table(_delta(stage).scan()).select(["k", "v"]).to_pylist()]


def _hide(stage: Stage, files: set[Path]) -> None:
    for path in files:
        path.rename(path.with_suffix(".hidden"))


def _unhide(stage: Stage) -> None:
    for path in list(stage.here.rglob("*.hidden")):
        path.rename(path.with_suffix(".parquet"))


def _delta_file_goes(stage: Stage) -> None:
    """Write a version whose file is gone before the reader sees the version."""
    before = set((stage.here / "delta").glob("*.parquet"))
    log = stage.here / "delta" / "_delta_log"
    _append_delta(*LATER)(stage)
    _hide(stage, set((stage.here / "delta").glob("*.parquet")) - before)
    assert log.exists()


def _set_append_only(value: str) -> Act:
    def act(stage: Stage) -> None:
        _delta(stage).alter.set_table_properties({"delta.appendOnly": value})
        if value == "true":
            add_json(stage, "b", *LATER)

    return act


def _drop_delta_log(stage: Stage) -> None:
    (stage.here / "delta" / "_delta_log").rename(stage.here / "log")
    add_json(stage, "b", *LATER)


def _delta_rows_anywhere(stage: Stage) -> list[Row]:
    moved = stage.here / "log"
    if not moved.exists():
        return _delta_rows(stage)
    moved.rename(stage.here / "delta" / "_delta_log")
    rows = _delta_rows(stage)
    (stage.here / "delta" / "_delta_log").rename(moved)
    return rows


def _catalog(stage: Stage) -> Any:
    from penstock.engine.connectors.iceberg.iceberg_table import opened_catalog

    return opened_catalog(iceberg_options(stage.here))


def _append_iceberg(*keys: int) -> Act:
    def act(stage: Stage) -> None:
        catalog, rows = _catalog(stage), table_of(*keys)
        catalog.create_namespace_if_not_exists("db")
        catalog.create_table_if_not_exists("db.t", rows.schema).append(rows)
        catalog.close()

    return act


def _iceberg_rows(stage: Stage) -> list[Row]:
    catalog = _catalog(stage)
    try:
        name = next((name for name in ("db.t", "db.away") if catalog.table_exists(name)), None)
        if name is None:
            return []
        rows = catalog.load_table(name).scan().to_arrow()
        key = "k" if "k" in rows.schema.names else "renamed"
        return [(row[key], row["v"]) for row in rows.to_pylist()]
    finally:
        catalog.close()


def _rename_iceberg(old: str, new: str) -> Act:
    def act(stage: Stage) -> None:
        catalog = _catalog(stage)
        catalog.rename_table(old, new)
        catalog.close()

    return act


def _rename_column(old: str, new: str) -> Act:
    def act(stage: Stage) -> None:
        catalog = _catalog(stage)
        with catalog.load_table("db.t").update_schema() as update:
            update.rename_column(old, new)
        catalog.close()

    return act


def _then_more(act: Act) -> Act:
    def both(stage: Stage) -> None:
        act(stage)
        add_json(stage, "b", *LATER)

    return both


def _first(stage: Stage) -> None:
    add_json(stage, "a", *FIRST)


def _first_and_catalog(stage: Stage) -> None:
    # two that create a SQL catalog at once would get in each other's way
    _catalog(stage).close()
    _first(stage)


DELTA_CASES = (
    Resumed(
        "Delta tables",
        "The directory of the log is gone under a sink",
        "DAT-5301",
        "it is put back",
        _sink(_DELTA),
        _first,
        _drop_delta_log,
        lambda stage: (stage.here / "log").rename(stage.here / "delta" / "_delta_log") and None,
        _delta_rows_anywhere,
    ),
)

ICEBERG_CASES = (
    Resumed(
        "Iceberg tables",
        "The table is renamed under a sink",
        "DAT-5301",
        "it is named back",
        _sink(_ICEBERG),
        _first_and_catalog,
        _then_more(_rename_iceberg("db.t", "db.away")),
        _rename_iceberg("db.away", "db.t"),
        _iceberg_rows,
    ),
    Resumed(
        "Iceberg tables",
        "A column that a sink writes is renamed",
        "DAT-5306",
        "it is named back",
        _sink(_ICEBERG),
        _first_and_catalog,
        _then_more(_rename_column("k", "renamed")),
        _rename_column("renamed", "k"),
        _iceberg_rows,
    ),
    Resumed(
        "Iceberg tables",
        "A column that a stream reads is renamed",
        "DAT-5306",
        "it is named back",
        _ICEBERG_SOURCE + OUT + INSERT,
        _append_iceberg(*FIRST),
        lambda stage: (_rename_column("k", "renamed")(stage), _append_renamed(stage))[0],
        _rename_column("renamed", "k"),
    ),
)


def _append_renamed(stage: Stage) -> None:
    catalog = _catalog(stage)
    catalog.load_table("db.t").append(table_of(*LATER).rename_columns(["renamed", "v"]))
    catalog.close()
