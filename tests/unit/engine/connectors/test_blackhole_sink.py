"""The blackhole: it counts rows, keeps none and has nothing to commit."""

from __future__ import annotations

from penstock.engine.api.operator import Services
from tests.harness.reading import Taken, table_of
from tests.unit.engine.connectors.sinks import COLUMNS, changes, sink


def test_rows_are_counted_and_nothing_is_prepared() -> None:
    operator = sink(table_of(COLUMNS, {"connector": "blackhole"}), Services())
    operator.on_batch(changes((1, "a", 1), (2, "b", -1)), 0, Taken())
    operator.on_batch(changes((None, None, 5)), 0, Taken())
    operator.before_barrier(1, Taken())
    assert operator._context.metrics.counters == {"rows_forgotten": 3}
    assert operator.snapshot_items() == []
