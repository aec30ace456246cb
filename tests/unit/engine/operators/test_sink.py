"""The sink operator: what its writer prepares is committed when the checkpoint is complete, again after a restore,
and only what the table takes is written.
"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.sink import DirectSink
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators import sink as sinks
from penstock.engine.operators.sink import SinkOperator
from tests.harness.operator_specs import sink_spec
from tests.harness.operators import Remembered, done, opened
from tests.unit.engine.operators.changelogs import Change, batch_of, listed

SCHEMA = Schema((Field("n", BIGINT, False),))


class Written(DirectSink):
    """A writer that records what it is asked."""

    def __init__(self, log: list[Any]) -> None:
        self.log, self.rows = log, list[Change]()

    def recover(self, pending: list[Any]) -> None:
        self.log.append(("recover", pending))

    def write(self, batch: Batch) -> None:
        self.rows += listed(batch)

    def prepare(self, checkpoint_id: int) -> list[Any]:
        rows, self.rows = self.rows, []
        return [{"rows": rows}] if rows else []

    def commit(self, items: list[Any]) -> None:
        self.log += [("commit", item["rows"]) for item in items]

    def end(self) -> None:
        self.log.append("end")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    monkeypatch.setattr(sinks, "sink_writer", lambda request: Written(made))
    return made


def sink(connector: str = "filesystem", subtask: int = 0, parallelism: int = 1) -> SinkOperator:
    options = {"connector": connector, "path": "x", "format": "json"}
    table = CatalogTable("t", SCHEMA, SCHEMA, options)
    operator = SinkOperator(sink_spec("s", "sink t", SCHEMA, table, None, False), JobOptions())
    opened(operator, subtask=subtask, parallelism=parallelism)
    return operator


def write(operator: SinkOperator, *changes: Change) -> None:
    done(operator.on_batch(batch_of(list(changes), SCHEMA.to_arrow()), 0, Remembered()))


def test_what_is_prepared_is_committed_when_its_checkpoint_is_complete(log: list[Any]) -> None:
    operator, out = sink(), Remembered()
    for checkpoint in (1, 2, 3):
        write(operator, ((checkpoint,), 1))
        operator.before_barrier(checkpoint, out)
    operator.before_barrier(4, out)
    assert log == [("recover", [])], "once, before the first row"
    assert [item["checkpoint"] for item in operator.snapshot_items()] == [1, 2, 3], (
        "an empty one holds nothing"
    )
    operator.on_checkpoint_complete(2)
    assert log[1:] == [("commit", [((1,), 1)]), ("commit", [((2,), 1)])]
    operator.on_checkpoint_complete(2)
    assert len(log) == 3 and len(operator.snapshot_items()) == 1
    operator.on_end(out)
    assert log[-1] == "end"


def test_what_a_checkpoint_holds_is_committed_again_by_one_of_the_subtasks(log: list[Any]) -> None:
    items = [{"checkpoint": 1, "items": [{"rows": [number]}]} for number in range(3)]
    pending = [item["items"][0] for item in items]
    operators = [sink(subtask=i, parallelism=2) for i in range(2)]
    for operator in operators:
        operator.restore_items(items)
        write(operator, ((1,), 1))
        assert operator.snapshot_items() == []
    recovered = ("recover", pending)
    assert log == [recovered, ("commit", [0]), ("commit", [2]), recovered, ("commit", [1])]


def test_what_one_subtask_has_prepared_is_committed_again_by_one_and_in_order(log: list[Any]) -> None:
    """Its target may note the last commit alone: a later one of another subtask would pass over an earlier
    one.
    """
    checkpoints = [("a", 1), ("a", 2), ("b", 1), ("c", 1), ("c", 2), ("c", 3)]
    items = [{"checkpoint": number, "items": [{"rows": f"{who}{number}"}]} for who, number in checkpoints]
    for subtask, expected in enumerate((["a1", "a2", "c1", "c2", "c3"], ["b1"])):
        log.clear()
        sink(subtask=subtask, parallelism=2).restore_items(items)
        assert log[1:] == [("commit", rows) for rows in expected]


def test_a_table_that_only_appends_gets_copies_and_no_retraction(log: list[Any]) -> None:
    operator = sink()
    write(operator, ((1,), 1), ((2,), 3))
    assert operator._writer.rows == [((1,), 1)] + [((2,), 1)] * 3  # type: ignore[attr-defined]
    with pytest.raises(PenstockError, match="INT-9005"):
        write(operator, ((1,), -1))
    changes = sink("print")
    write(changes, ((1,), -1))
    assert changes._writer.rows == [((1,), -1)]  # type: ignore[attr-defined]


def test_a_null_is_refused_before_it_is_written(log: list[Any]) -> None:
    operator = sink()
    nullable = Schema((Field("n", BIGINT),)).to_arrow()
    with pytest.raises(PenstockError, match="RUN-2005.*column n of t is NOT NULL") as caught:  # noqa: RUF043
        operator.on_batch(batch_of([((1,), 1), ((None,), 1)], nullable), 0, Remembered())
    assert caught.value.sqlstate == "23502" and operator._writer.rows == []  # type: ignore[attr-defined]
