"""Generated rows are the same for the same seed, resumable at every row, dealt to subtasks without loss,
and kept to their rate.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import boundedness
from penstock.catalog.errors import PenstockError
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    TINYINT,
    Array,
    Decimal,
)
from penstock.engine.api.clock import ManualClock
from penstock.engine.connectors.generated.column_generators import mix
from tests.harness.reading import (
    Taken,
    drain,
    open_source,
    read,
    resume_everywhere,
    table_of,
)

COLUMNS = {
    "id": BIGINT,
    "small": TINYINT,
    "x": DOUBLE,
    "f": FLOAT,
    "ok": BOOLEAN,
    "word": STRING,
    "raw": BINARY,
    "day": DATE,
    "price": Decimal(10, 2),
    "ts": TIMESTAMP,
    "pick": STRING,
}
OPTIONS = {
    "connector": "datagen",
    "rows-per-second": "0",
    "number-of-rows": "100",
    "fields.id.kind": "sequence",
    "fields.id.start": "7",
    "fields.x.min": "-1",
    "fields.x.max": "1.5",
    "fields.word.length": "30",
    "fields.ts.start": "2024-01-01 00:00:00",
    "fields.ts.step": "250 ms",
    "fields.pick.values": "red, green, blue",
    "fields.price.min": "1.25",
    "fields.price.max": "2.50",
}


def table(**changes: str) -> Any:
    return table_of(COLUMNS, OPTIONS | changes)


def test_same_seed_same_rows_whatever_the_cuts() -> None:
    rows = read(table())
    assert len(rows) == 100
    assert rows == read(table(), batch=7) == read(table(), batch=1)
    assert rows != read(table(seed="2"))
    assert [r["id"] for r in rows] == list(range(7, 107))
    assert rows[3]["ts"] == datetime(2024, 1, 1, 0, 0, 0, 750_000)
    assert all(
        -1 <= r["x"] < 1.5 and len(r["word"]) == 30 and 1.25 <= r["price"] <= 2.5 and 0 <= r["small"] <= 127
        for r in rows
    )
    assert {r["pick"] for r in rows} == {"red", "green", "blue"}
    assert len({r["word"] for r in rows}) == 100
    assert {r["ok"] for r in rows} == {True, False}


def test_values_do_not_depend_on_the_columns_read() -> None:
    assert read(table(), columns=["x", "word"]) == [{"x": r["x"], "word": r["word"]} for r in read(table())]


OPTIONS_OF_WIDE = {
    "connector": "datagen",
    "rows-per-second": "0",
    "fields.word.length": "4000000",
    "fields.raw.length": "1000000",
}


def test_wide_rows_are_made_a_few_at_once() -> None:
    wide = table_of(
        {"word": STRING, "raw": BINARY, "n": BIGINT},
        OPTIONS_OF_WIDE,
    )
    operator, out = open_source(wide), Taken()
    operator.poll(out)
    operator.close()
    assert [len(row["word"]) for row in out.rows] == [4_000_000] * 3


def test_resumes_at_every_row() -> None:
    resume_everywhere(table(), read(table()), batch=3)


def test_splits_hold_every_row_once() -> None:
    spread = table(splits="4")
    parts = [read(spread, subtask=s, parallelism=3) for s in range(3)]
    assert all(parts)
    assert sorted((r for part in parts for r in part), key=lambda r: r["id"]) == read(table())
    with pytest.raises(PenstockError, match="DAT-4107"):
        open_source(table()).restore_items(open_source(spread).snapshot_items())


def test_a_sequence_with_an_end_ends() -> None:
    made = table_of(
        {"id": INT},
        {"connector": "datagen", "fields.id.kind": "sequence", "fields.id.end": "4", "rows-per-second": "0"},
    )
    assert boundedness(made) is Boundedness.REPLAY
    assert [r["id"] for r in read(made)] == [0, 1, 2, 3, 4]


def test_rate_and_time_of_generation() -> None:
    endless = table_of({"id": INT, "at": TIMESTAMP_LTZ}, {"connector": "datagen", "rows-per-second": "100"})
    assert boundedness(endless) is Boundedness.UNBOUNDED
    clock, out = ManualClock(5000), Taken()
    operator = open_source(endless, clock=clock)
    for _ in range(10):
        status = operator.poll(out)
    assert len(out.rows) == 1 and status.wake_ms == 5011
    clock.advance(500)
    assert drain(operator, out, polls=10).rows[-1]["at"].timestamp() == 5.5
    assert len(out.rows) == 51


def test_a_fast_pace_gives_a_millisecond_of_rows_at_once() -> None:
    endless = table_of({"id": INT}, {"connector": "datagen", "rows-per-second": "100000"})
    clock, out = ManualClock(5000), Taken()
    operator = open_source(endless, clock=clock)
    given = []
    for _ in range(20):
        operator.poll(out)
        given.append(len(out.rows))
        clock.advance(0.25)
    assert 400 <= given[-1] <= 476 and all(
        b == a or b - a >= 100 for a, b in zip([0, *given], given, strict=False)
    ), given


def test_a_source_that_was_held_up_makes_up_for_a_second_at_most() -> None:
    endless = table_of({"id": INT}, {"connector": "datagen", "rows-per-second": "100"})
    clock, out = ManualClock(5000), Taken()
    operator = open_source(endless, clock=clock)
    given = []
    for pause_ms in (0, 600, 60_000, 10, 990, 3_600_000, 0):
        clock.advance(pause_ms)
        before = len(out.rows)
        for _ in range(20):
            operator.poll(out)
        given.append(len(out.rows) - before)
    assert given == [1, 60, 100, 1, 99, 100, 0]


def test_metadata_row_number() -> None:
    made = table_of(
        {"id": INT},
        {"connector": "datagen", "number-of-rows": "3", "rows-per-second": "0"},
        metadata={"n": ("row", BIGINT)},
    )
    assert [r["n"] for r in read(made)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("columns", "options", "code"),
    [
        ({"a": INT}, {"fields.b.min": "1"}, "SQL-1510"),
        ({"a": INT}, {"fields.a.min": "x"}, "SQL-1505"),
        ({"a": INT}, {"fields.a.min": "5", "fields.a.max": "4"}, "SQL-1505"),
        ({"a": Array(INT)}, {}, "SQL-1509"),
        ({"a": DOUBLE}, {"fields.a.kind": "sequence"}, "SQL-1509"),
        ({"a": INT}, {"fields.a.kind": "now"}, "SQL-1509"),
    ],
)
def test_what_cannot_be_generated(columns: Any, options: dict[str, str], code: str) -> None:
    with pytest.raises(PenstockError, match=code):
        open_source(table_of(columns, {"connector": "datagen", "number-of-rows": "1", **options}))


def test_splitmix_matches_the_published_sequence() -> None:
    import numpy as np

    assert int(mix(np.array([0], np.uint64))[0]) == 0xE220A8397B1DCDAF
