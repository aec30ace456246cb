"""The source: one split, which is opened without asking the server."""

from __future__ import annotations

import pytest

import penstock
from penstock.catalog.types import BIGINT
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import Services
from penstock.engine.api.source import ScanRequest
from penstock.engine.connectors.postgres_cdc.source import PostgresCdcSource
from tests.harness.cdc_reading import cdc_table
from tests.harness.postgres_server import PostgresServer


def test_one_split_whose_id_has_no_secret() -> None:
    server = PostgresServer("postgresql://u:@h:1/d")
    table = cdc_table(server, "t", {"id": BIGINT}, password="S3CR3T-7f1c")
    source = PostgresCdcSource(ScanRequest(table, (0,), None, 10, ManualClock(), Services()))
    assert source.splits() == ["h:1/postgres/public.t"]
    reader = source.open(source.splits()[0], None)
    assert reader.position() == {
        "position": 0,
        "partial": None,
        "snapshot": True,
        "key": None,
        "ranges": [],
        "columns": {},
    }
    reader.close()
    assert source.discover_every_ms() is None and source.rows_per_second() == 0


def test_drop_table_says_how_to_drop_the_slot() -> None:
    options = PostgresServer("postgresql://u:@h:1/d").options("postgres", "t", "my_slot")
    clause = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    with penstock.connect() as made:
        made.execute(f"CREATE TABLE t (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ({clause})")
        assert "SELECT pg_drop_replication_slot('my_slot')" in str(made.execute("DROP TABLE t").note)
        with pytest.raises(penstock.Error, match="SQL-1516"):
            made.execute(f"CREATE TABLE t (id BIGINT) WITH ({clause})")
