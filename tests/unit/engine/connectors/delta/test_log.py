"""The log's lines: files with their paths and partition values, and what no reader may take for rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.delta.delta_table import TableStore
from penstock.engine.connectors.delta.log import DeltaLog, parse_version
from penstock.engine.connectors.lakehouse.data_files import DataFile
from tests.unit.engine.connectors.delta.delta_files import declared


def add(path: str, **more: Any) -> str:
    return json.dumps({"add": {"path": path, "partitionValues": {}, "dataChange": True, **more}})


def test_files_of_a_version() -> None:
    lines = [
        json.dumps({"commitInfo": {"operation": "MERGE", "timestamp": 5}}),
        add("b.parquet"),
        add("p=%2525/a.parquet", partitionValues={"p": "%", "q": "", "r": None}),
        add("compacted.parquet", dataChange=False),
        json.dumps({"remove": {"path": "old.parquet", "dataChange": True}}),
        json.dumps({"remove": {"path": "merged.parquet", "dataChange": False}}),
        json.dumps({"cdc": {"path": "_change_data/c.parquet", "partitionValues": {}, "dataChange": False}}),
        json.dumps({"txn": {"appId": "a", "version": 1}}),
        "",
    ]
    version = parse_version(7, lines, "t")
    assert (version.version, version.operation, version.time_ms) == (7, "MERGE", 5)
    # in the order of their paths, which are decoded once; an empty text is NULL
    assert version.added == (
        DataFile("b.parquet"),
        DataFile("p=%25/a.parquet", (("p", "%"), ("q", None), ("r", None))),
    )
    assert version.removed == (DataFile("old.parquet"),)
    assert version.changes == (DataFile("_change_data/c.parquet"),)


def test_columns_that_a_version_sets() -> None:
    physical = {"delta.columnMapping.physicalName": "c-2"}
    schema = json.dumps({"fields": [{"name": "k"}, {"name": "v", "metadata": physical}]})
    mapped = {"delta.columnMapping.mode": "name"}
    plain = parse_version(1, [json.dumps({"metaData": {"schemaString": schema}})], "t")
    assert plain.columns == ("k", "v") and plain.mapping is not None and plain.mapping.mode == "none"
    renamed = json.dumps({"metaData": {"schemaString": schema, "configuration": mapped}})
    mapping = parse_version(1, [renamed], "t").mapping
    assert mapping is not None and (mapping.mode, mapping.physical_name("V")) == ("name", "c-2")


@pytest.mark.parametrize(
    "line",
    [
        add("a.parquet", deletionVector={"storageType": "p", "pathOrInlineDv": "s3://a/b"}),
        add("s3://elsewhere/a.parquet"),
        add("/elsewhere/a.parquet"),
        json.dumps({"remove": {"path": "p=1/a.parquet"}}),
    ],
)
def test_files_that_cannot_be_read_are_refused(line: str) -> None:
    with pytest.raises(PenstockError, match="DAT-5305"):
        parse_version(1, [line], "t")


def test_a_version_that_is_not_there_yet(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text(add("a.parquet"))
    table = declared(tmp_path)
    reader = DeltaLog(table, TableStore(table))
    assert reader.version(0) is not None
    assert reader.version(1) is None
    with pytest.raises(PenstockError, match="DAT-5311"):
        reader.version(2)
