"""The weighted rows of a table, against a Counter, through snapshots of several subtasks and of older
versions.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa

from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.rows.table_contents import Contents, column_name

SCHEMA = pa.schema([("name", pa.string()), ("number", pa.int64())])
Row = tuple[str | None, int]


def add(contents: Contents, rows: list[tuple[Row, int]]) -> None:
    columns = [pa.array([row[i] for row, _ in rows], field.type) for i, field in enumerate(SCHEMA)]
    contents.add(Batch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA), np.array([w for _, w in rows])))


def counts(contents: Contents) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for batch in contents.weighted():
        weights = [1] * batch.num_rows if batch.weights is None else batch.weights.tolist()
        for row, weight in zip(batch.rows.to_pylist(), weights, strict=True):
            found[row["name"], row["number"]] += weight
    return found


def test_rows_are_those_of_a_counter_wherever_the_parts_go() -> None:
    """Subtasks hold rows whatever their keys: one may hold the row, another its retraction."""
    for seed in range(30):
        random, model = Random(seed), Counter()
        subtasks = [Contents(SCHEMA, group) for group in (0, 64)]
        for _ in range(5):
            for contents in subtasks:
                rows = [
                    ((random.choice((None, "", "a")), random.randrange(3)), random.choice((1, 1, 2, -1)))
                    for _ in range(random.randrange(1, 6))
                ]
                add(contents, rows)
                for row, weight in rows:
                    model[row] += weight
        tables = [contents.snapshot() for contents in subtasks]
        assert all(
            set(table.column("key_group").to_pylist()) <= {group}
            for table, group in zip(tables, (0, 64), strict=True)
        )
        one = Contents(SCHEMA, 5)
        for table in tables:
            one.restore(table)
        expected = {row: count for row, count in model.items() if count}
        assert {row: count for row, count in counts(one).items() if count} == expected


def test_a_snapshot_is_made_again_only_after_a_change() -> None:
    contents = Contents(SCHEMA, 0)
    add(contents, [(("a", 1), 1)])
    first = contents.snapshot()
    assert contents.snapshot() is first
    add(contents, [(("a", 1), 1)])
    assert contents.snapshot().to_pydict() == {"key_group": [0], "weight": [2], "c0": ["a"], "c1": [1]}


def test_columns_of_a_snapshot_remember_their_names() -> None:
    contents = Contents(SCHEMA, 0)
    add(contents, [(("a", 1), 1)])
    assert [column_name(field) for field in list(contents.snapshot().schema)[2:]] == ["name", "number"]
    assert column_name(pa.field("c0", pa.string())) == "c0", "an older checkpoint has no names"


def test_a_snapshot_of_an_older_version_without_names_is_restored() -> None:
    table = pa.table({"key_group": pa.array([0], pa.uint16()), "weight": [3], "c0": ["a"], "c1": [7]})
    contents = Contents(SCHEMA, 0)
    contents.restore(table)
    assert counts(contents) == {("a", 7): 3}


def test_no_rows_are_an_empty_table_and_nothing_to_restore() -> None:
    contents = Contents(SCHEMA, 0)
    contents.restore(contents.snapshot())
    assert contents.snapshot().num_rows == 0 and contents.weighted() == []
