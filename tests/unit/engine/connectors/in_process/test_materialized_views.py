"""What a materialized view holds: each deployment of its job begins anew, in whatever order its subtasks
come.
"""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.in_process.materialized_views import MaterializedContents

SCHEMA = pa.schema([pa.field("a", pa.int64())])


def rows(*values: int) -> Batch:
    return Batch(pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], schema=SCHEMA))


def held(view: MaterializedContents) -> list[int]:
    version = view.pin(1.0)
    assert version is not None
    return sorted(view.snapshot(version).column("a").to_pylist())


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("before", [(), (0,), (2,), (0, 1), (0, 1, 2)])
def test_a_deployment_begins_with_all_its_parts(before: tuple[int, ...], order: tuple[int, ...]) -> None:
    """However many subtasks of the first deployment had begun when it failed, the second's view is what
    the second began with.
    """
    view = MaterializedContents("v", SCHEMA)
    for subtask in before:
        view.begin(1, subtask, 3, [rows(subtask * 10)])
    for subtask in order:
        view.begin(2, subtask, 3, [rows(subtask * 10)])
        view.stage(7, [rows(subtask * 10 + 1)])
    view.complete(7)
    assert held(view) == [0, 1, 10, 11, 20, 21]


def test_what_a_lost_deployment_staged_is_forgotten() -> None:
    view = MaterializedContents("v", SCHEMA)
    view.begin(1, 0, 1, [rows()])
    view.stage(3, [rows(5)])
    view.begin(2, 0, 1, [rows()])
    view.stage(4, [rows(6)])
    view.complete(4)
    assert held(view) == [6]
