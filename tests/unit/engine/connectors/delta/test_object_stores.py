"""Delta tables in a bucket, over the wire: an epoch once, an earlier run fenced off, odd partitions read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.connectors.delta.source import DeltaSource
from tests.harness.object_stores import KEY, REGION, SECRET, moto_server
from tests.unit.engine.connectors.delta.delta_files import (
    WRITER,
    declared,
    read_from,
    request,
    target,
    with_options,
)


def in_bucket(name: str) -> CatalogTable:
    server = moto_server()
    store = {
        "storage.aws_endpoint": server.endpoint,
        "storage.aws_access_key_id": KEY,
        "storage.aws_secret_access_key": SECRET,
        "storage.aws_region": REGION,
        "storage.aws_allow_http": "true",
    }
    path = f"s3://{server.bucket('lake')}/{name}"
    table = declared(Path("/"), {"p": STRING, "v": BIGINT}, partitioned_by=("p",))
    return replace(table, options={**table.options, **store, "table-path": path})


@pytest.mark.xdist_group("moto")
def test_a_table_in_a_bucket() -> None:
    table = in_bucket("t")
    one = target(table)
    rows = pa.record_batch({"p": ["a b%/ü", "x", None], "v": pa.array([1, 2, 3], pa.int64())})
    for _ in range(2):
        one.commit(WRITER, 1, [rows])
    later = target(table)
    with pytest.raises(PenstockError, match="STA-3504"):
        one.commit(WRITER, 2, [rows])
    assert later.last_committed(WRITER) == 1
    expected = [(1, "a b%/ü", 1), (1, "x", 2), (1, None, 3)]
    stream = with_options(table, **{"scan.mode": "from-version", "scan.version": "0"})
    for one_table in (table, stream):
        source = DeltaSource(request(one_table))
        found, _ = read_from(source, *source.splits())
        assert sorted(found, key=lambda row: row[2]) == expected
