"""Watermark alignment: the drift between splits is bounded, within a subtask, between subtasks and between the
sources of a group; nobody waits for what has ended or has no rows.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import STRING, TIMESTAMP
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import Services
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.in_process.bad_records import BadRecords
from penstock.engine.connectors.registry import SOURCES
from penstock.engine.operators.source.alignment import WatermarkAlignments
from penstock.engine.operators.source.source import SourceOperator
from tests.harness.reading import Taken, open_source, table_of

START = datetime(2026, 1, 1)


class Minutes:
    """Splits whose rows are a minute apart: as many as their id says, for ever with ``endless``."""

    def __init__(self, request: ScanRequest) -> None:
        self.ids = request.table.options["name"].split(",")

    def splits(self) -> list[str]:
        return self.ids

    def recall(self, split_ids: list[str]) -> None:
        pass

    def open(self, split_id: str, position: Position | None) -> Any:
        return MinuteReader(split_id)

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0


class MinuteReader:
    def __init__(self, split_id: str) -> None:
        self.split_id, self.row = split_id, 0
        self.rows = int(split_id.partition("#")[2])

    @property
    def ended(self) -> bool:
        return self.row >= self.rows > 0

    def poll(self, max_rows: int) -> pa.RecordBatch | None:
        if self.rows == 0 or self.ended:
            return None
        self.row += 1
        at = pa.array([START + timedelta(minutes=self.row)], pa.timestamp("us"))
        return pa.record_batch({"ts": at, "s": [self.split_id]})

    def position(self) -> Position:
        return {"row": self.row}

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "registered", Minutes)


def table(splits: str, **options: str) -> CatalogTable:
    given = {"connector": "registered", "name": splits, "scan.watermark.alignment.max-drift": "5 min"}
    return table_of({"ts": TIMESTAMP, "s": STRING}, given | options, watermark="ts")


def opened(services: Services, where: CatalogTable, clock: ManualClock, **how: Any) -> SourceOperator:
    return open_source(where, services=services, clock=clock, **how)


@pytest.fixture
def services() -> Services:
    return Services(BadRecords(), WatermarkAlignments())


def read_of(out: Taken) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in out.rows:
        counts[row["s"]] = counts.get(row["s"], 0) + 1
    return counts


def test_subtasks_wait_for_each_other(services: Services) -> None:
    clock, out = ManualClock(), Taken()
    where = table("a#100,b#100")
    fast, slow = (opened(services, where, clock, subtask=n, parallelism=2) for n in range(2))
    # a poll reports what the one before it has reached: minute 1
    slow.poll(out)
    slow.poll(out)
    for _ in range(50):
        status = fast.poll(out)
    # minute 1 and 5 more; then one row, for the time is compared before a row is read
    assert read_of(out) == {"b#100": 1, "a#100": 7} and not status.more
    assert status.wake_ms is not None and status.wake_ms <= clock.now_ms + 20
    for _ in range(30):
        slow.poll(out)
    assert read_of(out)["b#100"] <= 14
    for _ in range(1000):
        clock.advance(20)
        fast.poll(out)
        slow.poll(out)
    assert read_of(out) == {"a#100": 100, "b#100": 100}


def test_without_the_option_nobody_waits(services: Services) -> None:
    """The negative control."""
    clock, out = ManualClock(), Taken()
    where = table_of(
        {"ts": TIMESTAMP, "s": STRING}, {"connector": "registered", "name": "a#100,b#100"}, watermark="ts"
    )
    fast, slow = (opened(services, where, clock, subtask=n, parallelism=2) for n in range(2))
    slow.poll(out)
    for _ in range(50):
        fast.poll(out)
    assert read_of(out) == {"b#100": 1, "a#100": 50}


def test_sources_of_a_group_wait_for_each_other_and_others_do_not(services: Services) -> None:
    clock, out = ManualClock(), Taken()
    group = {"scan.watermark.alignment.group": "g"}
    slow = opened(services, table("a#100", **group), clock)
    fast = opened(services, table("b#100", **group), clock, subtask=0)
    alone = opened(services, table("c#100"), clock)
    assert slow._alignment is not None and fast._alignment is not None
    # operators of a plan have ids of their own; those of the harness have one
    fast._alignment.member = ("op2", 0)
    slow.poll(out)
    slow.poll(out)
    for _ in range(50):
        fast.poll(out)
        alone.poll(out)
    assert read_of(out) == {"a#100": 2, "b#100": 7, "c#100": 50}


@pytest.mark.parametrize("other", ["b#3", "b#0"])
def test_nobody_waits_for_a_split_that_has_ended_or_has_no_rows(services: Services, other: str) -> None:
    clock, out = ManualClock(), Taken()
    where = table(f"a#100,{other}")
    operators = [opened(services, where, clock, subtask=n, parallelism=2) for n in range(2)]
    for _ in range(300):
        clock.advance(20)
        for operator in operators:
            operator.poll(out)
    assert read_of(out)["a#100"] == 100
    for operator in operators:
        operator.close()
    assert not services.get(WatermarkAlignments)._groups


def test_more_splits_than_may_be_open_do_not_wait_for_each_other(services: Services) -> None:
    clock, out = ManualClock(), Taken()
    names = [f"s{number:03}#20" for number in range(100)]
    operator = opened(services, table(",".join(names)), clock)
    for _ in range(20_000):
        clock.advance(5)
        if operator.poll(out).ended:
            break
    assert read_of(out) == dict.fromkeys(names, 20)
