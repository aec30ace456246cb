"""The registry: every connector that may be read or written has a builder, and no other is built."""

from __future__ import annotations

import pytest

from penstock.catalog.connectors.connector import Connector
from penstock.catalog.connectors.registry import CONNECTORS, metadata_keys
from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import Services
from penstock.engine.api.sink import SinkRequest
from penstock.engine.api.source import ScanRequest
from penstock.engine.connectors.blackhole_sink import BlackholeSink
from penstock.engine.connectors.generated.datagen_source import DatagenSource
from penstock.engine.connectors.in_process.result_channels import CollectSink, ResultChannels
from penstock.engine.connectors.registry import SINKS, SOURCES, sink_writer, source_connector
from tests.harness.reading import table_of
from tests.unit.engine.connectors.sinks import COLUMNS


def test_every_connector_has_a_builder() -> None:
    def names(promise: str) -> set[str]:
        return {c.name for c in CONNECTORS.values() if getattr(c, promise)}

    databases = {"duckdb", "postgres", "sqlite"}  # read by the bounded backends, as Spark's own tables are
    bounded = {"spark", "shared"}  # and so is a part that several readers of a plan have in common
    assert names("source") == set(SOURCES) | databases | bounded
    own = {"materialized", "spark"}  # whose sinks are no writers: one keeps state, the other is Spark's
    assert names("sink") - own == set(SINKS) - own
    assert all(
        isinstance(c, Connector) and c.help and all(o.help or o.key == "table" for o in c.options)
        for c in CONNECTORS.values()
    )
    assert metadata_keys("filesystem") and metadata_keys("print") == {}


def scan(connector: str) -> ScanRequest:
    return ScanRequest(
        table_of(COLUMNS, {"connector": connector}), (0, 1), None, 10, ManualClock(), Services()
    )


def writing(connector: str | None) -> SinkRequest:
    table = table_of(COLUMNS, {"connector": connector or "none"})
    return SinkRequest(
        None if connector is None else table,
        table.schema,
        None,
        "op",
        "job",
        0,
        1,
        Services(ResultChannels()),
    )


def test_a_table_is_built_by_its_connector_and_a_result_without_table_goes_to_the_client() -> None:
    assert isinstance(source_connector(scan("datagen")), DatagenSource)
    assert isinstance(sink_writer(writing("blackhole")), BlackholeSink)
    assert isinstance(sink_writer(writing(None)), CollectSink)


@pytest.mark.parametrize("connector", ["print", "blackhole"])
def test_what_only_writes_is_not_read(connector: str) -> None:
    with pytest.raises(PenstockError, match=f"SQL-1511.*'{connector}' only writes") as caught:
        source_connector(scan(connector))
    assert "datagen" in str(caught.value.hint) and connector not in str(caught.value.hint)


@pytest.mark.parametrize("connector", ["datagen", "nexmark", "socket"])
def test_what_only_reads_is_not_written(connector: str) -> None:
    with pytest.raises(PenstockError, match=f"SQL-1512.*'{connector}' only reads") as caught:
        sink_writer(writing(connector))
    assert "filesystem" in str(caught.value.hint) and connector not in str(caught.value.hint)
