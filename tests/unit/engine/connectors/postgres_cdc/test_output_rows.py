"""Rows as the job asked for them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.types import BIGINT, STRING
from penstock.engine.connectors.postgres_cdc.output_rows import OutputRows
from penstock.engine.connectors.postgres_cdc.pgoutput import DecodedChanges
from tests.harness.cdc_reading import cdc_table
from tests.harness.postgres_server import PostgresServer

SERVER = PostgresServer("postgresql://u:@h:1/d")
WEIGHTS = np.array([1, -1, 1, -1])


def changes() -> DecodedChanges:
    rows = pa.record_batch({"n": [1, 1, 2, 3], "id": [7, 7, 7, 8]})
    updates = np.array([False, True, True, False])
    return DecodedChanges(
        rows, WEIGHTS, np.full(4, 50), np.full(4, 9), updates, 4, complete=True, answer=False
    )


def test_weighted_rows_in_the_order_of_the_requested_columns() -> None:
    table = cdc_table(SERVER, "t", {"id": BIGINT, "n": BIGINT})
    made = OutputRows(table, (1,), (1,)).changes(changes())
    assert made.rows.to_pydict() == {"n": [1, 1, 2, 3]} and made.weights is WEIGHTS


def test_changes_without_any_column() -> None:
    output = OutputRows(cdc_table(SERVER, "t", {"id": BIGINT, "n": BIGINT}), (), ())
    made = output.changes(changes())
    both = output.together([made, made])
    assert made.num_rows == 4 and both is not None and both.num_rows == 8
    assert output.nothing().num_rows == 0 and output.together([]) is None


def test_each_change_as_a_row() -> None:
    metadata = {"what": ("op", STRING), "place": ("table_name", STRING)}
    table = cdc_table(
        SERVER, "t", {"id": BIGINT}, metadata=metadata, scan__read_changelog_as_append_only__enabled="true"
    )
    output = OutputRows(table, (1, 2), ())
    made = output.changes(changes())
    assert made.weights is None
    assert made.rows.to_pydict() == {"what": ["+I", "-U", "+U", "-D"], "place": ["t"] * 4}
    read = output.snapshot(pa.record_batch({"id": [1, 2]}), 5)
    assert read.to_pydict() == {"what": ["+I", "+I"], "place": ["t", "t"]}
